package reconciler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// TestMoveCrash stops a move between two weirs at each of its writes, before and
// after the effect. In the end weir removes the former owner's tags and lifecycle hooks
// that the new one does not want, and the former owner writes nothing.
func TestMoveCrash(t *testing.T) {
	t.Parallel()
	foreign := intent.LifecycleHook{Name: "boot", LifecycleTransition: launching, HeartbeatTimeout: 30, DefaultResult: "CONTINUE"}
	for name, pool := range map[string]func(hooks ...intent.LifecycleHook) intent.Pool{
		"group": func(hooks ...intent.LifecycleHook) intent.Pool {
			p := groupPool("web", "m5.large", 1)
			p.Group.LifecycleHooks = hooks
			return p
		},
		"nodegroup": func(hooks ...intent.LifecycleHook) intent.Pool {
			p := nodegroupPool("ng", 1)
			p.Nodegroup.LifecycleHooks = hooks
			return p
		},
	} {
		former := pool(drainHook(60), foreign)
		former.PruneDisabled = true
		old, next := target("blue", former), owned(target("blue", pool(drainHook(60))), "next")
		prepare := func(t *testing.T) (*world, string) {
			w := newWorld(t)
			w.settle(old)
			w.srv.ResetCalls()
			if name == "nodegroup" {
				return w, w.behind()
			}
			return w, "web"
		}
		calm, _ := prepare(t)
		calm.must(reconciler.Apply, adopting(next, testInstance))
		writes := len(calm.wrote())
		if writes < 4 {
			t.Fatalf("%s: a move that removes tags wrote only %v", name, calm.wrote())
		}
		for n := range writes {
			for what, kind := range map[string]awsemu.FaultKind{"before": awsemu.CutBefore, "after": awsemu.LoseAnswer} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, n+1, what), func(t *testing.T) {
					w, group := prepare(t)
					remove := w.srv.Faults().Add(awsemu.Fault{Kind: kind, WritesOnly: true, After: n})
					_, _ = w.pass(reconciler.Apply, adopting(next, testInstance)) // may fail: that is the point
					remove()
					w.restart()
					w.must(reconciler.Apply, adopting(next, testInstance))
					if owner := w.groupTag(group, observed.TagOwner); owner != "next" {
						t.Errorf("%s belongs to %q after the second attempt", group, owner)
					}
					w.settle(next)
					if got := w.groupTag(group, observed.TagPrune); got != "" {
						t.Errorf("%s is left with the tag %s: %s", group, observed.TagPrune, got)
					}
					if diff := cmp.Diff([]string{"drain 60 CONTINUE"}, w.hooks(group)); diff != "" {
						t.Errorf("hooks of %s (-want +got):\n%s", group, diff)
					}
					w.srv.ResetCalls()
					w.restart()
					w.must(reconciler.Apply, old)
					if wrote := w.wrote(); len(wrote) > 0 {
						t.Errorf("the former owner wrote %v", wrote)
					}
				})
			}
		}
		if !slices.Contains(calm.wrote(), "DeleteTags") {
			t.Errorf("%s: no tag was removed: %v", name, calm.wrote())
		}
	}
}
