package sdk

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// CallInfo describes one ended call, for metrics and spans.
type CallInfo struct {
	Service   string // ec2, autoscaling, eks, ssm, sts, iam
	Operation string
	// Kind is empty if the call succeeded.
	Kind     observed.ErrorKind
	Attempts int
	// Throttled is the number of attempts that AWS throttled.
	Throttled int
	Started   time.Time
	Duration  time.Duration
	// AWSTime is the current time of AWS's clock. It is zero before an answer with a date.
	AWSTime time.Time
}

// callCounter counts calls and attempts in every client's middleware stack.
type callCounter struct {
	onCall func(CallInfo)

	mu       sync.Mutex
	calls    map[string]int
	attempts map[string]int
}

func newCallCounter(onCall func(CallInfo)) *callCounter {
	return &callCounter{onCall: onCall, calls: map[string]int{}, attempts: map[string]int{}}
}

func (c *callCounter) snapshot(attempts bool) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if attempts {
		return maps.Clone(c.attempts)
	}
	return maps.Clone(c.calls)
}

// attemptsKey is the context key of the *attempts of a call.
type attemptsKey struct{}

// attempts counts the attempts of a call. They run one after another, so no lock is needed.
type attempts struct{ made, throttled int }

// countKey is the context key of the counter of Counting.
type countKey struct{}

// Counting returns a context for one call, and a function that returns how often the call was sent. If AWS
// rejects the first request because a resource exists, this call did not make it.
func Counting(ctx context.Context) (counted context.Context, sent func() int) {
	n := new(int)
	return context.WithValue(ctx, countKey{}, n), func() int { return *n }
}

// install adds the counters: for calls at the start of the stack, so once, and for attempts after the
// retryer, so once for each request.
func (c *callCounter) install(stack *middleware.Stack) error {
	if err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("weir:count-calls", c.call), middleware.After); err != nil {
		return err
	}
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("weir:count-attempts", c.attempt), "Retry", middleware.After)
}

// call counts a call, and passes its duration, attempts and error to onCall.
func (c *callCounter) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	started := time.Now()
	service, operation := names(ctx)
	var tried attempts
	out, meta, err := next.HandleInitialize(context.WithValue(ctx, attemptsKey{}, &tried), in)
	c.mu.Lock()
	c.calls[service+":"+operation]++
	c.mu.Unlock()
	if c.onCall != nil {
		info := CallInfo{Service: service, Operation: operation, Attempts: tried.made, Throttled: tried.throttled, Started: started, Duration: time.Since(started)}
		// Assumed of AWS: answers-tell-the-time.
		serverTime, ok := awsmiddleware.GetServerTime(meta)
		if at, known := awsmiddleware.GetResponseAt(meta); ok && known {
			info.AWSTime = serverTime.Add(time.Since(at))
		}
		if err != nil && !WouldSucceed(err) {
			info.Kind = Classify(service, operation, err).Kind
		}
		c.onCall(info)
	}
	return out, meta, err
}

// attempt counts an attempt of a call, and whether AWS throttled it.
func (c *callCounter) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	service, operation := names(ctx)
	c.mu.Lock()
	c.attempts[service+":"+operation]++
	c.mu.Unlock()
	if n, ok := ctx.Value(countKey{}).(*int); ok {
		*n++
	}
	out, meta, err := next.HandleFinalize(ctx, in)
	if tried, ok := ctx.Value(attemptsKey{}).(*attempts); ok {
		tried.made++
		if err != nil && Classify(service, operation, err).Kind == observed.Throttled {
			tried.throttled++
		}
	}
	return out, meta, err
}

// names returns the service in the spelling of IAM actions, and the operation.
func names(ctx context.Context) (service, operation string) {
	service = strings.ToLower(strings.ReplaceAll(awsmiddleware.GetServiceID(ctx), " ", ""))
	return strings.TrimSuffix(service, "v2"), awsmiddleware.GetOperationName(ctx)
}
