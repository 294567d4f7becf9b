package reconciler_test

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

// tampered are two wishes for two pools, from one to the other of which nearly all
// that can change does.
func tampered() (before, after reconciler.Desired) {
	full, ng := groupPool("full", "m5.large", 1), nodegroupPool("ng", 1)
	everything(&full)
	full.Group.Options.WarmPool.MinSize = 0
	full.Group.MixedInstancesPolicy = nil
	ng.Nodegroup.Labels, ng.Nodegroup.Taints = map[string]string{"a": "1"}, []intent.Taint{{Key: "t", Value: "v", Effect: "NO_SCHEDULE"}}
	ng.Nodegroup.Tags = map[string]string{"team": "a"}
	before = target("blue", full, ng)

	full, ng = groupPool("full", "m5.large", 1), nodegroupPool("ng", 1)
	everything(&full)
	g := full.Group
	g.MinSize, g.MaxSize, g.DefaultCooldown, g.DefaultInstanceWarmup, g.CapacityRebalance = 1, 8, new(int32(60)), new(int32(30)), new(true)
	g.Tags = map[string]string{"Name": "full", "team": "platform"}
	full.LaunchTemplate.Tags = g.Tags
	full.LaunchTemplate.Data.KeyName = "another"
	g.SuspendedProcesses = []intent.Process{{Name: "AZRebalance"}, {Name: "AlarmNotification", Suspended: true}, {Name: "ScheduledActions", Suspended: true}}
	g.LifecycleHooks = []intent.LifecycleHook{drainHook(90), {Name: "boot", LifecycleTransition: launching, HeartbeatTimeout: 30, DefaultResult: "CONTINUE"}}
	g.Options.WarmPool = &intent.WarmPool{PoolState: "Hibernated", MinSize: 0}
	g.Options.TargetGroupARNs = []string{fmt.Sprintf(targetGroup, "b"), fmt.Sprintf(targetGroup, "c")}
	g.Options.MetricsCollection = &intent.MetricsCollection{Granularity: "1Minute", Metrics: []string{"GroupMaxSize"}}
	g.Options.HealthCheckType, g.Options.TerminationPolicies = "ELB", []string{"OldestInstance", "Default"}
	g.MixedInstancesPolicy = nil
	n := ng.Nodegroup
	n.Labels, n.Taints = map[string]string{"b": "2", "c": "3"}, []intent.Taint{{Key: "t", Value: "w", Effect: "NO_SCHEDULE"}, {Key: "u", Effect: "NO_EXECUTE"}}
	n.Tags, n.MaxSize, n.UpdateConfig = map[string]string{"team": "b"}, intent.Number{Value: 3, Written: true}, intent.UpdateConfig{MaxUnavailablePercentage: 50}
	ng.LaunchTemplate.Data.KeyName = "another"
	return before, target("blue", full, ng)
}

// taken lists the writes that AWS took since the last reset. A refusal is an error of
// its own, and weir says so.
func (w *world) taken() (out []string) {
	for _, c := range w.srv.Calls() {
		if c.Write && c.ErrorCode == "" {
			out = append(out, c.Operation)
		}
	}
	return out
}

const (
	tamperedPasses = 40
	silentPasses   = 8
)

// bounded makes passes, and wants no write in the last of them, and that what has not
// converged is said.
func (w *world) bounded(t *testing.T, d reconciler.Desired, most int) {
	t.Helper()
	var r *plan.Report
	for n := range tamperedPasses {
		if n == tamperedPasses-silentPasses {
			if wrote := w.taken(); len(wrote) > most {
				t.Errorf("%d writes: %v", len(wrote), wrote)
			}
			w.srv.ResetCalls()
		}
		var err error
		reports, err := w.pass(reconciler.Apply, d)
		if err != nil {
			t.Fatal(err)
		}
		r = reports[0]
		w.clock.Advance(10 * time.Second)
	}
	if wrote := w.taken(); len(wrote) > 0 {
		t.Errorf("weir writes on: %v\n%+v\n%v", wrote, r.Plan.Steps, r.Diagnostics)
	}
	said := r.Diagnostics.HasErrors() || len(r.Failures()) > 0 || hasCode(r, "process-suspended")
	if !r.Converged() && !said {
		t.Errorf("it has not converged and says nothing of it: %+v\n%v", r.Plan.Steps, r.Pools)
	}
}

// AWS drops, changes or reorders any member of any request: weir stops writing and says so.
func TestAnyNormalisationEnds(t *testing.T) {
	before, after := tampered()
	empty := newWorld(t)
	made := &tampering{}
	empty.through(made)
	from := map[string]saved{"made": empty.save()}
	empty.settle(before)
	made.mu.Lock()
	members := map[string]map[string]map[string]bool{"made": made.seen}
	made.mu.Unlock()
	from["changed"] = empty.save()
	changed := &tampering{}
	empty.through(changed)
	empty.srv.ResetCalls()
	empty.settle(after)
	members["changed"] = changed.seen
	wishes := map[string]reconciler.Desired{"made": before, "changed": after}
	n := 0
	for _, stage := range slices.Sorted(maps.Keys(members)) {
		for _, operation := range slices.Sorted(maps.Keys(members[stage])) {
			for _, member := range slices.Sorted(maps.Keys(members[stage][operation])) {
				for _, how := range slices.Sorted(maps.Keys(tamperings)) {
					if how == "fills" && strings.HasSuffix(member, "odegroupName") {
						continue // that is another nodegroup, which takes some time to say so
					}
					n++
					if os.Getenv("WEIR_SOAK") == "" && n%13 != 0 {
						continue
					}
					t.Run(strings.Join([]string{stage, operation, member, how}, " "), func(t *testing.T) {
						t.Parallel()
						w := from[stage].world(t)
						w.through(&tampering{operation: operation, member: member, how: tamperings[how]})
						w.bounded(t, wishes[stage], 60)
					})
				}
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d cases", n)
	}
	t.Log(n, "cases")
}

// notTaken is what a report says of changes that AWS does not keep.
func notTaken(r *plan.Report) (out []string) {
	for _, d := range r.Diagnostics {
		if d.Code == "not-taken" {
			out = append(out, d.Summary)
		}
	}
	return out
}

// A field that AWS takes, but still returns the old value is written twice and then named with
// both values, while the rest of the pool goes on. It is written again when AWS answers
// something else, when the pool changes in Git, and when somebody asks, and not because
// of another commit.
func TestWhatIsNotTakenIsNamedAndWrittenAgain(t *testing.T) {
	w := newWorld(t)
	wish := func(cooldown, most int32) reconciler.Desired {
		p := groupPool("web", "m5.large", 2)
		p.Group.DefaultCooldown, p.Group.MaxSize = &cooldown, most
		return target("blue", p, groupPool("api", "m5.large", 1))
	}
	w.settle(wish(300, 10))
	w.srv.ResetCalls()
	w.must(reconciler.Apply, wish(300, 10))
	steady := w.srv.CallCounts()
	w.through(&tampering{operation: "UpdateAutoScalingGroup", member: "DefaultCooldown", how: tamperings["drops"]})

	var r *plan.Report
	passes := func(d reconciler.Desired) int {
		t.Helper()
		w.srv.ResetCalls()
		for range 6 {
			r = w.must(reconciler.Apply, d)[0]
			w.clock.Advance(time.Minute)
		}
		return len(w.wrote())
	}
	named := func() {
		t.Helper()
		said := strings.Join(notTaken(r), "; ")
		for _, word := range []string{"defaultCoolDown", "60"} {
			if !strings.Contains(said, word) {
				t.Errorf("%q is not said: %q", word, said)
			}
		}
		if reconciler.Moving(r) {
			t.Error("the pool is looked at again soon")
		}
		for _, p := range r.Pools {
			if bad := p.Name == "web"; p.Converged == bad || bad && (p.Phase != plan.PhaseFailed || p.FailureReason != "not-taken") {
				t.Errorf("%s: converged %v, %s %s", p.Name, p.Converged, p.Phase, p.FailureReason)
			}
		}
	}
	if n := passes(wish(60, 10)); n != 2 {
		t.Errorf("%d writes", n)
	}
	named()
	if !strings.Contains(strings.Join(notTaken(r), ""), "300") {
		t.Errorf("what AWS answers is not said: %v", notTaken(r))
	}
	w.must(reconciler.Apply, wish(60, 10)) // expired lookups are asked
	w.srv.ResetCalls()
	w.must(reconciler.Apply, wish(60, 10))
	if got := w.srv.CallCounts(); !maps.Equal(got, steady) {
		t.Errorf("calls of a pass: %v, before %v", got, steady)
	}

	other := wish(60, 10)
	other.Commit.Revision = "1111111111111111"
	if n := passes(other); n != 0 {
		t.Errorf("another commit: %d writes", n)
	}
	w.check(w.groups().SetDesiredCapacity(t.Context(), &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(1)}))
	if n := passes(wish(60, 10)); n != 1 {
		t.Errorf("another field that drifts: %d writes", n)
	}
	named()
	w.check(w.groups().UpdateAutoScalingGroup(t.Context(), &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), DefaultCooldown: aws.Int32(90)}))
	if n := passes(wish(60, 10)); n != 2 {
		t.Errorf("another value in AWS: %d writes", n)
	}
	if n := passes(wish(60, 9)); n != 2 {
		t.Errorf("another wish in Git: %d writes", n)
	}
	w.scope.Retry([]string{"default/web"})
	if n := passes(wish(60, 9)); n != 2 {
		t.Errorf("asked for: %d writes", n)
	}
	named()
	w.url = w.direct()
	w.scope.Cloud = newScope(w).Cloud // the same process, and AWS keeps what it takes
	w.scope.Retry([]string{"default/web"})
	w.settle(wish(60, 9))
}

// direct is an endpoint of the world itself.
func (w *world) direct() string {
	web := httptest.NewServer(w.srv)
	w.t.Cleanup(web.Close)
	return web.URL
}

// weir puts repeated changes by hand right each time: the value reads as written in
// between.
func TestDriftIsPutRightAsOftenAsItComes(t *testing.T) {
	w := newWorld(t)
	d := target("blue", groupPool("web", "m5.large", 1))
	w.settle(d)
	for n := range 8 {
		w.check(w.groups().UpdateAutoScalingGroup(t.Context(), &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), DefaultCooldown: aws.Int32(90)}))
		if r := w.must(reconciler.Apply, d)[0]; len(r.Outcomes) != 1 || len(notTaken(r)) > 0 {
			t.Fatalf("time %d: %+v %v", n+1, r.Plan.Steps, r.Diagnostics)
		}
		w.must(reconciler.Apply, d)
	}
}

// An answer that is another one each time ends as well, though later.
func TestAnswersThatChangeEachTimeEnd(t *testing.T) {
	w := newWorld(t)
	p := groupPool("web", "m5.large", 1)
	w.settle(target("blue", p))
	n := 100
	w.through(&tampering{operation: "UpdateAutoScalingGroup", member: "DefaultCooldown", how: func(any) (any, bool) {
		n++
		return strconv.Itoa(n), true
	}})
	p.Group.DefaultCooldown = new(int32(60))
	w.srv.ResetCalls()
	w.bounded(t, target("blue", p), 5)
}

// The plan names a member that a version of a launch template does not keep; where Git
// asks for it, the pool is not as Git says.
func TestAVersionThatEC2KeepsOtherwiseIsNamed(t *testing.T) {
	for how, converges := range map[string]bool{"drops": false, "fills": false} {
		w := newWorld(t)
		w.through(&tampering{operation: "CreateLaunchTemplateVersion", member: "LaunchTemplateData.KeyName", how: tamperings[how]})
		w.settle(target("blue", groupPool("web", "m5.large", 1)))
		p := groupPool("web", "m5.large", 1)
		p.LaunchTemplate.Data.KeyName = "another"
		w.bounded(t, target("blue", p), 8)
		r := w.must(reconciler.PlanOnly, target("blue", p))[0]
		if said := strings.Join(notTaken(r), "; "); !strings.Contains(said, "sshKeyName") || r.Converged() != converges {
			t.Errorf("%s: converged %v, said %q", how, r.Converged(), said)
		}
		if n := len(w.numbers("web")); n > 3 {
			t.Errorf("%s: %d versions", how, n)
		}
	}
}
