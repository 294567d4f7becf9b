package reconciler_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
)

// In real passes, each stage sets the fields that the table says, and no stage does so before.
func TestStagesMakeFactsInPasses(t *testing.T) {
	w := newWorld(t)
	all := manyTargets(150)
	w.settle(all...)
	changed := groupPool("pool-007", "m5.large", 1)
	changed.Group.MaxSize++
	all[7] = target("t007", changed)
	makers := map[string]string{} // stages by fact
	made := map[string]bool{}
	for _, pass := range []struct {
		name string
		mode reconciler.Mode
		look bool
	}{{"a plan", reconciler.PlanOnly, false}, {"a full pass", reconciler.Apply, false}, {"a partial pass", reconciler.Apply, true}} {
		before := map[string]bool{}
		stages, err := w.scope.Stages(t.Context(), reconciler.Batch{Targets: all, Partial: pass.look}, pass.mode)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range stages {
			for _, f := range s.Makes {
				makers[f] = s.Stage
			}
			for f := range s.Set {
				if !before[f] && makers[f] != s.Stage {
					t.Errorf("%s: the stage %s sets %s", pass.name, s.Stage, f)
				}
			}
			for f := range before {
				if !s.Set[f] {
					t.Errorf("%s: after the stage %s, %s is not set any more", pass.name, s.Stage, f)
				}
			}
			before = s.Set
		}
		maps.Copy(made, before)
		if before["applier"] != (pass.mode == reconciler.Apply) {
			t.Errorf("%s: it can write: %t", pass.name, before["applier"])
		}
		if before["partial"] != pass.look {
			t.Errorf("%s: it read a part: %t", pass.name, before["partial"])
		}
	}
	fields := reconciler.FactFields()
	slices.Sort(fields)
	if got := slices.Sorted(maps.Keys(made)); !slices.Equal(fields, got) {
		t.Errorf("set in passes: %v, of %v", got, fields)
	}
}
