package sdk

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// credentialsError marks a failure to get credentials. The SDK does not distinguish it from failures of the
// call that needed them.
type credentialsError struct {
	role string
	err  error
}

func (e *credentialsError) Error() string {
	if e.role != "" {
		return "assume role " + e.role + ": " + e.err.Error()
	}
	return "get credentials: " + e.err.Error()
}

func (e *credentialsError) Unwrap() error { return e.err }

// markedCredentials marks the errors of another provider.
type markedCredentials struct {
	inner aws.CredentialsProvider
	role  string
}

// Retrieve implements aws.CredentialsProvider.
func (m markedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	v, err := m.inner.Retrieve(ctx)
	if err != nil {
		return v, &credentialsError{role: m.role, err: err}
	}
	return v, nil
}

// forgetExpired lists caches of credentials. AWS may reject credentials that have not expired by this
// machine's clock. If that clock is behind, the caches would otherwise use them until it reaches their end.
type forgetExpired []aws.CredentialsProvider

func (f forgetExpired) install(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("weir:forget-expired-credentials", f.call), middleware.Before)
}

func (f forgetExpired) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, meta, err := next.HandleInitialize(ctx, in)
	if service, operation := names(ctx); err != nil && Classify(service, operation, err).Kind == observed.Credentials {
		for _, provider := range f {
			if cache, ok := provider.(*aws.CredentialsCache); ok {
				cache.Invalidate() // the next call gets new credentials
			}
		}
	}
	return out, meta, err
}
