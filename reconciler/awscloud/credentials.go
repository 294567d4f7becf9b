package awscloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// credentialsError marks a failure to get credentials at all, which the SDK
// otherwise mixes with failures of the call that needed them.
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
