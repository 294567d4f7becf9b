package sdk

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/time/rate"

	"github.com/weir-gitops/weir/reconciler/precondition"
)

func buckets(share float64, now func() time.Time) *throttle {
	return NewLimits(LimitOptions{Share: share, Now: now}).throttleOf(limitKey{})
}

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
		{0.25, "ec2", "DescribeLaunchTemplates", 20, 100},
		{1, "ec2", "CreateLaunchTemplate", 5, 50},
		{1, "ec2", "CreateLaunchTemplateVersion", 5, 100},
		{0.5, "eks", "CreateNodegroup", 0.5, 2},
		{0.5, "autoscaling", "UpdateAutoScalingGroup", 2.5, 20},
		{0.25, "autoscaling", "DescribeAutoScalingGroups", 6, 60},
		{0.25, "eks", "ListNodegroups", 10, 100},
		{0.25, "kms", "Decrypt", 2.5, 10},
		{0.001, "ec2", "CreateLaunchTemplate", 0.005, 1},
		{unlimited, "ec2", "CreateLaunchTemplate", rate.Inf, 1},
		{1, "ec2", "RunInstances", 0.8, 2}, // of 5 and 2 a second: machines are launched from the same bucket
		{0.5, "ec2", "RunInstances", 0.4, 1},
	}
	for _, tt := range tests {
		b := buckets(tt.share, time.Now).bucket(tt.service, tt.operation)
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
	limits := NewLimits(LimitOptions{Share: 1})
	g := newGate(limits)
	th := limits.throttleOf(limitKey{})
	g.buckets.Store(th)
	b := th.bucket("", "") // what a context without a client's values is counted under
	full := b.limiter.Limit()
	call := func(err error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, _, got := g.handle(ctx, middleware.FinalizeInput{}, &finalize{err})
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
	th.slower(b, 0)
	if got := b.limiter.Limit(); got != full/2 {
		t.Errorf("a call that was sent before halved the flow again: %v", got)
	}
	call(nil)
	if got := b.limiter.Limit(); got <= full/2 || got > full {
		t.Errorf("a success left the flow at %v", got)
	}
	for range 100 {
		th.faster(b)
	}
	if got := b.limiter.Limit(); got != full {
		t.Errorf("after many successes: %v, want %v", got, full)
	}
	for range 20 {
		th.slower(b, b.halvings)
	}
	if got := b.limiter.Limit(); got != full*shrinkTo {
		t.Errorf("after many throttled calls: %v, want %v", got, full*shrinkTo)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := g.handle(ended, middleware.FinalizeInput{}, &finalize{}); err == nil {
		t.Error("a call was sent after its context had ended")
	}
}

// Who gives up before the turn comes takes no token from those who wait.
func TestWhoGivesUpTakesNoToken(t *testing.T) {
	v := &virtual{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	th := NewLimits(LimitOptions{Now: func() time.Time { return v.now }, Sleep: v.sleep}).throttleOf(limitKey{"1", "r", ""})
	b := th.bucket("eks", "CreateNodegroup") // one a second
	take := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := th.acquire(ctx, b)
		return err
	}
	for v.now.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		if err := take(time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	for range 60 {
		if err := take(500 * time.Millisecond); err == nil {
			t.Fatal("a call had its turn although there was no token in its time")
		}
	}
	began := v.now
	if err := take(time.Hour); err != nil || v.now.Sub(began) > 2*time.Second {
		t.Errorf("the next call waited %v, %v", v.now.Sub(began), err)
	}
}

// A wave of reads for which AWS's bucket is smaller than thought goes on at the pace at which
// AWS's fills: one complaint, and no halved flow. Further ones halve it, and so does the first
// that comes while the bucket is empty, or for a write.
func TestAWaveOfReadsFindsASmallerBucket(t *testing.T) {
	v := &virtual{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	th := NewLimits(LimitOptions{Now: func() time.Time { return v.now }, Sleep: v.sleep}).throttleOf(limitKey{"1", "r", ""})
	b := th.bucket("eks", "DescribeNodegroup")
	aws := rate.NewLimiter(10, 50)
	began, throttled := v.now, 0
	for got := 0; got < 100; {
		sentAt, err := th.acquire(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if aws.AllowN(v.now, 1) {
			got++
			th.faster(b)
			continue
		}
		throttled++
		th.slower(b, sentAt)
	}
	if took := v.now.Sub(began); throttled != 1 || took > 6*time.Second {
		t.Errorf("100 reads took %s, %d of them throttled", took, throttled)
	}
	full := b.limiter.Limit()
	v.now = v.now.Add(time.Minute) // it is full again
	if th.slower(b, b.halvings); b.limiter.Limit() != full/2 {
		t.Errorf("a second complaint left %v of %v", b.limiter.Limit(), full)
	}
	empty := th.bucket("eks", "ListNodegroups")
	for range 100 {
		if _, err := th.acquire(t.Context(), empty); err != nil {
			t.Fatal(err)
		}
	}
	write := th.bucket("eks", "CreateNodegroup")
	for name, b := range map[string]*bucket{"an empty bucket": empty, "a write": write} {
		full := b.limiter.Limit()
		if th.slower(b, 0); b.limiter.Limit() != full/2 {
			t.Errorf("%s: %v of %v is left", name, b.limiter.Limit(), full)
		}
	}
}

// virtual is a clock that sleepers move.
type virtual struct{ now time.Time }

func (v *virtual) sleep(_ context.Context, d time.Duration) error {
	v.now = v.now.Add(d)
	return nil
}

// Where others leave weir only a part of its share, it finds that out with few
// throttled calls, and takes most of what is left; once they have gone it takes
// the whole again.
func TestTheFlowFollowsWhatOthersLeave(t *testing.T) {
	for _, left := range []float64{0.8, 0.5, 0.2, 0.08} {
		v := &virtual{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		limits := NewLimits(LimitOptions{Now: func() time.Time { return v.now }, Sleep: v.sleep})
		th := limits.throttleOf(limitKey{"1", "r", ""})
		b := th.bucket("ec2", "CreateLaunchTemplate")
		// The rate that AWS has left for weir: others keep its bucket all but empty.
		aws := rate.NewLimiter(b.full*rate.Limit(left), 2)
		const calls = 3000
		throttled, began := 0, v.now
		for range calls {
			sentAt, err := th.acquire(context.Background(), b)
			if err != nil {
				t.Fatal(err)
			}
			if aws.AllowN(v.now, 1) {
				th.faster(b)
				continue
			}
			throttled++
			th.slower(b, sentAt)
		}
		got := float64(calls-throttled) / v.now.Sub(began).Seconds() / (float64(b.full) * left)
		t.Logf("%v of the share left: %.2f %% throttled, %.0f %% of it used", left, 100*float64(throttled)/calls, 100*got)
		if part := float64(throttled) / calls; part > 0.02 || throttled == 0 {
			t.Errorf("%v of the share left: %d of %d calls were throttled", left, throttled, calls)
		}
		if got < 0.6 {
			t.Errorf("%v of the share left: only %.2f of it was used", left, got)
		}
		v.now = v.now.Add(calmAfter)
		if _, err := th.acquire(context.Background(), b); err != nil || b.limiter.Limit() != b.full {
			t.Errorf("after the others have gone: %v of %v, %v", b.limiter.Limit(), b.full, err)
		}
	}
}

// An account has its buckets once, however it is reached, and apart from others;
// reads have others than writes.
func TestBucketsAreThoseOfAnAccount(t *testing.T) {
	l := NewLimits(LimitOptions{})
	one := l.throttleOf(limitKey{"1", "r", ""})
	if l.throttleOf(limitKey{"1", "r", ""}) != one || l.throttleOf(limitKey{"2", "r", ""}) == one || l.throttleOf(limitKey{"1", "s", ""}) == one {
		t.Error("accounts and regions are not told apart")
	}
	write := one.bucket("autoscaling", "CreateAutoScalingGroup")
	if one.bucket("autoscaling", "StartInstanceRefresh") != write || one.bucket("autoscaling", "DescribeInstanceRefreshes") == write {
		t.Error("Auto Scaling's writes share a bucket, and its reads have another")
	}
	if one.bucket("ec2", "CreateTags") == one.bucket("ec2", "CreateLaunchTemplate") {
		t.Error("EC2 counts each action apart")
	}
}

// The limits of one key last as long as one of its clients is open.
func TestLimitsOfPlacesThatNobodyReachesAreForgotten(t *testing.T) {
	l := NewLimits(LimitOptions{})
	for i := range 100 {
		at := limitKey{account: strconv.Itoa(i)}
		first := l.throttleOf(at)
		if l.throttleOf(at) != first {
			t.Fatal("two clients of one key share no limits")
		}
		l.leave(at)
		if l.throttles[at] != first {
			t.Fatal("they were forgotten while somebody is there")
		}
		l.leave(at)
	}
	if n := len(l.throttles) + len(l.users); n > 0 {
		t.Errorf("%d are remembered", n)
	}
}

// A call that ends a rollout takes its token at once, however many others wait for theirs,
// and those pay for it.
func TestUrgentCallsWaitForNoToken(t *testing.T) {
	v := &virtual{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	limits := NewLimits(LimitOptions{Now: func() time.Time { return v.now }, Sleep: v.sleep})
	g := newGate(limits)
	th := limits.throttleOf(limitKey{})
	b := th.bucket("autoscaling", "CreateAutoScalingGroup")
	for range 100 { // 40 at once, and 60 that wait
		if _, err := th.acquire(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	began := v.now
	for operation := range urgent {
		if th.bucket("autoscaling", operation) != b {
			t.Errorf("%s has another bucket", operation)
		}
		if _, err := g.takeToken(t.Context(), th, b, operation); err != nil {
			t.Error(err)
		}
	}
	err := precondition.Check(precondition.With(t.Context(), func(ctx context.Context) error {
		_, err := g.takeToken(ctx, th, b, "DescribeAutoScalingGroups") // what is about to be changed
		return err
	}))
	if err != nil {
		t.Error(err)
	}
	if waited := v.now.Sub(began); waited > 0 {
		t.Errorf("urgent calls waited for %s", waited)
	}
	if _, err := th.acquire(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if waited, want := v.now.Sub(began), time.Duration(len(urgent)+2)*time.Second/5; waited < want {
		t.Errorf("the next one waited for %s, want %s", waited, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.takeToken(ended, th, b, "CancelInstanceRefresh"); err == nil {
		t.Error("an urgent call was sent after its context had ended")
	}
}

// A new share holds at once. A flow that AWS has made smaller than that stays so.
func TestTheShareChanges(t *testing.T) {
	limits := NewLimits(LimitOptions{})
	th := limits.throttleOf(limitKey{})
	write, read, slow := th.bucket("ec2", "CreateTags"), th.bucket("ec2", "DescribeTags"), th.bucket("ec2", "CreateLaunchTemplate")
	th.slower(slow, 0)
	th.slower(slow, 1)
	th.slower(slow, 2)
	for _, tt := range []struct {
		share             float64
		write, read, slow rate.Limit
		writeBurst        int
	}{
		{0.5, 5, 20, 0.625, 50}, {0.1, 1, 20, 0.5, 10}, {0, 10, 20, 5, 100},
	} {
		limits.SetShare(tt.share)
		if write.limiter.Limit() != tt.write || write.limiter.Burst() != tt.writeBurst || read.limiter.Limit() != tt.read || slow.limiter.Limit() != tt.slow {
			t.Errorf("%v: %v and %d, %v, %v", tt.share, write.limiter.Limit(), write.limiter.Burst(), read.limiter.Limit(), slow.limiter.Limit())
		}
	}
}
