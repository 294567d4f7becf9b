// Package sdk makes weir's calls to AWS. It has one Client for an account and region, with an SDK
// configuration that the clients of all services share. It knows only the service STS, and no resources. Its
// users decide which calls they make.
//
// # Terms
//
// A call is one operation that a caller requests. An attempt is one HTTP request of a call. A bucket
// contains the tokens that attempts take. A spare call leaves half of its bucket to other calls. A list is
// an answer of several pages.
//
// # Parts of every call
//
//   - throttle.go: each attempt first takes a token of its API's bucket. AWS's limits apply to
//     the whole account, so weir takes a fraction of them. A throttling error halves the flow of
//     tokens, and each success restores a little. Several roles in one account share its Limits.
//   - fence.go: if several daemons share the accounts, an attempt that may change something
//     starts only while this daemon has the lease, and is cut off before the lease ends.
//   - retry.go: the SDK's retryer, the only code that retries. Nothing above it repeats a call
//     within a pass, because the next pass tries again.
//   - bounds.go: no answer of any endpoint is larger, longer or deeper than weir accepts, and no
//     list is endless.
//   - errors.go: an error is classified once, by AWS's code, and is an observed.Error from then
//     on. A missing permission names the IAM action. hints.go explains the errors that a mistyped
//     region or missing credentials cause.
//   - count.go: counts calls and attempts, and passes each call to OnCall.
//
// Credentials that AWS reports as expired are dropped (credentials.go), because the clock of this machine
// may be behind. No redirect is followed. The SDK's log messages go to weir's log (http.go, logging.go),
// without long base64, which may be user data (blobs.go).
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

// Options define the account and region to open.
type Options struct {
	Region string
	// EndpointURL replaces all service endpoints. If it is empty, the SDK's conventions apply, such as
	// AWS_ENDPOINT_URL.
	EndpointURL string
	// RoleARN is the role to assume with the process's own credentials. It may be empty.
	RoleARN    string
	ExternalID string
	// AccountID is the expected account. If it is empty, any account is accepted.
	AccountID string
	// Embedded opens the embedded emulator: with fixed credentials, and without client-side limits unless
	// Limits are set.
	Embedded bool
	// Transport answers requests instead of the network. It may be nil.
	Transport httpbody.Doer
	// Limits are shared with other clients of the same account. If it is nil, the Client has its own, with
	// DefaultShare.
	Limits *Limits
	// Yields makes reads use only tokens that other users of the Limits leave: half of each bucket stays for
	// them.
	Yields bool
	// Fence is checked before each attempt that may change AWS. It may be nil.
	Fence Fence
	// Attempts bounds the attempts of a call. Zero means maxAttempts.
	Attempts int
	Logger   *slog.Logger     // nil: nothing is logged
	Now      func() time.Time // nil: time.Now
	// Clock returns AWS's time. It defaults to Now.
	Clock func() time.Time
	// OnCall receives every ended call. It is called from several goroutines. It may be nil.
	OnCall func(CallInfo)
}

// Client accesses one account and region. It is safe for concurrent use.
type Client struct {
	// Config is for the clients of services, together with Endpoint.
	Config   aws.Config
	Endpoint *string // nil: the SDK's conventions
	Logger   *slog.Logger
	Now      func() time.Time
	Clock    func() time.Time // compared with the times in AWS's answers

	account   string
	transport *http.Transport
	leave     func() // leaves the shared limits; nil if the Client has its own
	calls     *callCounter
	gate      *gate
}

// Open loads the SDK's configuration (environment, profiles, instance roles) like every AWS tool, assumes
// the role if one is set, and asks AWS once for the account. An account other than the expected one is an
// error.
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
		c.gate.buckets.Store(o.Limits.throttleOf(at))
		c.leave = sync.OnceFunc(func() { o.Limits.leave(at) })
	}
	if o.AccountID != "" && o.AccountID != c.account {
		c.Close()
		return nil, &observed.Error{Kind: observed.Credentials, Service: "sts", Operation: "GetCallerIdentity", Code: "WrongAccount",
			Message: fmt.Sprintf("the credentials belong to account %s, but account %s is configured", c.account, o.AccountID)}
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

// UntilSpare returns the time until three quarters of the pages of groups and templates that may be read at
// once may be read again. Then polls and yielding calls have tokens, and so does a pass that a commit
// starts.
func (c *Client) UntilSpare() time.Duration {
	t := c.gate.buckets.Load()
	groups, templates := t.bucket("autoscaling", "DescribeAutoScalingGroups"), t.bucket("ec2", "DescribeLaunchTemplates")
	return max(t.until(groups, float64(groups.limiter.Burst())*3/4), t.until(templates, float64(templates.limiter.Burst())*3/4))
}

// Account returns the account's twelve digits, as AWS returned them at Open.
func (c *Client) Account() string { return c.account }

// Region returns the region.
func (c *Client) Region() string { return c.Config.Region }

// CallCounts returns the number of calls so far, by "service:Operation". A call with three attempts counts
// once here and three times in AttemptCounts.
func (c *Client) CallCounts() map[string]int { return c.calls.snapshot(false) }

// AttemptCounts returns the number of requests so far, including retries.
func (c *Client) AttemptCounts() map[string]int { return c.calls.snapshot(true) }

// TakeSpare takes a token for one attempt of a call that can wait for another pass, if a spare token is
// left. The call must use the returned context.
func (c *Client) TakeSpare(ctx context.Context, service, operation string) (paid context.Context, ok bool) {
	t := c.gate.buckets.Load()
	halvings, ok := t.trySpare(t.bucket(service, operation))
	return context.WithValue(ctx, paidKey{}, &payment{halvings: halvings}), ok
}
