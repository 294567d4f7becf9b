// Package awscloud is one account and region of AWS as the reconciler sees it:
// it observes what an instance of weir owns, fills in what planning found
// missing, executes the steps of a plan and answers lookups. Beside the contract
// suite it is the only package that knows the AWS SDK.
//
// Reads are batched, so a pass over a fleet at rest costs a few pages and not a
// call for each pool. Every call passes the same three stations: a token bucket
// for its API (throttle.go), the SDK's retryer, which is the one place that
// tries again (retry.go), and the classification of its failure (errors.go).
package awscloud

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// sessionName is what CloudTrail shows for an assumed role.
const sessionName = "weir"

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
	// Limits are shared with others that reach the same account; nil: they are
	// this Cloud's own, with DefaultShare.
	Limits *Limits
	// Yields has reads wait for what the others who share the Limits leave: half of
	// what may be read at once stays theirs.
	Yields bool
	// Attempts is how often a call is tried, maxAttempts if 0.
	Attempts int
	Logger   *slog.Logger     // nil: nothing is logged
	Now      func() time.Time // nil: time.Now
	// Clock tells AWS's time; nil for Now.
	Clock func() time.Time
	// OnCall is told of every call when it has ended; nil for nobody. It is
	// called from several goroutines.
	OnCall func(CallInfo)
}

// Cloud is one account and region. It is safe for concurrent use.
type Cloud struct {
	account string
	region  string
	logger  *slog.Logger
	now     func() time.Time
	clock   func() time.Time // compared with times that AWS tells

	ec2         ec2Calls
	autoscaling autoscalingCalls
	eks         eksCalls
	ssm         ssmCalls
	iam         iamCalls

	transport  *http.Transport
	leave      func() // the limits that it shares; nil where it has its own
	calls      *callCounter
	gate       *gate
	versions   *versionCache
	fresh      *freshNames
	unknown    *refusedNames
	hooks      *hookCache
	activities activityLog
	short      shortLog
	gone       goneClusters

	mu         sync.Mutex // guards what follows
	nodegroups map[observed.NodegroupName]remembered
	updates    map[updateOf]observed.NodegroupUpdate // finished ones
}

// Open reads the SDK's configuration (environment, profiles, instance roles) as
// every AWS tool does, assumes the role if one is given, and asks once who it
// is. An account other than the expected one is an error.
func Open(ctx context.Context, o Options) (*Cloud, error) {
	c := &Cloud{
		region: o.Region, logger: o.Logger, now: o.Now, clock: o.Clock,
		calls:      newCallCounter(o.OnCall),
		versions:   newVersionCache(),
		hooks:      newHookCache(),
		nodegroups: map[observed.NodegroupName]remembered{},
		updates:    map[updateOf]observed.NodegroupUpdate{},
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.clock == nil {
		c.clock = c.now
	}
	c.short.began = c.now()
	c.fresh = newFreshNames(c.now)
	c.unknown = &refusedNames{now: c.now, names: map[string]refusedName{}}
	cfg, err := loadConfig(ctx, o, c)
	if err != nil {
		return nil, err
	}
	if c.region == "" {
		c.region = cfg.Region
	}
	if c.region == "" {
		return nil, &observed.Error{Kind: observed.Invalid, Service: "config", Operation: "Open", Code: "MissingRegion",
			Message: "no region is given: set the target's region, --region or AWS_REGION"}
	}
	c.connect(cfg, o.EndpointURL)
	who, err := newSTS(cfg, o.EndpointURL).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		c.Close()
		return nil, classify("sts", "GetCallerIdentity", err)
	}
	c.account = aws.ToString(who.Account)
	if o.Limits != nil {
		at := place{c.account, c.region, o.EndpointURL}
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

// connect makes the clients. An endpoint that is given wins over every
// convention of the SDK: a variable such as AWS_ENDPOINT_URL_EC2 must not lead a
// call elsewhere.
func (c *Cloud) connect(cfg aws.Config, endpoint string) {
	set := func(to **string) {
		if endpoint != "" {
			*to = aws.String(endpoint)
		}
	}
	c.ec2 = newEC2Calls(ec2.NewFromConfig(cfg, func(o *ec2.Options) { set(&o.BaseEndpoint) }))
	c.autoscaling = newAutoScalingCalls(autoscaling.NewFromConfig(cfg, func(o *autoscaling.Options) { set(&o.BaseEndpoint) }))
	c.eks = newEKSCalls(eks.NewFromConfig(cfg, func(o *eks.Options) { set(&o.BaseEndpoint) }))
	c.ssm = newSSMCalls(ssm.NewFromConfig(cfg, func(o *ssm.Options) { set(&o.BaseEndpoint) }))
	c.iam = newIAMCalls(iam.NewFromConfig(cfg, func(o *iam.Options) { set(&o.BaseEndpoint) }))
}

func newSTS(cfg aws.Config, endpoint string) *sts.Client {
	return sts.NewFromConfig(cfg, func(o *sts.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	})
}

// Close lets go of idle connections. The Cloud must not be used afterwards.
func (c *Cloud) Close() {
	c.transport.CloseIdleConnections()
	if c.leave != nil {
		c.leave()
	}
}

// Breather is how long it takes until three quarters of the groups' and templates'
// pages that may be read at once may be read again: then there is something for polls
// and for those that yield, and enough for a pass that a commit asks for.
func (c *Cloud) Breather() time.Duration {
	t := c.gate.buckets.Load()
	groups, templates := t.bucket("autoscaling", "DescribeAutoScalingGroups"), t.bucket("ec2", "DescribeLaunchTemplates")
	return max(t.until(groups, float64(groups.limiter.Burst())*3/4), t.until(templates, float64(templates.limiter.Burst())*3/4))
}

// Account returns the account's twelve digits, as AWS said them at Open.
func (c *Cloud) Account() string { return c.account }

// Region returns the region.
func (c *Cloud) Region() string { return c.region }

// CallCounts returns how many calls were made so far, by "service:Operation".
// A call that was tried three times counts once here and three times in
// AttemptCounts.
func (c *Cloud) CallCounts() map[string]int { return c.calls.snapshot(false) }

// AttemptCounts returns how many requests were sent so far, retries included.
func (c *Cloud) AttemptCounts() map[string]int { return c.calls.snapshot(true) }

// loadConfig builds the SDK configuration that all clients share.
func loadConfig(ctx context.Context, o Options, c *Cloud) (aws.Config, error) {
	backoff := maxBackoff
	if o.Embedded {
		backoff = embeddedBackoff
	}
	options := []func(*config.LoadOptions) error{
		config.WithLogger(sdkLogger{c.logger}),
		config.WithRetryer(func() aws.Retryer { return newRetryer(o.Attempts, backoff) }),
		config.WithHTTPClient(newBuilder()),
		config.WithAPIOptions([]func(*middleware.Stack) error{boundAnswers}),
	}
	if o.Region != "" {
		options = append(options, config.WithRegion(o.Region))
	}
	if o.Embedded {
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("weir", "weir", "")))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, &observed.Error{Kind: observed.Credentials, Service: "config", Operation: "Load", Code: "BadConfiguration",
			Message: "read the AWS configuration: " + err.Error(), Err: err}
	}
	cfg.HTTPClient, c.transport = newHTTPClient(cfg.HTTPClient)
	limits := o.Limits
	switch {
	case limits == nil && o.Embedded:
		limits = NewLimits(LimitOptions{Share: unlimited})
	case limits == nil:
		limits = NewLimits(LimitOptions{})
	}
	c.gate = newGate(limits)
	c.gate.yields = o.Yields
	cfg.APIOptions = append(cfg.APIOptions, c.calls.install, c.gate.install)
	own := cfg.Credentials
	if o.RoleARN != "" {
		provider := stscreds.NewAssumeRoleProvider(newSTS(cfg, o.EndpointURL), o.RoleARN, func(a *stscreds.AssumeRoleOptions) {
			a.RoleSessionName = sessionName
			if o.ExternalID != "" {
				a.ExternalID = aws.String(o.ExternalID)
			}
		})
		cfg.Credentials = aws.NewCredentialsCache(provider)
	}
	role := cfg.Credentials
	cfg.Credentials = aws.NewCredentialsCache(markedCredentials{inner: role, role: o.RoleARN})
	cfg.APIOptions = append(cfg.APIOptions, forgetExpired{own, role, cfg.Credentials}.install)
	return cfg, nil
}
