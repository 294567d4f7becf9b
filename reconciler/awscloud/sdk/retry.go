package sdk

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// The bounds of a call's attempts and of the time between them. Nothing above this retries within a pass,
// because the next pass tries again.
const (
	maxAttempts = 3
	maxBackoff  = 5 * time.Second
	// embeddedBackoff is for the embedded emulator, which has no other clients.
	embeddedBackoff = 20 * time.Millisecond
)

// newRetryer returns the SDK's standard retryer. A write may be retried after a lost answer, although the
// first attempt may have taken effect. This is safe, because every write of package execute has the same
// result if it runs twice, has a client token, or recognizes its own work if the resource exists already.
// Any other write uses its own retryer.
func newRetryer(attempts int, backoff time.Duration) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		if attempts == 0 {
			o.MaxAttempts = maxAttempts
		}
		o.MaxBackoff = backoff
	})
}
