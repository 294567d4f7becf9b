package reconciler_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

// throttledWorld is an AWS that throttles by its own limits, reached within
// weir's, which are that share of AWS's: who waits for a token moves the clock.
func throttledWorld(t testing.TB, share float64) *world {
	t.Helper()
	clock := awsemu.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	srv, err := awsemu.New(awsemu.Options{Clock: clock, Throttle: true, Quotas: map[string]int{"auto-scaling-groups": 20000, "launch-templates": 20000}})
	if err != nil {
		t.Fatal(err)
	}
	namedThings(t, srv)
	w := serve(t, srv, clock)
	limits := sdk.NewLimits(sdk.LimitOptions{Share: share, Now: clock.Now, Sleep: func(_ context.Context, d time.Duration) error {
		clock.Advance(d)
		return nil
	}})
	w.scope = within(w, limits)
	return w
}

// within is a process in front of the account that keeps these limits.
func within(w *world, limits *sdk.Limits) *reconciler.Scope {
	w.t.Helper()
	cloud, err := awscloud.Open(context.Background(), sdk.Options{Region: testRegion, EndpointURL: w.url, Embedded: true, Limits: limits, Now: w.clock.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	// One pool after the other, so that moving the clock moves it for one alone.
	return reconciler.NewScope(reconciler.Options{Cloud: cloud, Resolver: resolve.New(cloud, w.clock.Now), Now: w.clock.Now, Concurrency: 1})
}

// answered counts the calls since the last reset, and the throttled ones.
func (w *world) answered() (all, throttled int) {
	for _, c := range w.srv.Calls() {
		all++
		if c.ErrorCode == "RequestLimitExceeded" || strings.HasPrefix(c.ErrorCode, "Throttling") {
			throttled++
		}
	}
	return all, throttled
}

// firstSeen is when a call that mentions the name of a pool was answered first.
func (w *world) firstSeen(operation, name string) time.Time {
	for _, c := range w.srv.Calls() {
		if c.Operation == operation && c.ErrorCode == "" && strings.Contains(c.Body, name) {
			return c.Time
		}
	}
	return time.Time{}
}

// While nobody else calls AWS, 500 new pools converge within 1.2 times what its buckets
// permit, with no more than 2 % of the calls throttled, and so do their rollouts (with make
// soak). A small target beside the large one is served in its first seconds.
func TestFiveHundredPoolsUnderThrottling(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set, as make race does: thousands of calls take minutes under the race detector")
	}
	const n = 500
	w := throttledWorld(t, 0)
	blue := fleet(n)
	green := target("green", groupPool("small", "m5.large", 1))
	phase := func(name, operation string, most, wait time.Duration, targets ...reconciler.Desired) {
		t.Helper()
		w.srv.ResetCalls()
		began := w.clock.Now()
		for !converged(w.must(reconciler.Apply, targets...)) && w.clock.Now().Sub(began) < 2*most {
			w.clock.Advance(2 * time.Second)
		}
		took := w.clock.Now().Sub(began)
		all, throttled := w.answered()
		small := w.firstSeen(operation, "small").Sub(began)
		t.Logf("%s: %d calls, %d throttled, converged after %v, the small target's turn after %v", name, all, throttled, took.Round(time.Second), small.Round(time.Second))
		if throttled*50 > all {
			t.Errorf("%s: %d of %d calls were throttled", name, throttled, all)
		}
		if took > most {
			t.Errorf("%s took %v, want %v at most", name, took, most)
		}
		if small > wait {
			t.Errorf("%s: the small target waited for %v", name, small)
		}
	}
	// CreateLaunchTemplate is the narrowest that is published: 50 at once and 5 a second.
	phase("made", "CreateAutoScalingGroup", 108*time.Second, 10*time.Second, blue, green)
	if os.Getenv("WEIR_SOAK") == "" {
		return
	}
	blue, green = fleet(n), target("green", groupPool("small", "m5.large", 1))
	for _, d := range []reconciler.Desired{blue, green} {
		for i := range d.Set.Pools {
			d.Set.Pools[i].LaunchTemplate.Data.KeyName = "another"
		}
	}
	// A version, a refresh and the default of each. Before anything is written the
	// newest refresh of each group is read, for which Auto Scaling has no batch.
	phase("rolled", "StartInstanceRefresh", 400*time.Second, 90*time.Second, blue, green)
}

// A weir that wants more than AWS gives finds its pace: few of the calls are
// throttled, and 500 pools take little longer than AWS's own limits say.
func TestTooLargeAShareUnderThrottling(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set, as make race does: thousands of calls take minutes under the race detector")
	}
	w := throttledWorld(t, 1.6)
	w.srv.ResetCalls()
	began := w.clock.Now()
	w.settle(fleet(500))
	took := w.clock.Now().Sub(began)
	all, throttled := w.answered()
	t.Logf("%d calls, %d throttled, converged after %v", all, throttled, took.Round(time.Second))
	if throttled == 0 || throttled*50 > all {
		t.Errorf("%d of %d calls were throttled", throttled, all)
	}
	// EC2 takes 50 at once and 5 a second: 90 s.
	if took > 4*time.Minute {
		t.Errorf("500 pools took %v", took)
	}
}

// Two roles of one account keep its limits together, and converge beside each other.
func TestRolesOfAnAccountShareItsLimits(t *testing.T) {
	w := throttledWorld(t, 0)
	limits := sdk.NewLimits(sdk.LimitOptions{Share: 0.25, Now: w.clock.Now, Sleep: func(_ context.Context, d time.Duration) error {
		w.clock.Advance(d)
		return nil
	}})
	scopes := []*reconciler.Scope{within(w, limits), within(w, limits)}
	var targets []reconciler.Desired
	for i, name := range []string{"blue", "green"} {
		var pools []intent.Pool
		for j := range 30 {
			pools = append(pools, groupPool(fmt.Sprintf("%s-%d-%d", name, i, j), "m5.large", 1))
		}
		d := target(name, pools...)
		d.Whole = false
		targets = append(targets, d)
	}
	began := w.clock.Now()
	for i, s := range scopes {
		for range 3 {
			if _, err := s.Pass(context.Background(), targets[i:i+1], reconciler.Apply); err != nil {
				t.Fatal(err)
			}
			w.clock.Advance(time.Second)
		}
	}
	// 60 templates, of which 12 at once: 48 at 1.25 a second.
	if took := w.clock.Now().Sub(began); took < 38*time.Second {
		t.Errorf("60 pools took %v: two roles had more than the share of an account", took)
	}
	if _, throttled := w.answered(); throttled > 0 {
		t.Errorf("%d calls were throttled", throttled)
	}
}
