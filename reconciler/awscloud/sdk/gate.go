package sdk

import (
	"context"
	"sync/atomic"

	"github.com/aws/smithy-go/middleware"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/precondition"
)

// gate runs before every call of a Client. Until the account is known, its buckets belong to the Client
// alone.
type gate struct {
	buckets atomic.Pointer[throttle]
	// yields makes reads wait for spare tokens.
	yields bool
}

func newGate(l *Limits) *gate {
	g := &gate{}
	g.buckets.Store(newThrottle(l.o))
	return g
}

// install puts the gate after the retryer, so each attempt takes a token.
func (g *gate) install(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("weir:throttle", g.handle), "weir:count-attempts", middleware.Before)
}

// handle makes an attempt wait for a token of its rate limit, and adapts the limit to the answer.
func (g *gate) handle(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	service, operation := names(ctx)
	t := g.buckets.Load()
	b := t.bucket(service, operation)
	sentAt, err := g.takeToken(ctx, t, b, operation)
	if err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, &waitError{err}
	}
	out, meta, err := next.HandleFinalize(ctx, in)
	switch {
	case err == nil:
		t.faster(b)
	case Classify(service, operation, err).Kind == observed.Throttled:
		t.slower(b, sentAt)
	}
	return out, meta, err
}

// paidKey is the context key of the payment for a call's first attempt.
type paidKey struct{}

// payment is a token that was taken before the call. Attempts run one after another, so no lock is needed.
type payment struct {
	spent    bool
	halvings int
}

// takeToken takes a token, unless the context has one.
func (g *gate) takeToken(ctx context.Context, t *throttle, b *bucket, operation string) (halvings int, err error) {
	if p, ok := ctx.Value(paidKey{}).(*payment); ok && !p.spent {
		p.spent = true
		return p.halvings, ctx.Err()
	}
	if g.yields && isRead(operation) {
		return t.awaitSpare(ctx, b)
	}
	if urgent[operation] || precondition.Looking(ctx) {
		return t.forceToken(b), ctx.Err()
	}
	return t.acquire(ctx, b)
}

// waitError says that a call was never sent, because its token would have been available only after the
// context's end.
type waitError struct{ err error }

func (e *waitError) Error() string { return "wait for the rate limit: " + e.err.Error() }
func (e *waitError) Unwrap() error { return e.err }
