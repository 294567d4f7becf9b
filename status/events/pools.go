package events

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// rolloutStep is the progress of a rollout between two events, in percent.
const rolloutStep = 25

// pools announces changes of pools. The statuses are from before the apply, so pools runs before the
// results of the apply are processed.
func (t *finder) pools() {
	rolls := map[string]bool{}
	if t.r.Plan != nil {
		for _, s := range t.r.Plan.Steps {
			if s.Verb == step.Rollout {
				rolls[s.Pool] = true
			}
		}
	}
	for _, p := range t.r.Pools {
		key := report.PoolKey(p)
		old, known := t.old.Pools[key]
		next := KnownPool{Converged: p.Converged, Failure: p.FailureReason, Rollout: old.Rollout, Causes: old.Causes, Seen: seenOf(old.Seen, p, t.at)}
		if p.Converged {
			next.Causes = nil
		}
		if p.FailureReason != "" {
			if next.FailedSince = old.FailedSince; next.FailedSince.IsZero() {
				next.FailedSince = t.at
			}
		}
		failureAnnounced := t.rollout(p, &next, rolls[key])
		kind := cmp.Or(kinds.Findings[p.FailureReason], "pool-failed")
		// A step that AWS refused is announced as refused.
		elsewhere := p.FailureReason == plan.FailureRefused || kind != "pool-failed" && p.FailureCause == ""
		if p.FailureReason != "" && !elsewhere && t.isNew(p, old, &next) && !failureAnnounced {
			t.add(Event{Kind: kind, Pool: key, Reason: p.FailureReason, Text: p.FailureMessage})
		}
		if p.Converged && known && !old.Converged {
			t.add(Event{Kind: "pool-converged", Pool: key, Text: fmt.Sprintf("%d of %d ready", p.ReadyReplicas, p.DesiredReplicas)})
		}
		t.next.Pools[key] = next
	}
}

// isNew reports whether the failure of a pool has not been announced yet. A failure with a cause, such as
// why AWS launches no machine, is announced once for each cause. This is true even if causes alternate, or
// if the failure disappears while a machine is launching.
func (t *finder) isNew(p plan.PoolStatus, old KnownPool, next *KnownPool) bool {
	cause := ShortHash(p.FailureCause)
	switch {
	case p.FailureCause == "":
		return next.Failure != old.Failure
	case slices.Contains(next.Causes, cause) || len(next.Causes) >= maxCauses:
		return false
	}
	next.Causes = append(slices.Clone(next.Causes), cause)
	return true
}

// maxCauses is the maximum number of announced causes of one pool.
const maxCauses = 20

// rollout announces the start, progress, rollback and end of a pool's rollout. next.Rollout is the rollout of the
// last report, and rollout replaces it with the present one. rolls says that the plan has a rollout step for the
// pool. The result reports whether the announced end says why the pool failed.
func (t *finder) rollout(p plan.PoolStatus, next *KnownPool, rolls bool) (failureAnnounced bool) {
	now := p.Rollout
	if was := next.Rollout; was != nil && (now == nil || now.ID != "" && was.ID != "" && now.ID != was.ID) {
		ended, failed := t.ended(p, *was, rolls)
		if !ended && now == nil {
			return false
		}
		next.Rollout, failureAnnounced = nil, failed
	}
	if now == nil {
		return failureAnnounced
	}
	resource := resourceOf(p)
	if next.Rollout == nil {
		next.Rollout = &KnownRollout{ID: now.ID, Resource: resource, Notch: now.Percentage / rolloutStep, What: foundMoving(p)}
		text := "weir found a rollout in progress"
		if next.Rollout.What != "" {
			text = "weir found an update in progress"
		}
		t.add(Event{
			Kind: kinds.OfRollout(resource, "started"), Pool: report.PoolKey(p), Resource: resource, Reason: now.Message,
			Text: text, Facts: rolloutFacts(now),
		})
	}
	known := *next.Rollout
	if known.ID == "" {
		known.ID = now.ID
	}
	e := Event{Pool: report.PoolKey(p), Resource: resource, Name: known.Name, Reason: now.Message, Facts: rolloutFacts(now)}
	if now.Status == "RollbackInProgress" && !known.Back {
		known.Back = true
		e.Kind, e.Text = kinds.OfRollout(resource, "rolling-back"), "the rollout failed and is rolled back"
		t.add(e)
	}
	if notch := now.Percentage / rolloutStep; notch > known.Notch {
		known.Notch = notch
		e.Kind, e.Text = kinds.OfRollout(resource, "progress"), fmt.Sprintf("%d %%, %s left", now.Percentage, wording.Count(int(now.InstancesLeft), "instance"))
		t.add(e)
	}
	next.Rollout = &known
	return failureAnnounced
}

// ended reports whether a rollout has ended, and whether it failed. ended is false if the result is
// unknown. If the result was not read from AWS, the rollout succeeded if no instance is left to replace: a
// failed rollout leaves instances behind, or reports why it failed.
func (t *finder) ended(p plan.PoolStatus, was KnownRollout, rolls bool) (ended, failed bool) {
	how, why := "", ""
	switch last := p.LastRollout; {
	case last != nil && last.ID == was.ID:
		if how = kinds.RolloutEnds[last.Status]; how == "" {
			return false, false // AWS reports it as in progress
		}
		why = last.Message
	case p.FailureReason != "":
		how, why = "failed", p.FailureMessage
	case rolls:
		return false, false
	default:
		how = "succeeded"
	}
	if was.Superseded {
		return true, false // announced, with the reason, when it was cancelled
	}
	text := cmp.Or(was.What, "the rollout") + " " + kinds.EndWords[how]
	if why != "" && how != "succeeded" {
		text += ": " + why
	}
	level := kinds.Level("")
	if c := p.Ready(); how == "succeeded" && c.Reason == plan.ReasonNodesNotReady {
		text, level = text+" according to AWS, but "+c.Message, kinds.Warning
	}
	id := "refresh"
	if was.Resource == step.ManagedNodegroup {
		id = "update"
	}
	t.add(Event{
		Kind: kinds.OfRollout(was.Resource, how), Level: level, Pool: report.PoolKey(p), Resource: was.Resource, Name: was.Name, Reason: p.FailureReason,
		Text: text, Facts: map[string]string{id: was.ID},
	})
	return true, how != "succeeded"
}

func rolloutFacts(r *plan.RolloutStatus) map[string]string {
	out := map[string]string{"status": r.Status, "percentage": fmt.Sprint(r.Percentage), "instancesLeft": fmt.Sprint(r.InstancesLeft)}
	if r.ID != "" {
		out["rollout"] = r.ID
	}
	return out
}
