// Package sdk makes weir's calls to AWS. It has one Client for an account and region, with the
// SDK's configuration that the clients of all services share. It knows no service but STS and no
// resource; its users decide what they call, and why.
//
// # Terms
//
// A call is one operation that a caller requests; an attempt is one request of it on the wire. A
// bucket holds the tokens that attempts take. A spare call leaves half of its bucket to others. A
// list is an answer of several pages.
//
// # What every call passes
//
//   - throttle.go: each attempt takes a token of its API's bucket first. AWS's limits belong to the
//     whole account, so weir takes a fraction of them; "too fast" halves the flow, and each success
//     gives a little back. Several roles in one account share its Limits.
//   - fence.go: where several daemons share the accounts, each attempt that may change something
//     starts only while this one's lease lasts, and is cut before the lease ends.
//   - retry.go: the SDK's retryer, the only code that tries again. Nothing above it
//     repeats a call within a pass: the next pass is the next try.
//   - bounds.go: no answer of any endpoint is larger, longer or deeper than weir accepts, and no
//     list is endless.
//   - errors.go: a failure is classified once, by AWS's code, and is an observed.Error
//     from then on. A missing permission names the IAM action; hints.go says in words what
//     a mistyped region or missing credentials look like.
//   - count.go: it counts calls and attempts, and OnCall gets each.
//
// Credentials that AWS calls expired are forgotten (credentials.go): the clock of this
// machine may be behind. No redirect is followed, and what the SDK logs goes to weir's log
// (http.go, logging.go), without the base64 in which user data would be (blobs.go).
package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Options say which account and region to open, and how.
type Options struct {
	Region string
	// EndpointURL replaces all service endpoints; empty leaves them to the
	// SDK's conventions, AWS_ENDPOINT_URL among them.
	EndpointURL string
	// RoleARN is assumed with the process's own credentials where not empty.
	RoleARN    string
	ExternalID string
	// AccountID is the expected account; empty accepts any.
	AccountID string
	// Embedded opens the embedded AWS: with fixed credentials, and without
	// limits on the client's side, unless Limits are given.
	Embedded bool
	// Transport answers requests in place of the network; nil: the network.
	Transport httpbody.Doer
	// Limits are shared with others that reach the same account; nil: they are
	// this Client's own, with defaultShare.
	Limits *Limits
	// Yields makes reads wait for what other users of the Limits leave: half of
	// what may be read at once stays theirs.
	Yields bool
	// Fence is asked before each attempt that may change AWS; nil: none may be kept back.
	Fence Fence
	// Attempts bounds the attempts of a call. Zero means maxAttempts.
	Attempts int
	Logger   *slog.Logger     // nil: nothing is logged
	Now      func() time.Time // nil: time.Now
	// Clock gives AWS's time; nil for Now.
	Clock func() time.Time
	// OnCall gets every call when it has ended; nil for no listener. It is called from
	// several goroutines.
	OnCall func(CallInfo)
}

// Client reaches one account and region. It is safe for concurrent use.
type Client struct {
	// Config is for the clients of services, which Endpoint goes with.
	Config   aws.Config
	Endpoint *string // nil: the SDK's conventions
	Logger   *slog.Logger
	Now      func() time.Time
	Clock    func() time.Time // compared with times that AWS tells

	account   string
	transport *http.Transport
	leave     func() // the limits that it shares; nil where it has its own
	calls     *callCounter
	gate      *gate
}

// Open reads the SDK's configuration (environment, profiles, instance roles) as
// every AWS tool does, assumes the role if one is given, and asks once who it
// is. An account other than the expected one is an error.
func Open(ctx context.Context, o Options) (*Client, error) {
	c, err := Load(ctx, o)
	if err != nil {
		return nil, err
	}
	if c.Region() == "" {
		return nil, &observed.Error{Kind: observed.Invalid, Service: "config", Operation: "Open", Code: "MissingRegion",
			Message: "no region is given: set the target's region, --region or AWS_REGION"}
	}
	who, err := newSTS(c.Config, c.Endpoint).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		c.Close()
		return nil, Classify("sts", "GetCallerIdentity", err)
	}
	c.account = aws.ToString(who.Account)
	if o.Limits != nil {
		at := limitKey{c.account, c.Region(), o.EndpointURL}
		c.gate.buckets.Store(o.Limits.of(at))
		c.leave = sync.OnceFunc(func() { o.Limits.leave(at) })
	}
	if o.AccountID != "" && o.AccountID != c.account {
		c.Close()
		return nil, &observed.Error{Kind: observed.Credentials, Service: "sts", Operation: "GetCallerIdentity", Code: "WrongAccount",
			Message: fmt.Sprintf("the credentials are of account %s, and account %s is configured", c.account, o.AccountID)}
	}
	return c, nil
}

// Close closes idle connections. The Client must not be used afterwards.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	if c.leave != nil {
		c.leave()
	}
}

// UntilSpare returns the time until three quarters of the groups' and templates' pages that may be
// read at once may be read again. Then polls and yielding calls have tokens, and so does a pass
// that a commit starts.
func (c *Client) UntilSpare() time.Duration {
	t := c.gate.buckets.Load()
	groups, templates := t.bucket("autoscaling", "DescribeAutoScalingGroups"), t.bucket("ec2", "DescribeLaunchTemplates")
	return max(t.until(groups, float64(groups.limiter.Burst())*3/4), t.until(templates, float64(templates.limiter.Burst())*3/4))
}

// Account returns the account's twelve digits, as AWS said them at Open.
func (c *Client) Account() string { return c.account }

// Region returns the region.
func (c *Client) Region() string { return c.Config.Region }

// CallCounts returns how many calls were made so far, by "service:Operation".
// A call that was tried three times counts once here and three times in
// AttemptCounts.
func (c *Client) CallCounts() map[string]int { return c.calls.snapshot(false) }

// AttemptCounts returns how many requests were sent so far, retries included.
func (c *Client) AttemptCounts() map[string]int { return c.calls.snapshot(true) }

// TakeSpare pays for one attempt at a call that can wait for another pass, where a spare
// token is left. The call is to be made with the context that is returned.
func (c *Client) TakeSpare(ctx context.Context, service, operation string) (paid context.Context, ok bool) {
	t := c.gate.buckets.Load()
	halvings, ok := t.trySpare(t.bucket(service, operation))
	return context.WithValue(ctx, paidKey{}, &payment{halvings: halvings}), ok
}
