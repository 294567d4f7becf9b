package render

import (
	"context"
	"errors"

	"github.com/weir-gitops/weir/render/kust"
)

// The memory of a process that renders is bounded by how many renders it makes at a
// time, whoever asks for them: a few small ones, and beside them a single large one.
// A render is small or large by its files, which are read before kustomize runs; a
// large one goes on where no other is at work. Else it is dropped and begun anew in its
// turn, so that those that wait hold nothing.
var (
	smallSlots = make(slots, 2)
	largeSlots = make(slots, 1)
	// lowPrioritySlots stands before largeSlots for callers that give way to others.
	lowPrioritySlots = make(slots, 1)
)

// slots let as many builds run at a time as their capacity.
type slots chan struct{}

// enter waits for a free slot, or for the end of ctx.
func (s slots) enter(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run waits for a free slot, or for the end of ctx, and does something in it.
func (s slots) run(ctx context.Context, do func() error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer func() { <-s }()
	return do()
}

// inTurn runs a build and what is done with it, which must hold nothing of it
// afterwards that is worth counting. do is called again where a build turned out not
// to be small, and grow did not give it the turn of a large one. It must not make another.
func inTurn(ctx context.Context, patient bool, do func(small bool, grow func() bool) error) error {
	slot := smallSlots
	err := slot.enter(ctx)
	if err != nil {
		return err
	}
	err = func() error {
		defer func() { <-slot }()
		return do(true, func() bool {
			if patient {
				return false
			}
			select {
			case largeSlots <- struct{}{}:
				<-slot
				slot = largeSlots
				return true
			default:
				return false
			}
		})
	}()
	if !errors.Is(err, kust.ErrLarge) {
		return err
	}
	large := func() error { return largeSlots.run(ctx, func() error { return do(false, nil) }) }
	if patient {
		return lowPrioritySlots.run(ctx, large)
	}
	return large()
}
