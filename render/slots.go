package render

import (
	"context"
	"errors"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/slot"
)

// The memory of a process that renders is bounded by how many renders it makes at a
// time, for all callers: a few small ones, and a single large one. A render is small or
// large by its files, which are read before kustomize runs. A large one goes on if the
// large slot is free. If not, it is dropped and starts again once it has the slot, so
// that renders that wait hold nothing.
//
// Pull requests never delay followed commits: one small slot is not theirs, and a large
// render of a pull request is dropped as soon as a followed commit needs the slot. It
// starts again afterwards.
var (
	smallSlots = slot.New(slot.Options{Slots: 2, Reserved: 1})
	largeSlots = slot.New(slot.Options{Slots: 1, Preempt: true})
)

// inTurn runs a build and what is done with it, which must hold nothing of it
// afterwards that is worth counting. do is called again if a build turned out not
// to be small, and grow did not give it the large slot, and if the large slot was taken
// from it. It must not make another.
func inTurn(ctx context.Context, who slot.Caller, do func(ctx context.Context, small bool, grow func() bool) error) error {
	err := inSmall(ctx, who, do)
	if !errors.Is(err, kust.ErrLarge) {
		return err
	}
	for {
		own, s, err := largeSlots.Enter(ctx, who)
		if err != nil {
			return err
		}
		err = do(own, false, nil)
		preempted := err != nil && ctx.Err() == nil && errors.Is(context.Cause(own), slot.ErrPreempted)
		s.Leave()
		if !preempted {
			return err
		}
	}
}

// inSmall runs a build in a small slot, from which it may move to the large one. A build
// of a pull request does not move: it could not be dropped without losing ctx.
func inSmall(ctx context.Context, who slot.Caller, do func(ctx context.Context, small bool, grow func() bool) error) error {
	_, s, err := smallSlots.Enter(ctx, who)
	if err != nil {
		return err
	}
	defer func() { s.Leave() }()
	return do(ctx, true, func() bool {
		if who.Class == slot.Proposed {
			return false
		}
		_, large := largeSlots.TryEnter(ctx, who)
		if large == nil {
			return false
		}
		s.Leave()
		s = large
		return true
	})
}
