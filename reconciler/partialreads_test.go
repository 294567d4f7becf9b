package reconciler

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// Only the pass right after one may read AWS partially, and only if nothing but AWS can have changed.
func TestWhenAPassReadsPartially(t *testing.T) {
	set := &intent.Set{}
	blue := func() Desired {
		return Desired{Policy: model.Policy{Target: "blue"}, Set: set, Whole: true, Commit: content.Commit{Revision: "c1"}}
	}
	for name, tc := range map[string]struct {
		batch  func(*Batch)
		before func(*Desired)
		mode   Mode
		want   bool
	}{
		"nothing is new":               {mode: Apply, want: true},
		"a full read is due":           {mode: Apply, batch: func(b *Batch) { b.Partial = false }},
		"the pass only plans":          {mode: PlanOnly},
		"somebody wants fresh answers": {mode: Apply, batch: func(b *Batch) { b.Fresh = noon.Add(time.Second) }},
		"the answers are fresh enough": {mode: Apply, batch: func(b *Batch) { b.Fresh = noon }, want: true},
		"another commit":               {mode: Apply, batch: func(b *Batch) { b.Targets[0].Commit.Revision = "c2" }},
		"another render":               {mode: Apply, batch: func(b *Batch) { b.Targets[0].Set = &intent.Set{} }},
		"the render has a fault":       {mode: Apply, batch: func(b *Batch) { b.Targets[0].Whole = false }},
		"another target":               {mode: Apply, batch: func(b *Batch) { b.Targets[0].Policy.Target = "green" }},
		"a target more":                {mode: Apply, batch: func(b *Batch) { b.Targets = append(b.Targets, blue()) }},
		"the source fails, as before":  {mode: Apply, before: func(d *Desired) { d.Err = errors.New("no") }, batch: func(b *Batch) { b.Targets[0].Err = errors.New("no") }},
	} {
		t.Run(name, func(t *testing.T) {
			last := blue()
			if tc.before != nil {
				tc.before(&last)
			}
			next := &partialRead{read: &observed.MovingSet{}}
			p := partialReads{next: next, targets: inputsOf([]Desired{last}), at: noon}
			b := &Batch{Targets: []Desired{blue()}, Partial: true}
			if tc.batch != nil {
				tc.batch(b)
			}
			got := p.due(b, tc.mode, noon.Add(time.Minute))
			if (got == next) != tc.want || got != nil && got != next {
				t.Errorf("it reads %v", got)
			}
			if p.due(b, tc.mode, noon.Add(time.Minute)) != nil {
				t.Error("a pass that failed is followed by a partial read")
			}
		})
	}
}
