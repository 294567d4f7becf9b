package kinds

import (
	"maps"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/step"
)

// Level is the importance of an event.
type Level string

// Levels.
const (
	Info    Level = "info"
	Warning Level = "warning"
	Error   Level = "error"
)

// stepKinds maps completed steps to kinds. The first matching row is used; a row without an action matches
// every action.
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
	{step.Rollout, step.AutoScalingGroup, step.RollbackRefresh{}, "refresh-rolling-back"},
	{step.Rollout, step.AutoScalingGroup, nil, "refresh-started"},
	{step.Rollout, step.ManagedNodegroup, nil, "nodegroup-update-started"},
}

// verbWords and resourceWords form the kinds of all other steps.
var (
	verbWords = map[step.Verb]string{
		step.Create: "created", step.Update: "updated", step.Delete: "deleted", step.Replace: "replaced", step.Rollout: "rollout-started",
	}
	resourceWords = map[step.Resource]string{
		step.LaunchTemplate: "template", step.AutoScalingGroup: "group", step.ManagedNodegroup: "nodegroup",
	}
)

// Holds maps holds of steps to kinds. A hold has no event if a diagnostic or the target's own suspension
// reports it.
var Holds = map[step.Hold]string{
	step.HeldPaused:     "pool-paused",
	step.HeldSuspended:  "",
	step.HeldConflict:   "",
	step.HeldPruneLimit: "",
	step.HeldApproval:   "approval-wanted",
	step.HeldWindow:     "window-awaited",
	step.HeldWave:       "wave-awaited",
	step.HeldGate:       "gate-awaited",
	step.HeldPolicy:     "policy-awaited",
	// A warning reports the expected refusal by AWS; the target's state and statuses show the hold.
	step.HeldPreflight: "preflight-refused",
	// Creating a cluster takes minutes, but an upgrade can take weeks.
	step.HeldControlPlane: "control-plane-awaited",
	// The turns of pools change too often to be worth an event.
	step.HeldRolloutLimit: "",
	// The hold ends within moments, or another event announces it.
	step.HeldWaiting: "",
	step.HeldStopped: "",
}

// Findings maps codes of diagnostics to kinds.
var Findings = map[string]string{
	"conflict":             "conflict-found",
	"commit-ahead":         "conflict-found",
	"correction-contested": "conflict-found",
	"contested-name":       "conflict-found",
	"foreign-version":      "foreign-version-found",
	"newer-image":          "newer-image-found",
	"nodegroup-degraded":   "nodegroup-degraded",
	"orphan":               "orphan-found",
	"orphan-kept":          "orphan-found",
	"prune-refused":        "prune-refused",
	"roles-differ":         "roles-differ",
	"rollout-incomplete":   "rollout-incomplete",
	"rollout-not-ready":    "rollout-not-ready",
	"rollout-stopped":      "rollout-stopped",
	"unknown-source":       "stray-found",
	"unknown-target":       "stray-found",
	"versions-kept":        "versions-kept",
}

// RolloutEnds maps the final status of a rollout in AWS to the result in an event.
var RolloutEnds = map[string]string{
	"Successful": "succeeded", "Failed": "failed", "Cancelled": "cancelled", "RollbackSuccessful": "rolled-back", "RollbackFailed": "rollback-failed",
}

// EndWords describes the values of RolloutEnds.
var EndWords = map[string]string{
	"succeeded": "succeeded", "failed": "failed", "cancelled": "was cancelled outside weir", "rolled-back": "failed and was rolled back",
	"rollback-failed": "failed, and its rollback failed too",
}

// otherKinds lists the kinds that are not in any table above.
var otherKinds = []string{
	"step-failed", "step-held", "drift-found", "drift-corrected", "drift-gone", "pool-failed", "pool-converged",
	"target-failed", "target-recovered", "target-suspended", "target-resumed", "target-held", "target-only-observed", "target-hold-ended",
	"source-failed", "source-recovered", "revision-seen", "configuration-reloaded", "configuration-refused", "weir-started", "command-given",
	"drain-deadline", "machine-drained", "machine-not-drained",
	"join-tokens-renewed", "plan-approved", "approval-ended", "approval-withdrawn", "comment-edited", "plan-differs", "state-lost",
	"fleet-rollout-began", "fleet-rollout-wave", "fleet-rollout-ended", "fleet-rollout-stopped",
	"revert-opened", "revert-refused", "revert-closed",
	"accept-opened", "accept-updated", "accept-closed", "accept-left", "accept-refused",
	"images-opened", "images-updated", "images-closed", "images-left", "images-refused",
	"member-joined", "member-lost", "owner-changed", "owner-replaced", "owner-stuck", "owner-lost",
}

// levels maps kinds to levels. All other kinds have the level Info.
var levels = map[string]Level{
	"conflict-found": Error, "prune-refused": Error, "step-failed": Error, "pool-failed": Error,
	"target-failed": Error, "target-only-observed": Error, "target-held": Warning, "source-failed": Error, "configuration-refused": Error, "state-lost": Error,
	"refresh-failed": Error, "refresh-rolled-back": Error, "refresh-rollback-failed": Error, "refresh-rolling-back": Error,
	"nodegroup-update-failed": Error,
	"refresh-cancelled":       Warning, "nodegroup-update-cancelled": Warning, "drift-found": Warning, "orphan-found": Warning,
	"rollout-not-ready": Warning, "rollout-stopped": Error, "fleet-rollout-stopped": Error, "revert-opened": Warning, "revert-refused": Warning, "images-left": Warning, "images-refused": Warning, "accept-left": Warning, "accept-refused": Warning, "rollout-incomplete": Warning, "nodegroup-degraded": Warning, "versions-kept": Warning, "roles-differ": Warning,
	"approval-wanted": Warning, "stray-found": Warning, "foreign-version-found": Warning, "plan-differs": Warning, "comment-edited": Warning, "preflight-refused": Warning,
	"drain-deadline": Warning, "machine-not-drained": Warning,
	"member-lost": Warning, "owner-replaced": Warning, "owner-stuck": Warning, "owner-lost": Warning,
}

func LevelOf(kind string) Level {
	if l := levels[kind]; l != "" {
		return l
	}
	return Info
}

// All returns all kinds of weir's events, sorted.
func All() []string {
	out := slices.Clone(otherKinds)
	for _, s := range stepKinds {
		out = append(out, s.kind)
	}
	for _, r := range resourceWords {
		for _, v := range []step.Verb{step.Create, step.Update, step.Delete} {
			out = append(out, r+"-"+verbWords[v])
		}
	}
	for _, how := range slices.Concat([]string{"progress", "rolling-back"}, slices.Collect(maps.Values(RolloutEnds))) {
		out = append(out, OfRollout(step.AutoScalingGroup, how))
	}
	for _, how := range []string{"progress", "succeeded", "failed", "cancelled"} {
		out = append(out, OfRollout(step.ManagedNodegroup, how))
	}
	for _, kind := range slices.Concat(slices.Collect(maps.Values(Holds)), slices.Collect(maps.Values(Findings))) {
		if kind != "" {
			out = append(out, kind)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OfStep returns the kind of the event of a completed step.
func OfStep(s step.Step) string {
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

func OfRollout(r step.Resource, how string) string {
	if r == step.ManagedNodegroup {
		return "nodegroup-update-" + how
	}
	return "refresh-" + how
}
