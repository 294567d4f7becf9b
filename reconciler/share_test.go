package reconciler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// permitted is a target whose pools may roll so far.
func permitted(d reconciler.Desired, permits ...rollout.Permit) reconciler.Desired {
	d.Policy.Gates.Rollouts = map[string]rollout.Permit{}
	for _, p := range permits {
		d.Policy.Gates.Rollouts[p.Pool] = p
	}
	return d
}

func permitOf(pool, hash string, share int32) rollout.Permit {
	return rollout.Permit{ID: rollout.ID{Target: "blue", Pool: "default/" + pool}, Hash: hash, Share: share, Rollouts: []string{"fleet/waves"}, Wait: "fleet/waves: bakes until noon"}
}

// passesOver makes passes for a while, and returns the last report.
func (w *world) passesOver(d reconciler.Desired, n int) (r *plan.Report) {
	w.t.Helper()
	for range n {
		r = w.must(reconciler.Apply, d)[0]
		w.clock.Advance(2 * time.Second)
	}
	return r
}

// versionsOf counts the machines of a group by version.
func (w *world) versionsOf(group string) string {
	counts := map[string]int{}
	for _, i := range w.group(group).Instances {
		if i.LifecycleState == astypes.LifecycleStateInService {
			counts["v"+aws.ToString(i.LaunchTemplate.Version)]++
		}
	}
	return fmt.Sprint(counts)
}

func (w *world) governed(d reconciler.Desired) rollout.Pool {
	w.t.Helper()
	r := w.must(reconciler.PlanOnly, d)[0]
	if len(r.Governed) != 1 {
		w.t.Fatalf("%d governed pools: %v", len(r.Governed), r.Diagnostics)
	}
	return r.Governed[0]
}

// heldFor is why the rollout of a plan's pool is held.
func heldFor(r *plan.Report) string {
	for _, s := range r.Plan.Steps {
		if s.Verb == step.Rollout && s.Held != "" {
			return string(s.Held) + ": " + s.HeldReason
		}
	}
	return ""
}

// wholesale are the quotas of an AWS that takes no refresh which ends below 100 %.
var wholesale = map[string]int{"last-checkpoint": 100}

// The alarms that gates ask about end the refresh as well, those that there are: AWS looks at
// them though nobody conducts. Other alarms later are no other refresh.
func TestAlarmsOfGatesEndTheRefresh(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 4)))
	for _, name := range []string{"errors", "late"} {
		w.check(cloudwatch.NewFromConfig(w.sdk).PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
			AlarmName: &name, MetricName: aws.String("Errors"), Namespace: aws.String("Web"), Statistic: cwtypes.StatisticSum, Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1),
			Threshold: aws.Float64(1), ComparisonOperator: cwtypes.ComparisonOperatorGreaterThanThreshold,
		}))
	}
	pool := groupPool("web", "m5.xlarge", 4)
	pool.Group.Refresh.AlarmSpecification = &intent.AlarmSpecification{Alarms: []string{"late"}}
	web := target("blue", pool)
	p := w.governed(permitted(web, permitOf("web", "another", 0)))
	permit := permitOf("web", p.Hash, 50)
	permit.Alarms = []string{"errors", "gone", "late"}
	d := permitted(web, permit)
	d.Policy.Gates.Alarms = permit.Alarms
	w.passesOver(d, 2)
	list := func() []astypes.InstanceRefresh {
		out, err := w.groups().DescribeInstanceRefreshes(t.Context(), &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String("web")})
		if err != nil {
			t.Fatal(err)
		}
		return out.InstanceRefreshes
	}
	r := list()
	if len(r) != 1 || r[0].Preferences.AlarmSpecification == nil || fmt.Sprint(r[0].Preferences.AlarmSpecification.Alarms) != "[late errors]" {
		t.Fatalf("%+v", r)
	}
	w.check(w.groups().CancelInstanceRefresh(t.Context(), &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String("web")}))
	w.clock.Advance(time.Minute)
	w.restart()
	w.passesOver(permitted(web, permitOf("web", p.Hash, 50)), 5)
	if r := list(); len(r) != 1 {
		t.Errorf("%d refreshes: without the gates' alarms it is tried once more", len(r))
	}
}

// A governed pool rolls as far as its permit, by a refresh for each share, and no further,
// whoever restarts; what is left of it is a wait and no drift.
func TestSharesOfAPool(t *testing.T) {
	t.Parallel()
	for name, quotas := range map[string]map[string]int{"AWS as it documents itself": nil, "AWS takes no refresh that ends below 100": wholesale} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWith(t, quotas)
			w.settle(target("blue", groupPool("web", "m5.large", 10)))
			web := target("blue", groupPool("web", "m5.xlarge", 10))
			starts := func() int { return w.srv.CallCounts()["autoscaling:StartInstanceRefresh"] }

			r := w.passesOver(permitted(web, permitOf("web", "another", 0)), 5)
			if got := heldFor(r); !strings.HasPrefix(got, "wave: waits until its place in the waves of fleet/waves is decided") || starts() != 0 {
				t.Fatalf("without a permit: %q, %d refreshes", got, starts())
			}
			p := w.governed(permitted(web, permitOf("web", "another", 0)))
			if p.Hash == "" || p.Machines != 10 || p.New != 0 || !p.Pending || p.Earlier == nil || p.Earlier.Number != 1 || p.Moving != nil || len(p.Zones) == 0 {
				t.Fatalf("the report: %+v", p)
			}
			// A permit for something else is none.
			w.passesOver(permitted(web, permitOf("web", "another", 100)), 5)
			if starts() != 0 || w.versionsOf("web") != "map[v1:10]" {
				t.Fatalf("rolled against another's permit: %s", w.versionsOf("web"))
			}
			for _, at := range []struct {
				share int32
				want  string
				new   int32
			}{{5, "map[v1:9 v2:1]", 1}, {25, "map[v1:7 v2:3]", 3}, {50, "map[v1:5 v2:5]", 5}} {
				d := permitted(web, permitOf("web", p.Hash, at.share))
				w.passesOver(d, 60)
				w.srv.ResetCalls()
				w.restart()
				r := w.passesOver(d, 40)
				if got := w.versionsOf("web"); got != at.want || len(w.wrote()) > 0 {
					t.Fatalf("%d %%: %s, and wrote %v", at.share, got, w.wrote())
				}
				if got := heldFor(r); got != "wave: fleet/waves: bakes until noon" {
					t.Errorf("%d %%: held for %q", at.share, got)
				}
				if r.Diagnostics.HasErrors() || hasCode(r, "drift") || hasCode(r, "rollout-incomplete") {
					t.Errorf("%d %%: %v", at.share, r.Diagnostics)
				}
				if q := w.governed(d); q.New != at.new || q.Moving != nil || q.Failed != "" || !q.Pending || q.Hash != p.Hash || q.Facts.Ready != at.new {
					t.Errorf("%d %%: %+v", at.share, q)
				}
			}
			d := permitted(web, permitOf("web", p.Hash, 100))
			w.settle(d)
			if q := w.governed(d); q.Pending || q.New != 10 || w.versionsOf("web") != "map[v2:10]" {
				t.Errorf("at the end: %+v, %s", q, w.versionsOf("web"))
			}
			w.srv.ResetCalls()
			if w.passesOver(permitted(web, permitOf("web", p.Hash, 0)), 10); len(w.wrote()) > 0 {
				t.Errorf("at rest it wrote %v", w.wrote())
			}
		})
	}
}

// A refresh for a share is started once, whichever call of a share's passes is lost, kept
// back or throttled, and though the process ends there.
func TestAShareIsRolledOnce(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]awsemu.FaultKind{"lost before": awsemu.CutBefore, "answer lost": awsemu.LoseAnswer, "throttled": awsemu.Throttled} {
		for _, operation := range []string{"StartInstanceRefresh", "DescribeInstanceRefreshes", "CreateLaunchTemplateVersion"} {
			t.Run(name+" "+operation, func(t *testing.T) {
				w := newWorld(t)
				w.settle(target("blue", groupPool("web", "m5.large", 10)))
				web := target("blue", groupPool("web", "m5.xlarge", 10))
				p := w.governed(permitted(web, permitOf("web", "another", 0)))
				d := permitted(web, permitOf("web", p.Hash, 25))
				w.srv.Faults().Add(awsemu.Fault{Kind: kind, Operation: operation})
				_, _ = w.pass(reconciler.Apply, d)
				w.restart()
				for range 40 {
					_, _ = w.pass(reconciler.Apply, d)
					w.clock.Advance(2 * time.Second)
				}
				if got := w.versionsOf("web"); got != "map[v1:7 v2:3]" {
					t.Errorf("%s", got)
				}
				list, err := w.groups().DescribeInstanceRefreshes(t.Context(), &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String("web")})
				if err != nil || len(list.InstanceRefreshes) != 1 {
					t.Errorf("%d refreshes, %v", len(list.InstanceRefreshes), err)
				}
			})
		}
	}
}

// A group that grows in the middle of its waves comes to its share again; one that shrank
// below it starts nothing.
func TestAGroupScalesInItsWaves(t *testing.T) {
	w := newWorld(t)
	sized := func(kind string, n int32) reconciler.Desired {
		return target("blue", groupPool("web", kind, n))
	}
	w.settle(sized("m5.large", 4))
	p := w.governed(permitted(sized("m5.xlarge", 4), permitOf("web", "another", 0)))
	at := func(n int32) reconciler.Desired { return permitted(sized("m5.xlarge", n), permitOf("web", p.Hash, 50)) }
	w.passesOver(at(4), 40)
	if got := w.versionsOf("web"); got != "map[v1:2 v2:2]" {
		t.Fatal(got)
	}
	// AWS has set the group to the new version: it grows by that one.
	w.passesOver(at(8), 40)
	if got := w.versionsOf("web"); got != "map[v1:2 v2:6]" {
		t.Errorf("grown: %s", got)
	}
	w.srv.ResetCalls()
	w.passesOver(at(3), 40)
	if n := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"]; n != 0 {
		t.Errorf("shrunk: %d refreshes", n)
	}
}

// Another hash in the middle of a share: what runs is cancelled, and nothing of the new one
// begins before its permit.
func TestTheHashChangesInAShare(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 10)))
	one := target("blue", groupPool("web", "m5.xlarge", 10))
	p := w.governed(permitted(one, permitOf("web", "another", 0)))
	w.passesOver(permitted(one, permitOf("web", p.Hash, 50)), 2)
	two := target("blue", groupPool("web", "m5.2xlarge", 10))
	r := w.passesOver(permitted(two, permitOf("web", p.Hash, 50)), 30)
	if q := w.governed(permitted(two, permitOf("web", p.Hash, 50))); q.Hash == p.Hash || q.Moving != nil || q.New != 0 {
		t.Errorf("the report: %+v", q)
	}
	if n := w.srv.CallCounts(); n["autoscaling:StartInstanceRefresh"] != 1 || n["autoscaling:CancelInstanceRefresh"] != 1 || !strings.HasPrefix(heldFor(r), "wave: ") {
		t.Errorf("calls %v, held for %q", n, heldFor(r))
	}
}

// What cannot be planned is reported with the reason, for those who conduct.
func TestAGovernedPoolWithoutItsImageSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 2)))
	next := groupPool("web", "m5.large", 2)
	next.LaunchTemplate.Image = intent.Lookup{Kind: intent.ImageByID, Name: "ami-0fffffffffffffff0"}
	p := w.governed(permitted(target("blue", next), permitOf("web", "another", 0)))
	if p.Hash != "" || !strings.Contains(p.Fault, "ami-0fffffffffffffff0") {
		t.Errorf("%+v", p)
	}
}

// A group that replaces no machines by itself, and one without machines, take a new
// version once it may run everywhere.
func TestAGovernedGroupThatIsSetDirectly(t *testing.T) {
	for name, make := range map[string]func(kind string) intent.Pool{
		"rollouts are off": func(kind string) intent.Pool {
			p := groupPool("web", kind, 2)
			p.Group.Refresh.Disable = true
			return p
		},
		"no machines": func(kind string) intent.Pool { return groupPool("web", kind, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(target("blue", make("m5.large")))
			web := target("blue", make("m5.xlarge"))
			p := w.governed(permitted(web, permitOf("web", "another", 0)))
			for _, share := range []int32{0, 50} {
				r := w.passesOver(permitted(web, permitOf("web", p.Hash, share)), 5)
				if v := aws.ToString(w.group("web").LaunchTemplate.Version); v != "1" || r.Plan.Runnable() > 0 || !p.Pending {
					t.Errorf("%d %%: the group is at %s; %+v", share, v, p)
				}
			}
			w.settle(permitted(web, permitOf("web", p.Hash, 100)))
			if v := aws.ToString(w.group("web").LaunchTemplate.Version); v != "2" {
				t.Errorf("the group is at %s", v)
			}
		})
	}
}
