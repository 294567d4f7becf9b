package awscloud

import (
	"context"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/time/rate"
)

func TestBuckets(t *testing.T) {
	tests := []struct {
		share              float64
		service, operation string
		refill             rate.Limit
		burst              int
	}{
		{0.25, "ec2", "CreateLaunchTemplate", 1.25, 12},
		{0.25, "ec2", "CreateLaunchTemplateVersion", 1.25, 25},
		{0.25, "ec2", "CreateTags", 2.5, 25},
		{0.25, "eks", "CreateNodegroup", 1, 2},
		{0.25, "autoscaling", "UpdateAutoScalingGroup", 5, 20},
		{0.25, "autoscaling", "DescribeAutoScalingGroups", 20, 200},
		{0.25, "eks", "ListNodegroups", 20, 200},
		{0.001, "ec2", "CreateLaunchTemplate", 0.005, 1},
		{unlimited, "ec2", "CreateLaunchTemplate", rate.Inf, 1},
	}
	for _, tt := range tests {
		b := newThrottle(tt.share, time.Now).bucket(tt.service, tt.operation)
		if b.limiter.Limit() != tt.refill || b.limiter.Burst() != tt.burst {
			t.Errorf("%s:%s at %v: %v and %d, want %v and %d", tt.service, tt.operation, tt.share, b.limiter.Limit(), b.limiter.Burst(), tt.refill, tt.burst)
		}
	}
}

// finalize is the rest of a call: it answers with the error it holds.
type finalize struct{ err error }

func (f *finalize) HandleFinalize(context.Context, middleware.FinalizeInput) (middleware.FinalizeOutput, middleware.Metadata, error) {
	return middleware.FinalizeOutput{}, middleware.Metadata{}, f.err
}

func TestThrottlingShrinksTheBucketAndSuccessRestoresIt(t *testing.T) {
	th := newThrottle(1, time.Now)
	b := th.bucket("", "") // what a context without a client's values is counted under
	full := b.limiter.Limit()
	call := func(err error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, _, got := th.handle(ctx, middleware.FinalizeInput{}, &finalize{err})
		if (got == nil) != (err == nil) {
			t.Fatalf("got %v, want %v", got, err)
		}
	}
	call(&smithy.GenericAPIError{Code: "RequestLimitExceeded"})
	if got := b.limiter.Limit(); got != full/2 {
		t.Errorf("after one throttled call: %v, want %v", got, full/2)
	}
	if held := b.limiter.Tokens(); held >= 1 {
		t.Errorf("the bucket still holds %v", held)
	}
	call(nil)
	if got := b.limiter.Limit(); got <= full/2 || got > full {
		t.Errorf("a success left the flow at %v", got)
	}
	for range 60 {
		th.faster(b)
	}
	if got := b.limiter.Limit(); got != full {
		t.Errorf("after many successes: %v, want %v", got, full)
	}
	for range 20 {
		th.slower(b)
	}
	if got := b.limiter.Limit(); got != full*shrinkTo {
		t.Errorf("after many throttled calls: %v, want %v", got, full*shrinkTo)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := th.handle(ended, middleware.FinalizeInput{}, &finalize{}); err == nil {
		t.Error("a call was sent after its context had ended")
	}
}

func TestFreshNames(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := newFreshNames(func() time.Time { return now })
	f.add("lt-1", "", "web")
	if f.any("", "lt-2") || !f.any("lt-2", "web") {
		t.Error("fresh names are not told apart")
	}
	now = now.Add(settling - time.Second)
	if !f.any("lt-1") {
		t.Error("forgotten too soon")
	}
	now = now.Add(time.Second)
	if f.any("lt-1") {
		t.Error("fresh for too long")
	}
	f.add("lt-3")
	if len(f.made) != 1 {
		t.Errorf("old names stay: %v", f.made)
	}
	f.drop("lt-3")
	if f.any("lt-3") {
		t.Error("a dropped name is fresh")
	}
}
