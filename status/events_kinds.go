package status

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// The tables in this file say which event something becomes. What a new step, a
// new hold or a new diagnostic is told as is a line here; without one, a step is
// told as its resource and verb, a hold as step-held, and a diagnostic as part of
// what is wrong with its target.

// Level is how much attention an event deserves.
type Level string

// Levels.
const (
	LevelInfo    Level = "info"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// stepKinds are the events of steps that were done. The first line that fits
// counts; one without an action fits every action.
var stepKinds = []struct {
	verb     step.Verb
	resource step.Resource
	action   step.Action
	kind     string
}{
	{step.Adopt, "", nil, "adopted"},
	{step.PruneVersion, "", nil, "versions-pruned"},
	{step.Update, step.LaunchTemplate, step.CreateLaunchTemplateVersion{}, "version-created"},
	{step.Update, step.LaunchTemplate, step.SetDefaultVersion{}, "default-version-moved"},
	{step.Rollout, step.AutoScalingGroup, step.CancelRefresh{}, "refresh-superseded"},
	{step.Rollout, step.AutoScalingGroup, nil, "refresh-started"},
	{step.Rollout, step.ManagedNodegroup, nil, "nodegroup-update-started"},
}

// verbWords and resourceWords make the kind of every other step.
var (
	verbWords = map[step.Verb]string{
		step.Create: "created", step.Update: "updated", step.Delete: "deleted", step.Replace: "replaced", step.Rollout: "rollout-started",
	}
	resourceWords = map[step.Resource]string{
		step.LaunchTemplate: "template", step.AutoScalingGroup: "group", step.ManagedNodegroup: "nodegroup",
	}
)

// holdKinds are the events of steps that are held, none for those of which a
// diagnostic or the target's own suspension tells.
var holdKinds = map[step.Hold]string{
	step.HeldPaused:     "pool-paused",
	step.HeldSuspended:  "",
	step.HeldConflict:   "",
	step.HeldPruneLimit: "",
	step.HeldApproval:   "approval-wanted",
	step.HeldWindow:     "window-awaited",
	step.HeldWave:       "wave-awaited",
	// A cluster that is being made takes minutes, an upgrade may take weeks.
	step.HeldControlPlane: "control-plane-awaited",
	// Which pool's turn it is changes often, and says little.
	step.HeldRolloutLimit: "",
	// It is over in a moment, or told otherwise.
	step.HeldWaiting: "",
	step.HeldStopped: "",
}

// findingKinds are the events of diagnostics, by code.
var findingKinds = map[string]string{
	"conflict":           "conflict-found",
	"commit-ahead":       "conflict-found",
	"contested-name":     "conflict-found",
	"foreign-version":    "foreign-version-found",
	"newer-image":        "newer-image-found",
	"nodegroup-degraded": "nodegroup-degraded",
	"orphan":             "orphan-found",
	"orphan-kept":        "orphan-found",
	"prune-refused":      "prune-refused",
	"roles-differ":       "roles-differ",
	"rollout-incomplete": "rollout-incomplete",
	"rollout-not-ready":  "rollout-not-ready",
	"unknown-source":     "stray-found",
	"unknown-target":     "stray-found",
	"versions-kept":      "versions-kept",
}

// rolloutEnds are how a rollout ended, by the status that AWS gives it.
var rolloutEnds = map[string]string{
	"Successful": "succeeded", "Failed": "failed", "Cancelled": "cancelled", "RollbackSuccessful": "rolled-back", "RollbackFailed": "rollback-failed",
}

// endWords put rolloutEnds into a sentence.
var endWords = map[string]string{
	"succeeded": "succeeded", "failed": "failed", "cancelled": "was cancelled outside weir", "rolled-back": "failed and went back",
	"rollback-failed": "failed, and so did the way back",
}

// otherKinds are the events that no table above makes.
var otherKinds = []string{
	"step-failed", "step-held", "drift-found", "drift-corrected", "drift-gone", "pool-failed", "pool-converged",
	"target-failed", "target-recovered", "target-suspended", "target-resumed",
	"source-failed", "source-recovered", "revision-seen", "configuration-reloaded", "configuration-refused", "weir-started", "command-given",
	"join-tokens-renewed", "plan-approved", "plan-differs", "state-lost",
}

// levels are those of the kinds that are more than information.
var levels = map[string]Level{
	"conflict-found": LevelError, "prune-refused": LevelError, "step-failed": LevelError, "pool-failed": LevelError,
	"target-failed": LevelError, "source-failed": LevelError, "configuration-refused": LevelError, "state-lost": LevelError,
	"refresh-failed": LevelError, "refresh-rolled-back": LevelError, "refresh-rollback-failed": LevelError, "refresh-rolling-back": LevelError,
	"nodegroup-update-failed": LevelError,
	"refresh-cancelled":       LevelWarning, "nodegroup-update-cancelled": LevelWarning, "drift-found": LevelWarning, "orphan-found": LevelWarning,
	"rollout-not-ready": LevelWarning, "rollout-incomplete": LevelWarning, "nodegroup-degraded": LevelWarning, "versions-kept": LevelWarning, "roles-differ": LevelWarning,
	"approval-wanted": LevelWarning, "stray-found": LevelWarning, "foreign-version-found": LevelWarning, "plan-differs": LevelWarning,
}

func levelOf(kind string) Level {
	if l := levels[kind]; l != "" {
		return l
	}
	return LevelInfo
}

// EventKinds lists the kinds of events that weir itself makes, sorted.
func EventKinds() []string {
	out := slices.Clone(otherKinds)
	for _, s := range stepKinds {
		out = append(out, s.kind)
	}
	for _, r := range resourceWords {
		for _, v := range []step.Verb{step.Create, step.Update, step.Delete} {
			out = append(out, r+"-"+verbWords[v])
		}
	}
	for _, how := range slices.Concat([]string{"progress", "rolling-back"}, slices.Collect(maps.Values(rolloutEnds))) {
		out = append(out, rolloutKind(step.AutoScalingGroup, how))
	}
	for _, how := range []string{"progress", "succeeded", "failed", "cancelled"} {
		out = append(out, rolloutKind(step.ManagedNodegroup, how))
	}
	for _, kind := range slices.Concat(slices.Collect(maps.Values(holdKinds)), slices.Collect(maps.Values(findingKinds))) {
		if kind != "" {
			out = append(out, kind)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stepKind is the event of a step that was done.
func stepKind(s step.Step) string {
	for _, k := range stepKinds {
		if k.verb == s.Verb && (k.resource == "" || k.resource == s.Resource) && (k.action == nil || reflect.TypeOf(k.action) == reflect.TypeOf(s.Do)) {
			return k.kind
		}
	}
	resource, verb := resourceWords[s.Resource], verbWords[s.Verb]
	if resource == "" {
		resource = string(s.Resource)
	}
	if verb == "" {
		verb = string(s.Verb)
	}
	return resource + "-" + verb
}

func rolloutKind(r step.Resource, how string) string {
	if r == step.ManagedNodegroup {
		return "nodegroup-update-" + how
	}
	return "refresh-" + how
}

func resourceOf(p plan.PoolStatus) step.Resource {
	if p.Kind == intent.NodegroupPool {
		return step.ManagedNodegroup
	}
	return step.AutoScalingGroup
}

// ownerPool is what a step belongs to, as a person knows it.
func ownerPool(s step.Step) string {
	if s.Pool == "" {
		return s.LaunchConfig
	}
	return s.Pool
}

// plainOwner is what Step.Owner returns, as a person knows it.
func plainOwner(owner string) string {
	if i := strings.LastIndex(owner, " "); i >= 0 {
		return owner[i+1:]
	}
	return owner
}

// objectPool is the pool that a diagnostic's object ("Kind namespace/name") is
// of, by its name; empty where it is none of the report's pools.
func objectPool(r *plan.Report, object string) string {
	_, key, ok := strings.Cut(object, " ")
	if ok && slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool { return poolKey(p) == key }) {
		return key
	}
	return ""
}

// targetFault says what is wrong with a target beside what has an event of its
// own. The keys stay the same while the fault does, though AWS puts another
// number into each refusal.
func targetFault(r *plan.Report) (text string, keys []string) {
	if r.Err != nil {
		return r.Err.Error(), []string{errorKey(r.Err)}
	}
	var first *diag.Diagnostic
	for i, d := range r.Diagnostics {
		if d.Severity != diag.Error || findingKinds[d.Code] != "" || poolFails(r, d.Code) {
			continue
		}
		if first == nil {
			first = &r.Diagnostics[i]
		}
		keys = append(keys, d.Code+" "+d.Object+" "+d.Position.String())
	}
	if first == nil {
		return "", nil
	}
	return andMore(diagnosticWords(*first), len(keys)-1), keys
}

// poolFails reports whether a pool's own failure tells of a diagnostic.
func poolFails(r *plan.Report, code string) bool {
	return slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool { return p.FailureReason == code })
}

// ofAccount are the kinds of errors that all calls of an account have at the same
// time; calls are made beside each other, and which one is the first changes.
var ofAccount = []observed.ErrorKind{observed.Transient, observed.Throttled, observed.Credentials}

func errorKey(err error) string {
	var call *observed.Error
	switch {
	case errors.As(err, &call) && slices.Contains(ofAccount, call.Kind):
		return string(call.Kind)
	case errors.As(err, &call):
		return call.Service + ":" + call.Operation + ":" + call.Code
	case errors.Is(err, plan.ErrSource):
		return "source"
	default:
		return err.Error()
	}
}

// failureKey stands for a failed step while it fails in the same way.
func failureKey(o step.Outcome) string {
	key := string(o.Step.Verb) + " " + string(o.Step.Resource) + " " + o.Step.Name
	if o.Err != nil {
		key += " " + o.Err.Operation + " " + o.Err.Code
	}
	return key
}

// shortHash stands for a text where the text itself is too long to be kept.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
