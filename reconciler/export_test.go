package reconciler

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// Remembered counts what the scope remembers of things that have names. No pass may be under way.
func (s *Scope) Remembered() map[string]int {
	m := &s.memory
	out := m.refusals.Sizes()
	maps.Copy(out, map[string]int{
		"clusters": len(m.clusters), "keepers": len(m.keepers.keepers), "left": len(m.skipped.keys),
		"started": len(m.updates.started), "in service": len(m.pools.inService), "converged": len(m.pools.converged),
		"refreshes": len(m.refreshes.watched),
	})
	return out
}

// PassBatch makes a pass over a batch that applies.
func (s *Scope) PassBatch(ctx context.Context, b Batch) ([]*plan.Report, error) {
	return s.pass(ctx, b, Apply)
}

// AttachOrigins is for the test of origins.
var AttachOrigins = attachOrigins

// StageFacts are the fields of a pass's state that are set after a stage.
type StageFacts struct {
	Stage string
	Makes []string // of the stage, effects included
	Set   map[string]bool
}

// Stages makes a pass over a batch, and returns what is known after each stage.
func (s *Scope) Stages(ctx context.Context, b Batch, mode Mode) ([]StageFacts, error) {
	ps := s.newPass(b, mode)
	var out []StageFacts
	for _, st := range stages {
		if st.applies && mode != Apply {
			continue
		}
		if err := st.run(ps, ctx); err != nil {
			return nil, err
		}
		f := StageFacts{Stage: st.name, Set: map[string]bool{}}
		for _, m := range st.makes {
			f.Makes = append(f.Makes, string(m))
		}
		state := reflect.ValueOf(ps).Elem()
		for _, name := range factFields() {
			if !state.FieldByName(name).IsZero() {
				f.Set[name] = true
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// given are the fields of passState that are set before the first stage.
var given = []string{"Options", "memory", "batch", "mode", "started", "began", "reports"}

// factFields returns the fields of passState that stages set.
func factFields() []string {
	var out []string
	for f := range reflect.TypeFor[passState]().Fields() {
		if !slices.Contains(given, f.Name) {
			out = append(out, f.Name)
		}
	}
	return out
}

// FactFields is for tests of stages.
var FactFields = factFields
