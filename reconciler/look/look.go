// Package look lets each attempt of a call look again at what it names, right before it is
// sent. Who decides on a call knows what to look at, and who makes it knows when: behind
// retries and the wait for AWS's limits, which may take longer than what was seen is good
// for. So the one leaves with the call's context what the other asks; neither knows the
// other.
package look

import "context"

// key holds what a call asks right before it is sent.
type key struct{}

// With has each attempt of a call made with the context ask again.
func With(ctx context.Context, again func(context.Context) error) context.Context {
	return context.WithValue(ctx, key{}, again)
}

// Again fails unless what a call names is as it was when the call was decided on.
func Again(ctx context.Context) error {
	again, _ := ctx.Value(key{}).(func(context.Context) error)
	if again == nil {
		return nil
	}
	return again(context.WithValue(ctx, key{}, nil))
}
