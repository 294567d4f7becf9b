package reconciler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	emuworld "github.com/weir-gitops/weir/reconciler/awsemu/world"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

const (
	polls      = "autoscaling:DescribeInstanceRefreshes"
	started    = "autoscaling:StartInstanceRefresh"
	groupPages = "autoscaling:DescribeAutoScalingGroups"
)

// realWorld is an AWS that takes as long as AWS and, where asked to, throttles like
// it, reached within weir's own limits: who waits for a token moves the clock.
func realWorld(t testing.TB, throttle bool) *world {
	t.Helper()
	const many = 20000
	clock := awsemu.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	srv, err := awsemu.New(awsemu.Options{Clock: clock, Timings: emuworld.Realistic(), Throttle: throttle, Quotas: map[string]int{"auto-scaling-groups": many, "launch-templates": many, "nodegroups-per-cluster": many}})
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, srv, clock)
	w.scope = within(w, sdk.NewLimits(sdk.LimitOptions{Now: clock.Now, Sleep: func(_ context.Context, d time.Duration) error {
		clock.Advance(d)
		return nil
	}}))
	w.scope.StepsFor, w.scope.Round = 30*time.Second, 5*time.Minute // the daemon's
	return w
}

// rolling is a fleet of n pools of some machines each, in that instance type.
func rolling(n int, machines int32, kind string) reconciler.Desired {
	d := fleet(n)
	for i := range d.Set.Pools {
		d.Set.Pools[i].Replicas.Value, d.Set.Pools[i].LaunchTemplate.Data.InstanceType = machines, kind
	}
	return d
}

// roll brings n pools up and has all of them roll; it returns once each has begun.
func (w *world) roll(n int, machines int32) reconciler.Desired {
	w.t.Helper()
	w.paced(30*time.Minute, rolling(n, machines, "m5.large"))
	next := rolling(n, machines, "m5.xlarge")
	w.srv.ResetCalls()
	for range 100 {
		w.paced(reconciler.DefaultMovingDelay, next)
		if w.srv.CallCounts()[started] == n {
			return next
		}
	}
	w.t.Fatalf("not all rollouts began: %v", w.srv.CallCounts())
	return next
}

// While many pools roll, their machines tell how far they are, in the pages that a
// pass reads anyway.
func TestARefreshIsAskedAboutRarely(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set, as make race does: hundreds of passes take minutes under the race detector")
	}
	const n, machines = 190, 4
	w := realWorld(t, false)
	next := w.roll(n, machines)
	// Before each is started, and again where that took longer than a pass.
	if got := w.srv.CallCounts()[polls]; got > 2*n {
		t.Errorf("%d questions to begin %d rollouts", got, n)
	}
	w.srv.ResetCalls()
	passes, last := w.paced(5*time.Minute, next)
	got := w.srv.CallCounts()
	t.Logf("%d passes in five minutes, %d calls, of them %d questions", passes, sum(got), got[polls])
	if got[polls] > 5*n {
		t.Errorf("%d questions about %d refreshes in five minutes: more than one each a minute", got[polls], n)
	}
	if want := map[string]int{groupPages: 2 * passes, "ec2:DescribeLaunchTemplates": passes}; got[groupPages] != want[groupPages] || got["ec2:DescribeLaunchTemplates"] != passes {
		t.Errorf("pages: got %v, want %v", got, want)
	}
	for _, p := range last[0].Pools {
		if p.Rollout == nil || p.Rollout.Percentage <= 0 || p.Rollout.Percentage >= 100 || p.Rollout.InstancesLeft <= 0 || p.Rollout.InstancesLeft >= machines {
			t.Fatalf("%s has come to %+v", p.Name, p.Rollout)
		}
	}
}

// The budget: fifty pools roll at under 80 calls a minute, with their beginning and
// their end, and all that is written.
func TestCallsOfFiftyRollouts(t *testing.T) {
	t.Parallel()
	const n, machines = 50, 4
	w := realWorld(t, true)
	w.paced(30*time.Minute, rolling(n, machines, "m5.large"))
	next := rolling(n, machines, "m5.xlarge")
	w.srv.ResetCalls()
	began, took := w.clock.Now(), time.Duration(0)
	for r := w.must(reconciler.Apply, next); !converged(r); r = w.must(reconciler.Apply, next) {
		w.clock.Advance(reconciler.DefaultMovingDelay)
		if took = w.clock.Now().Sub(began); took > time.Hour {
			t.Fatalf("no convergence: %v", r[0].Diagnostics)
		}
	}
	calls := w.srv.CallCounts()
	each := float64(sum(calls)) / took.Minutes()
	t.Logf("%.1f calls a minute over %v", each, took.Round(time.Second))
	if each >= 80 {
		t.Errorf("%.1f calls a minute over %v, want under 80: %v", each, took.Round(time.Second), calls)
	}
	for op, want := range map[string]int{"ec2:CreateLaunchTemplateVersion": n, started: n, "ec2:ModifyLaunchTemplate": n} {
		if calls[op] != want {
			t.Errorf("%s: got %d, want %d", op, calls[op], want)
		}
	}
}

// However many pools roll, and whenever a commit comes, until the last of them has
// rolled: it reaches AWS within the pass that is under way and its own, and neither
// waits for AWS's limits.
func TestAPushWhileManyPoolsRoll(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set, as make race does: hundreds of passes take minutes under the race detector")
	}
	const n = 190
	w := realWorld(t, true)
	next := w.roll(n, 1)
	w.srv.ResetCalls()
	var pass, push time.Duration
	timed := func() (took time.Duration, done bool) {
		began := w.clock.Now()
		r := w.must(reconciler.Apply, next)
		took = w.clock.Now().Sub(began)
		pass = max(pass, took)
		return took, converged(r)
	}
	for i := 1; i < 1000; i++ {
		if _, done := timed(); done {
			break
		}
		if i%8 == 0 { // a commit, one second after a pass
			w.clock.Advance(time.Second)
			name := fmt.Sprintf("new%03d", i)
			next = target("blue", append(next.Set.Pools, groupPool(name, "m5.large", 1))...)
			began := w.clock.Now()
			timed()
			at := w.firstSeen("CreateLaunchTemplate", name)
			if at.IsZero() {
				t.Fatalf("the push of %s did not reach AWS", name)
			}
			push = max(push, at.Sub(began))
		}
		w.clock.Advance(reconciler.DefaultMovingDelay)
	}
	all, throttled := w.answered()
	t.Logf("the longest pass took %v, the slowest push reached AWS %v after its own began; %d calls, %d throttled", pass, push, all, throttled)
	if pass+push >= 2*time.Second {
		t.Errorf("a push reached AWS after up to %v: a pass of %v before its own, and %v in that", pass+push, pass, push)
	}
	if throttled > 0 {
		t.Errorf("%d calls were throttled", throttled)
	}
}

// weir learns within a minute how a refresh ended, and at once if machines show it; meanwhile it asks at most once a minute.
func TestTheEndOfARefreshIsNoticed(t *testing.T) {
	t.Parallel()
	ended := func(status string) func(*plan.Report) bool {
		return func(r *plan.Report) bool { l := r.Pools[0].LastRollout; return l != nil && l.Status == status }
	}
	cancel := func(w *world) {
		w.check(w.groups().CancelInstanceRefresh(w.t.Context(), &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String("web")}))
	}
	broken := func(w *world) {
		w.srv.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m5.xlarge", Code: "InsufficientInstanceCapacity"})
	}
	tests := map[string]struct {
		change func(*intent.Pool)
		during func(*world) // when the first machine is replaced
		status string       // AWS's, at the end
		says   string       // a diagnostic's code
		within time.Duration
	}{
		"succeeds":                 {nil, nil, "Successful", "", 5 * time.Second},
		"succeeds after a bake":    {func(p *intent.Pool) { p.Group.Refresh.BakeTime = aws.Int32(600) }, nil, "Successful", "", 5 * time.Second},
		"is half a refresh":        {func(p *intent.Pool) { p.Group.Refresh.CheckpointPercentages = []int32{50} }, nil, "Successful", "rollout-incomplete", 5 * time.Second},
		"fails":                    {nil, broken, "Failed", "rollout-failed", 65 * time.Second},
		"rolls back":               {func(p *intent.Pool) { p.Group.Refresh.AutoRollback = aws.Bool(true) }, broken, "RollbackSuccessful", "rollout-failed", 65 * time.Second},
		"is cancelled by a person": {nil, cancel, "Cancelled", "rollout-cancelled", 65 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := realWorld(t, true)
			web := groupPool("web", "m5.large", 4)
			if tt.change != nil {
				tt.change(&web)
			}
			w.paced(30*time.Minute, target("blue", web))
			blue := changed(web, nil)
			w.srv.ResetCalls()
			began := w.clock.Now()
			for {
				last := w.must(reconciler.Apply, blue)
				if tt.during != nil && w.clock.Now().Sub(began) > 4*time.Minute {
					tt.during(w)
					tt.during = nil
				}
				if ended(tt.status)(last[0]) {
					if tt.says != "" && !hasCode(last[0], tt.says) {
						t.Errorf("diagnostics %v, want %s", last[0].Diagnostics, tt.says)
					}
					break
				}
				if w.clock.Now().Sub(began) > 3*time.Hour {
					t.Fatalf("it is not noticed: %+v", last[0].Pools[0].LastRollout)
				}
				w.clock.Advance(reconciler.DefaultMovingDelay)
			}
			took, asked := w.clock.Now().Sub(began), w.srv.CallCounts()[polls]
			out, err := w.groups().DescribeInstanceRefreshes(t.Context(), &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String("web")})
			if err != nil || len(out.InstanceRefreshes) != 1 {
				t.Fatalf("%d refreshes, %v", len(out.InstanceRefreshes), err)
			}
			late := w.clock.Now().Sub(aws.ToTime(out.InstanceRefreshes[0].EndTime))
			t.Logf("noticed %v after its end, %d questions in %v", late, asked, took)
			if late > tt.within {
				t.Errorf("noticed %v after its end, want %v", late, tt.within)
			}
			if most := int(took.Minutes()) + 4; asked > most {
				t.Errorf("%d questions in %v, want %d at most", asked, took, most)
			}
		})
	}
}

// A refresh that waits for its turn, for a window or for a person costs no question:
// weir asks right before a step that goes by the answer.
func TestRolloutsThatWaitAreNotAskedAbout(t *testing.T) {
	t.Parallel()
	const n = 20
	w := realWorld(t, false)
	w.paced(20*time.Minute, rolling(n, 1, "m5.large"))
	next := rolling(n, 1, "m5.xlarge")
	next.Policy.MaxRollouts = 1
	w.srv.ResetCalls()
	w.must(reconciler.Apply, next)
	if got := w.srv.CallCounts()[polls]; got != n {
		t.Fatalf("%d questions to plan %d rollouts", got, n)
	}
	w.srv.ResetCalls()
	w.paced(10*time.Minute, next)
	got := w.srv.CallCounts()
	// One each minute about the one that rolls, and those of the beginnings and ends.
	if most := 10 + 3*got[started]; got[started] == 0 || got[polls] > most {
		t.Errorf("%d questions in ten minutes while %d rollouts began one after the other, want %d at most", got[polls], got[started], most)
	}
	next.Policy.Gates.Window = "the window opens tomorrow"
	w.paced(10*time.Minute, next) // what rolls ends
	w.srv.ResetCalls()
	w.paced(30*time.Minute, next)
	if got := w.srv.CallCounts(); got[polls] > 3*n || got[started] > 0 {
		t.Errorf("half an hour before a window: %v", got)
	}
}

// Between two questions somebody else may start a refresh: weir does not act on what
// it was told before.
func TestARefreshOfAnotherBetweenTwoQuestions(t *testing.T) {
	w := realWorld(t, false)
	web := groupPool("web", "m5.large", 2)
	blue := target("blue", web)
	w.paced(20*time.Minute, blue)
	next := changed(web, nil)
	next.Policy.Gates.Window = "the window opens tomorrow"
	w.paced(2*time.Minute, next) // makes the version and waits
	theirs, err := w.groups().StartInstanceRefresh(t.Context(), &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: aws.String("web")})
	if err != nil {
		t.Fatal(err)
	}
	w.srv.ResetCalls()
	next.Policy.Gates.Window = ""
	if r := w.must(reconciler.Apply, next)[0]; w.srv.CallCounts()[started] != 0 || !reconciler.Moving(r) {
		t.Errorf("in the first pass: %v, %+v", w.srv.CallCounts(), r.Outcomes)
	}
	w.must(reconciler.Apply, next)
	if n := w.writes(); n["autoscaling:CancelInstanceRefresh"] != 1 || n[started] != 0 {
		t.Errorf("the refresh %s of somebody else is not superseded: %v", aws.ToString(theirs.InstanceRefreshId), n)
	}
	w.paced(30*time.Minute, next)
	if n := w.writes(); n["autoscaling:CancelInstanceRefresh"] != 1 || n[started] != 1 || !converged(w.must(reconciler.Apply, next)) {
		t.Errorf("not converged after %v", n)
	}
}

// If a commit is taken back before its refresh has replaced a machine, weir cancels
// that refresh at once, and not when it has replaced the first.
func TestARefreshThatIsNoLongerWantedIsCancelledBeforeItBegins(t *testing.T) {
	w := realWorld(t, false)
	web := groupPool("web", "m5.large", 2)
	blue := target("blue", web)
	w.paced(20*time.Minute, blue)
	w.srv.ResetCalls()
	w.must(reconciler.Apply, changed(web, nil))
	w.must(reconciler.Apply, blue)
	if n := w.writes(); n[started] != 1 || n["autoscaling:CancelInstanceRefresh"] != 1 {
		t.Fatalf("got %v", n)
	}
	w.paced(20*time.Minute, blue)
	if n := w.writes(); n[started] != 1 || n["autoscaling:CancelInstanceRefresh"] != 1 || !converged(w.must(reconciler.Apply, blue)) {
		t.Errorf("not converged after %v", n)
	}
	for _, g := range w.must(reconciler.Apply, blue)[0].Pools[0].Instances {
		if g.Type != "m5.large" {
			t.Errorf("a machine was replaced: %+v", g)
		}
	}
}
