package sdk

import (
	"context"
	"errors"
	"time"

	"github.com/aws/smithy-go/middleware"

	"github.com/weir-gitops/weir/reconciler/precondition"
)

// Fence says whether this process may change what a Client reaches. AWS has no tokens that
// would keep a former owner's calls out, so each attempt asks right before it is sent. It
// is used by several goroutines.
type Fence interface {
	// MayBegin fails unless an attempt may be sent now.
	MayBegin() error
	// Until returns the time at which a sent attempt must be cut, unless the time has moved on by
	// then.
	Until() time.Time
}

// mayChange reports whether an operation may change something in AWS. An operation that is
// not known as a read may, and so may a dry run: only the request says whether it is one.
func mayChange(service, operation string) bool {
	return !isRead(operation) && !harmless[service+":"+operation]
}

// harmless are the operations that read, or give credentials, and are not named so.
var harmless = map[string]bool{"kms:Decrypt": true, "sts:AssumeRole": true}

// fenced puts a Fence before what may change AWS.
type fenced struct{ Fence }

// install puts it behind the signature, and so behind the retryer and the wait for a token:
// nothing but the network comes after it.
func (f fenced) install(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("weir:fence", f.handle), "Signing", middleware.After)
}

func (f fenced) handle(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	if !mayChange(names(ctx)) {
		return next.HandleFinalize(ctx, in)
	}
	if err := f.may(ctx); err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, err
	}
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	timer := time.NewTimer(min(time.Until(f.Until()), lookEvery))
	defer timer.Stop()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			left := time.Until(f.Until())
			if left <= 0 {
				cut(errCut)
				return
			}
			timer.Reset(min(left, lookEvery)) // it was renewed meanwhile, or may be lost
		}
	}()
	out, meta, err := next.HandleFinalize(ctx, in)
	if err != nil && errors.Is(context.Cause(ctx), errCut) {
		err = &fenceError{err: errCut, sent: true}
	}
	return out, meta, err
}

// may fails unless an attempt may be sent now. Reading the named resources and asking the fence may
// both take a moment, and neither result may be old then. So may repeats both until the fence
// answers at once.
func (f fenced) may(ctx context.Context) error {
	for range askTimes {
		if err := precondition.Again(ctx); err != nil {
			return err
		}
		asked := time.Now()
		if err := f.MayBegin(); err != nil {
			return &fenceError{err: err}
		}
		if time.Since(asked) < precondition.AtOnce {
			return nil
		}
	}
	return &fenceError{err: errSlow}
}

// askTimes bounds these tries.
const askTimes = 5

var errSlow = errors.New("weir cannot read people's requests fast enough to write")

// lookEvery is the time between two checks whether to cut an attempt: a lease may be lost before
// its time.
const lookEvery = time.Second

var errCut = errors.New("this weir's lease of the account and region was about to expire before AWS answered")

// fenceError is the error of an attempt that was not allowed to start, or that was cut. The result
// of a cut attempt is unknown.
type fenceError struct {
	err  error
	sent bool
}

func (e *fenceError) Error() string { return e.err.Error() }
func (e *fenceError) Unwrap() error { return e.err }

// RetryableError returns false: the SDK must not try again. The next pass reads first and decides
// again.
func (e *fenceError) RetryableError() bool { return false }
