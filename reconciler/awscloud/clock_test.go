package awscloud_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// TestCredentialsThatExpireEarly uses a role on a machine whose clock is behind AWS's,
// so that credentials end there before they do here.
func TestCredentialsThatExpireEarly(t *testing.T) {
	e := start(t, func(o *sdk.Options) { o.RoleARN = "arn:aws:iam::123456789012:role/weir" })
	query := observed.Query{Owner: "fleet", Groups: true}
	e.observe(query)
	e.clock.Advance(2 * time.Hour)
	var refused *observed.Error
	if _, err := e.cloud.Observe(context.Background(), query); !errors.As(err, &refused) || refused.Kind != observed.Credentials {
		t.Fatalf("credentials that have ended are taken: %v", err)
	}
	e.observe(query)
}

// TestTold passes on what time it is by AWS.
func TestTold(t *testing.T) {
	var mu sync.Mutex
	var told []time.Time
	e := start(t, func(o *sdk.Options) {
		o.OnCall = func(c sdk.CallInfo) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, c.AWSTime)
		}
	})
	e.observe(observed.Query{Owner: "fleet", Groups: true})
	mu.Lock()
	defer mu.Unlock()
	if len(told) < 2 {
		t.Fatalf("%d calls", len(told))
	}
	for _, at := range told {
		if time.Since(at).Abs() > time.Minute {
			t.Errorf("AWS says that it is %s", at)
		}
	}
}
