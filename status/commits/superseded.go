package commits

import (
	"iter"
	"maps"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// removedText is the status of a target that a commit removes. weir deletes no resource only because its
// target was removed from Git.
const removedText = "the commit removes this target; its resources in AWS stay, and weir reports them"

// unfinished returns the pools that a superseded commit, or a commit before it, was still changing on a
// target. The status of the next commit that touches the target includes them.
func unfinished(old *track, target string) map[string]step.Verb {
	if old == nil {
		return nil
	}
	switch t := old.Targets[target]; {
	case t == nil:
		return maps.Clone(old.Left[target])
	case t.State == forge.Success:
		return nil
	default:
		return maps.Clone(t.Pools)
	}
}

// inheritUnfinished copies from the superseded commit the unfinished pools of the targets that this commit
// does not touch.
func (t *track) inheritUnfinished(old *track) {
	if old == nil {
		return
	}
	for _, names := range []iter.Seq[string]{maps.Keys(old.Targets), maps.Keys(old.Left)} {
		for name := range names {
			if pools := unfinished(old, name); t.Targets[name] == nil && len(pools) > 0 {
				if t.Left == nil {
					t.Left = map[string]map[string]step.Verb{}
				}
				t.Left[name] = pools
			}
		}
	}
}

// dropConverged forgets the pools that have converged on a target that the commit does not touch.
func (t *track) dropConverged(r *plan.Report) {
	pools := t.Left[r.Target]
	if r.Plan == nil || len(pools) == 0 {
		return
	}
	for _, p := range r.Pools {
		if p.Converged {
			delete(pools, report.PoolKey(p))
		}
	}
	if len(pools) == 0 {
		delete(t.Left, r.Target)
	}
}

// failed returns the targets on which a superseded commit failed. AWS matches neither that commit nor the
// next one there.
func failed(old *track) (names []string) {
	if old == nil {
		return nil
	}
	for name, t := range old.Targets {
		if t.State == forge.Failure {
			names = append(names, name)
		}
	}
	return names
}

// drop removes a commit from a list, and returns it if it was there.
func drop(list []*track, sha string) (rest []*track, dropped *track) {
	rest = list[:0]
	for _, t := range list {
		if t.SHA == sha {
			dropped = t
		} else {
			rest = append(rest, t)
		}
	}
	return rest, dropped
}
