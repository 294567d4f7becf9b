package sdk

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// How often a call is tried, and how long it waits at most between two tries.
// Nothing above this retries within a pass; the next pass is the next try.
const (
	maxAttempts = 3
	maxBackoff  = 5 * time.Second
	// embeddedBackoff is for the embedded AWS, which no other client loads.
	embeddedBackoff = 20 * time.Millisecond
)

// newRetryer returns the SDK's standard retryer. A write may be retried after a lost
// answer, although the first attempt may have had its effect. For every write of package
// execute is the same when done twice, or carries a client token, or knows its own work
// when AWS says that it exists already. One without any of these uses its own retryer.
func newRetryer(attempts int, backoff time.Duration) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		if attempts == 0 {
			o.MaxAttempts = maxAttempts
		}
		o.MaxBackoff = backoff
	})
}
