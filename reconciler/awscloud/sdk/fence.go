package sdk

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/smithy-go/middleware"

	"github.com/weir-gitops/weir/reconciler/precondition"
)

// Fence decides whether this process may change the Client's account. AWS has no fencing tokens that would
// reject calls of a former owner, so each attempt checks the Fence right before it is sent. It is safe for
// concurrent use.
type Fence interface {
	// MayBegin fails unless an attempt may be sent now.
	MayBegin() error
	// Until returns the time at which a sent attempt must be cut off, unless Until returns a later time by
	// then.
	Until() time.Time
}

// mayChange reports whether an operation may change something in AWS. This is true for every operation that
// is not known as a read, including dry runs, because only the request shows whether it is one.
func mayChange(service, operation string) bool {
	return !isRead(operation) && !harmless[service+":"+operation]
}

// isRead reports whether an operation only reads, by the prefix of its name. The rate limits use it, and so
// does the fence, which lets reads pass: an operation with any other name counts as a change.
func isRead(operation string) bool {
	for _, prefix := range []string{"Describe", "List", "Get"} {
		if strings.HasPrefix(operation, prefix) {
			return true
		}
	}
	return false
}

// harmless lists the operations that only read or return credentials, although their names do not show it.
var harmless = map[string]bool{"kms:Decrypt": true, "sts:AssumeRole": true}

// fenced checks a Fence before calls that may change AWS.
type fenced struct{ Fence }

// install puts the fence after the signature, and so after the retryer and the wait for a token. Only the
// network comes after it.
func (f fenced) install(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("weir:fence", f.handle), "Signing", middleware.After)
}

// handle sends an attempt that may change AWS only after awaitPermission, and cuts it off when the fence's
// time is over. Reads pass.
func (f fenced) handle(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	if !mayChange(names(ctx)) {
		return next.HandleFinalize(ctx, in)
	}
	if err := f.awaitPermission(ctx); err != nil {
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
			timer.Reset(min(left, lookEvery)) // the lease was renewed meanwhile, or may be lost
		}
	}()
	out, meta, err := next.HandleFinalize(ctx, in)
	if err != nil && errors.Is(context.Cause(ctx), errCut) {
		err = &fenceError{err: errCut, sent: true}
	}
	return out, meta, err
}

// awaitPermission fails unless an attempt may be sent now. It checks the precondition of the call, which reads
// the resources again, and then the fence. Both may take time, and neither result may be old. So it repeats
// both until the fence answers within AtOnce.
func (f fenced) awaitPermission(ctx context.Context) error {
	for range askTimes {
		if err := precondition.Check(ctx); err != nil {
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

// askTimes bounds these repetitions.
const askTimes = 5

var errSlow = errors.New("the call was not sent: reading suspensions and approvals took too long before each attempt; weir tries again in the next pass. If this repeats, the engine of the coordination or this machine is too slow")

// lookEvery is the time between two checks whether to cut off an attempt, because a lease may be lost early.
const lookEvery = time.Second

var errCut = errors.New("this weir's lease of the account and region was about to expire before AWS answered")

// fenceError is the error of an attempt that was not allowed to start, or was cut off. The result of a cut
// attempt is unknown.
type fenceError struct {
	err  error
	sent bool
}

func (e *fenceError) Error() string { return e.err.Error() }
func (e *fenceError) Unwrap() error { return e.err }

// RetryableError returns false: the SDK must not retry. The next pass reads first and decides again.
func (e *fenceError) RetryableError() bool { return false }
