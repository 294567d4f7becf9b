package sdk

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// sessionName is the session name of an assumed role, which CloudTrail shows.
const sessionName = "weir"

// Load returns a Client that has made no request yet. Its account is still unknown.
func Load(ctx context.Context, o Options) (*Client, error) {
	c := &Client{Logger: o.Logger, Now: o.Now, Clock: o.Clock, calls: newCallCounter(o.OnCall)}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Clock == nil {
		c.Clock = c.Now
	}
	if o.EndpointURL != "" {
		c.Endpoint = aws.String(o.EndpointURL)
	}
	cfg, err := config.LoadDefaultConfig(ctx, loadOptions(o, c.Logger)...)
	if err != nil {
		return nil, &observed.Error{Kind: observed.Credentials, Service: "config", Operation: "Load", Code: "BadConfiguration",
			Message: "read the AWS configuration: " + err.Error(), Err: err}
	}
	cfg.HTTPClient, c.transport = newHTTPClient(cfg.HTTPClient, o.Transport)
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
		provider := stscreds.NewAssumeRoleProvider(newSTS(cfg, c.Endpoint), o.RoleARN, func(a *stscreds.AssumeRoleOptions) {
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
	if o.Fence != nil {
		cfg.APIOptions = append(cfg.APIOptions, fenced{o.Fence}.install)
	}
	c.Config = cfg
	return c, nil
}

// loadOptions returns the options with which the SDK loads its configuration.
func loadOptions(o Options, logger *slog.Logger) []func(*config.LoadOptions) error {
	backoff := maxBackoff
	if o.Embedded {
		backoff = embeddedBackoff
	}
	options := []func(*config.LoadOptions) error{
		config.WithLogger(sdkLogger{logger}),
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
	return options
}

func newSTS(cfg aws.Config, endpoint *string) *sts.Client {
	return sts.NewFromConfig(cfg, func(o *sts.Options) { Reach(&o.BaseEndpoint, endpoint) })
}

// Reach sets the endpoint of a service's client. A configured endpoint wins over the SDK's conventions, so
// that a variable such as AWS_ENDPOINT_URL_EC2 cannot redirect a call.
func Reach(of **string, endpoint *string) {
	if endpoint != nil {
		*of = endpoint
	}
}
