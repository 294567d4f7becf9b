// Package precondition reads a resource again right before each attempt to change it. Retries and the
// wait for AWS's limits may take longer than an earlier read stays valid. The caller knows what to
// read, and the AWS client knows when. So the caller puts a function into the context of the call, and
// the client runs it before each attempt.
package precondition

import (
	"context"
	"time"
)

// Within is the maximum age of a read when the attempt is sent. AtOnce is the part of it that the fence in
// between may take, because a busy machine needs some time.
const (
	Within = 2 * time.Second
	AtOnce = 250 * time.Millisecond
)

// key is the context key of the function that a call runs before it is sent, or of looking in a call that
// such a function makes.
type key struct{}

type looking struct{}

// With makes each attempt of a call with the context run again first.
func With(ctx context.Context, again func(context.Context) error) context.Context {
	return context.WithValue(ctx, key{}, again)
}

// Check fails unless the resources of a call are unchanged since the decision to make the call. It runs the
// function of With, which reads them again, and returns nil if the context has none.
func Check(ctx context.Context) error {
	again, _ := ctx.Value(key{}).(func(context.Context) error)
	if again == nil {
		return nil
	}
	return again(context.WithValue(ctx, key{}, looking{}))
}

// Looking reports whether a call is a read right before a change. Such a call must not wait for weir's own
// limits, because its result would be outdated by then.
func Looking(ctx context.Context) bool {
	_, yes := ctx.Value(key{}).(looking)
	return yes
}
