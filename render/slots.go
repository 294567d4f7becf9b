package render

import (
	"context"
	"errors"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/slot"
)

// The memory of a process is bounded by the number of concurrent renders, for all callers: a few small ones
// and one large one. A render is small or large by the size of its files, which are read before kustomize
// runs. A large render continues if the large slot is free. Otherwise it is dropped and starts again once it
// has the slot, so that waiting renders use no memory.
//
// Pull requests never delay followed commits. One small slot is reserved for followed commits. A large render
// of a pull request is dropped as soon as a followed commit needs the slot, and starts again afterwards.
var (
	smallSlots = slot.New(slot.Options{Slots: 2, Reserved: 1})
	largeSlots = slot.New(slot.Options{Slots: 1, Preempt: true})
)

// inTurn runs a build and the work on its result in do. After do, no large part of the build may remain in
// memory. inTurn calls do again if the build is not small and grow did not get the large slot, or if the
// large slot was taken away. do must not start another build.
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

// inSmall runs a build in a small slot. The build may move to the large slot. A build of a pull request
// cannot, because it could be dropped there only by ending ctx.
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
