package commits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

const (
	// patience is the time that a commit stays pending while AWS throttles or does not answer. After that,
	// the commit fails; it can still succeed later.
	patience = 10 * time.Minute
	// stalledAfter is the time that a commit stays pending while nothing changes. Otherwise, a group that
	// cannot launch instances would keep it pending forever.
	stalledAfter = 30 * time.Minute
)

// targetTrack is the progress of a commit on one target.
type targetTrack struct {
	State       forge.CommitState `json:"state"`
	Description string            `json:"description"`
	// Pools lists the pools that the commit changed, with the most severe verb of its steps for each. It is
	// empty if all steps have been held so far.
	Pools map[string]step.Verb `json:"pools,omitempty"`
	// Removed says that the commit removed the target.
	Removed bool `json:"removed,omitempty"`
	// mark is a fingerprint of the last observation, and markAt the time at which it was first seen.
	// troubleAt is the time at which temporary failures of AWS started, and sourceAt the same for the
	// source. All are zero after a restart, so the commit then gets the full time again.
	mark      string
	markAt    time.Time
	troubleAt time.Time
	sourceAt  time.Time
}

// observe processes a report of the commit's revision. Success is final: later differences are drift, which
// the commit did not cause. Failure stays until success, so that a status does not flicker while weir
// retries a failed step.
func (t *targetTrack) observe(r *plan.Report, now time.Time) {
	if t.State == forge.Success {
		return
	}
	t.touch(r)
	state, description := t.judge(r, now)
	if t.State == forge.Failure && state == forge.Pending {
		return
	}
	t.State, t.Description = state, description
}

// judge returns the verdict on a report, even if its source is unavailable.
func (t *targetTrack) judge(r *plan.Report, now time.Time) (forge.CommitState, string) {
	if !errors.Is(r.Err, plan.ErrSource) {
		t.sourceAt = time.Time{}
		return t.verdict(r, now)
	}
	// An unavailable source is not the commit's fault. weir still applies the data that it has read of the
	// commit, and if AWS refuses a step, the commit has failed. But while the source is unavailable, weir
	// deletes nothing and adopts nothing from another target, so the commit can neither succeed nor
	// conflict.
	if t.sourceAt.IsZero() {
		t.sourceAt = now
	}
	if r.Plan != nil {
		known := *r
		known.Err = nil
		if state, text := t.verdict(&known, now); state == forge.Pending || state == forge.Failure && len(r.Failures()) > 0 {
			return state, text
		}
	}
	if now.Sub(t.sourceAt) < patience {
		return t.State, t.Description
	}
	return forge.Pending, "waiting for the source: " + r.Err.Error()
}

// verbRank orders verbs like the plan's summary does, the most severe first.
var verbRank = [...]step.Verb{step.Delete, step.Replace, step.Rollout, step.Create, step.Adopt, step.Update, step.PruneVersion}

func rank(v step.Verb) int {
	if i := slices.Index(verbRank[:], v); i >= 0 {
		return i
	}
	return len(verbRank)
}

// touch adds the pools for which the pass had steps. Steps of paused pools do not count, because Git pauses
// them. A rollout in progress counts in two cases:
//
//   - A version of its template was made for the commit: an earlier process started the rollout,
//     and was stopped before it could report that.
//   - It is being rolled back or cancelled: the commit has no step for the pool until that ends.
func (t *targetTrack) touch(r *plan.Report) {
	if r.Plan == nil {
		return
	}
	for _, p := range r.Pools {
		if p.Rollout == nil {
			continue
		}
		ends := p.Rollout.Status == "Cancelling" || p.Rollout.Status == "RollbackInProgress"
		if ends || slices.ContainsFunc(p.TemplateVersions, func(v plan.VersionNote) bool {
			return v.Revision != "" && strings.HasPrefix(r.Revision, v.Revision)
		}) {
			t.touchPool(report.PoolKey(p), step.Rollout)
		}
	}
	for _, s := range r.Plan.Steps {
		if s.Held == step.HeldPaused {
			continue
		}
		verb := s.Verb
		if s.Held != "" {
			verb = "" // no step changes the pool yet
		}
		if s.Pool != "" {
			t.touchPool(s.Pool, verb)
		}
		for _, pool := range s.Pools { // the step changes the launch configuration of these pools
			if verb != "" {
				verb = step.Update
			}
			t.touchPool(pool, verb)
		}
	}
}

func (t *targetTrack) touchPool(pool string, v step.Verb) {
	if old, ok := t.Pools[pool]; ok && rank(v) >= rank(old) {
		return
	}
	if t.Pools == nil {
		t.Pools = map[string]step.Verb{}
	}
	t.Pools[pool] = v
}

// trouble reports whether all failures in r are temporary.
func trouble(r *plan.Report) bool {
	if r.Err != nil {
		var call *observed.Error
		return errors.As(r.Err, &call) && call.Passes() ||
			errors.Is(r.Err, context.Canceled) || errors.Is(r.Err, context.DeadlineExceeded)
	}
	failures := r.Failures()
	for _, o := range failures {
		if o.Err == nil || !o.Err.Passes() {
			return false
		}
	}
	return len(failures) > 0 && !r.Diagnostics.HasErrors()
}

// verdict returns the commit status for a report without a source error. Temporary trouble counts as
// pending at first, and as a failure after some time.
func (t *targetTrack) verdict(r *plan.Report, now time.Time) (forge.CommitState, string) {
	if trouble(r) {
		if t.troubleAt.IsZero() {
			t.troubleAt = now
		}
		text, _ := report.FirstFault(r)
		if now.Sub(t.troubleAt) < patience {
			return forge.Pending, "trying again: " + text
		}
		return forge.Failure, text
	}
	t.troubleAt = time.Time{}
	if fault, more := report.FirstFault(r); fault != "" {
		if more > 0 {
			fault = fmt.Sprintf("%s: %s", wording.Count(more+1, "fault"), fault)
		}
		return forge.Failure, keptText(r) + fault
	}
	if r.Plan == nil {
		return forge.Pending, "waiting for a plan"
	}
	if state, text := heldState(r); state != "" {
		return state, text
	}
	return t.progress(r, now)
}

// remainder describes the changes of a commit that are still in progress on a target.
type remainder struct {
	// due counts the steps to run, and waiting describes the pools that have not converged.
	due     int
	waiting []string
	// said is AWS's message about a rollout in progress.
	said string
	// soaking says that a pool waits for minReadySeconds. Nothing needs to change during that time.
	soaking bool
	// mark is a fingerprint of everything that can change.
	mark string
}

// remains returns the changes that are still in progress after a pass. It forgets pools of an earlier
// commit that are no longer in Git.
func (t *targetTrack) remains(r *plan.Report) (left remainder) {
	steps := map[string]bool{}
	for _, s := range r.Plan.Steps {
		if s.Held == "" {
			steps[s.Pool] = true
			left.due++
		}
	}
	pools := map[string]plan.PoolStatus{}
	for _, p := range r.Pools {
		pools[report.PoolKey(p)] = p
	}
	left.mark = fmt.Sprintf("%d steps", left.due)
	for _, key := range slices.Sorted(maps.Keys(t.Pools)) {
		p, there := pools[key]
		if v := t.Pools[key]; !there && !steps[key] && v != step.Delete && v != step.PruneVersion {
			delete(t.Pools, key) // no step deletes it
			continue
		}
		if !steps[key] && (!there || p.Converged) {
			if there && t.Pools[key] == step.Delete {
				t.Pools[key] = step.Replace // its resource with another name is deleted
			}
			continue
		}
		left.waiting = append(left.waiting, poolWords(key, p, there))
		left.soaking = left.soaking || p.Ready().Reason == plan.ReasonMinReady
		left.mark += fmt.Sprintf("; %s %d/%d/%d %v", key, p.Replicas, p.ReadyReplicas, p.DesiredReplicas, p.Phase)
		if p.Rollout != nil {
			left.said = cmp.Or(left.said, p.Rollout.Message)
			left.mark += fmt.Sprintf(" %s %d", p.Rollout.Status, p.Rollout.Percentage)
		}
	}
	return left
}

// progress returns the verdict on a pass without failures: success if nothing is left to do, failure after
// a time without progress, and otherwise pending.
func (t *targetTrack) progress(r *plan.Report, now time.Time) (forge.CommitState, string) {
	left := t.remains(r)
	if len(left.waiting) == 0 && left.due == 0 {
		return forge.Success, t.summary(r)
	}
	text := "applying"
	if len(left.waiting) > 0 {
		text = fmt.Sprintf("%d of %s converged; %s", len(t.Pools)-len(left.waiting), wording.Count(len(t.Pools), "pool"), left.waiting[0])
	}
	if left.mark != t.mark || left.soaking {
		t.mark, t.markAt = left.mark, now
	} else if now.Sub(t.markAt) >= stalledAfter {
		if left.said != "" {
			text += ": " + left.said
		}
		return forge.Failure, fmt.Sprintf("no progress for %d minutes: %s", int(now.Sub(t.markAt).Minutes()), text)
	}
	return forge.Pending, text
}

// poolWords describes what a pool waits for, without numbers that change with every pass, because every new
// description is a write to the forge.
func poolWords(key string, p plan.PoolStatus, there bool) string {
	switch {
	case !there:
		return key + " is being deleted"
	case p.Rollout != nil:
		return key + " is rolling"
	case p.Rests():
		return key + " does not match Git: " + p.Ready().Message
	case p.Ready().Reason == plan.ReasonNodesNotReady:
		return key + " waits for nodes to become Ready"
	case p.Ready().Reason == launch.ReasonPending:
		return key + " waits for machines: " + p.Ready().Message
	case p.Ready().Reason == plan.ReasonMinReady:
		return key + " waits for minReadySeconds"
	case p.Phase == plan.PhaseRunning || p.Phase == "":
		return key + " is changing"
	default:
		return key + " is " + string(p.Phase)
	}
}

// summary describes the changes of a commit that has converged.
func (t *targetTrack) summary(r *plan.Report) string {
	n := map[step.Verb]int{}
	for _, v := range t.Pools {
		n[v]++
	}
	text := verbCounts(n)
	paused := 0
	for _, s := range r.Plan.Steps {
		if s.Held == step.HeldPaused {
			paused++
		}
	}
	if paused > 0 {
		text += fmt.Sprintf("; paused: %s", wording.Count(paused, "step"))
	}
	return text
}

// verbCounts formats counts, such as "2 pools created, 1 rolled".
func verbCounts(n map[step.Verb]int) string {
	words := []struct {
		verb step.Verb
		word string
	}{
		{step.Create, "created"}, {step.Rollout, "rolled"}, {step.Update, "updated"}, {step.Replace, "replaced"},
		{step.Adopt, "adopted"}, {step.Delete, "deleted"}, {step.PruneVersion, "tidied"},
	}
	var out []string
	for _, w := range words {
		switch {
		case n[w.verb] == 0:
		case len(out) == 0:
			out = append(out, wording.Count(n[w.verb], "pool")+" "+w.word)
		default:
			out = append(out, fmt.Sprintf("%d %s", n[w.verb], w.word))
		}
	}
	if len(out) == 0 {
		return "nothing to change in AWS"
	}
	return strings.Join(out, ", ")
}

// aggregate returns the verdict on a commit over all its targets: failure if one has failed, otherwise
// pending if one is pending, otherwise success. Without targets it is success.
func aggregate(targets map[string]*targetTrack) (forge.CommitState, string) {
	names := slices.Sorted(maps.Keys(targets))
	by := map[forge.CommitState][]string{}
	verbs := map[step.Verb]int{}
	removed := 0
	for _, name := range names {
		t := targets[name]
		by[t.State] = append(by[t.State], name)
		if t.Removed {
			removed++
		}
		for _, v := range t.Pools {
			verbs[v]++
		}
	}
	one := func(list []string, did string) string {
		text := list[0] + ": " + targets[list[0]].Description
		if len(names) > 1 {
			text = fmt.Sprintf("%d of %d targets %s; %s", len(list), len(names), did, text)
		}
		return text
	}
	switch {
	case len(names) == 0:
		return forge.Success, "no target affected"
	case len(by[forge.Failure]) > 0:
		return forge.Failure, one(by[forge.Failure], "failed")
	case len(by[forge.Pending]) == 1 && len(names) == 1:
		return forge.Pending, one(by[forge.Pending], "")
	case len(by[forge.Pending]) > 0:
		return forge.Pending, fmt.Sprintf("%d of %d targets converged", len(by[forge.Success]), len(names))
	case len(names) == 1:
		return forge.Success, one(names, "")
	case removed > 0:
		text := fmt.Sprintf("%s removed, their resources in AWS stay", wording.Count(removed, "target"))
		if rest := len(names) - removed; rest > 0 {
			text = wording.Count(rest, "target") + ": " + verbCounts(verbs) + "; " + text
		}
		return forge.Success, text
	default:
		return forge.Success, wording.Count(len(names), "target") + ": " + verbCounts(verbs)
	}
}
