package commits

import (
	"maps"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
)

// removedText is all that can be said of a target that a commit takes away: weir
// deletes nothing that Git no longer mentions.
const removedText = "the commit takes this target away; what it has in AWS stays, and is reported"

// unfinished are the pools that a superseded commit was still changing on a target:
// the commit that replaced it answers for them.
func unfinished(old *track, target string) map[string]step.Verb {
	if old == nil || old.Targets[target] == nil || old.Targets[target].State == forge.Success {
		return nil
	}
	return maps.Clone(old.Targets[target].Pools)
}

// failed are the targets on which a superseded commit failed: what Git says there is not
// what AWS holds, also by the commit that replaced it.
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

// drop takes a commit out of a list, and returns it if it was there.
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
