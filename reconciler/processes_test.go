package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

// suspended are the processes of a group that are suspended, with spaces between.
func (w *world) suspended(group string) string {
	var out []string
	for _, p := range w.group(group).SuspendedProcesses {
		out = append(out, aws.ToString(p.ProcessName))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// suspendByHand is somebody else's suspension.
func (w *world) suspendByHand(group string, processes ...string) {
	w.t.Helper()
	w.check(w.groups().SuspendProcesses(context.Background(), &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String(group), ScalingProcesses: processes}))
}

func (w *world) resumeByHand(group string, processes ...string) {
	w.t.Helper()
	w.check(w.groups().ResumeProcesses(context.Background(), &autoscaling.ResumeProcessesInput{AutoScalingGroupName: aws.String(group), ScalingProcesses: processes}))
}

// suspending is a target with a pool that suspends processes.
func suspending(processes ...string) reconciler.Desired {
	p := groupPool("web", "m5.large", 2)
	for _, name := range processes {
		p.Group.SuspendedProcesses = append(p.Group.SuspendedProcesses, intent.Process{Name: name, Suspended: true})
	}
	return target("blue", p)
}

// A process that Git drops is resumed where weir suspended it; one that somebody else
// suspended stays so, whether Git once named it as well or never did.
func TestDroppedProcessesAreResumed(t *testing.T) {
	w := newWorld(t)
	w.settle(suspending("AZRebalance", "AlarmNotification"))
	w.suspendByHand("web", "ScheduledActions", "HealthCheck")
	w.restart()
	w.settle(suspending("AZRebalance", "AlarmNotification", "HealthCheck"))
	if got := w.suspended("web"); got != "AZRebalance AlarmNotification HealthCheck ScheduledActions" {
		t.Fatalf("suspended: %s", got)
	}
	w.restart()
	w.settle(suspending("AZRebalance", "AddToLoadBalancer"))
	if got := w.suspended("web"); got != "AZRebalance AddToLoadBalancer HealthCheck ScheduledActions" {
		t.Errorf("suspended: %s", got)
	}
	w.restart()
	w.settle(suspending())
	if got, tag := w.suspended("web"), w.groupTag("web", observed.TagSuspended); got != "HealthCheck ScheduledActions" || tag != "" {
		t.Errorf("suspended: %s, recorded: %s", got, tag)
	}
	w.srv.ResetCalls()
	w.settle(suspending())
	if wrote := w.wrote(); len(wrote) > 0 {
		t.Errorf("weir wrote on: %v", wrote)
	}
	explicit := suspending()
	explicit.Set.Pools[0].Group.SuspendedProcesses = []intent.Process{{Name: "HealthCheck"}}
	w.settle(explicit)
	if got := w.suspended("web"); got != "ScheduledActions" {
		t.Errorf("what Git declares as running is suspended: %s", got)
	}
}

// A stop at any write loses no record: what weir suspended is resumed in the end.
func TestACrashAmongProcesses(t *testing.T) {
	for n := range 4 { // the record, the suspension, the resumption, the record
		for what, kind := range map[string]awsemu.FaultKind{"before": awsemu.CutBefore, "after": awsemu.LoseAnswer} {
			t.Run(fmt.Sprintf("%d %s", n+1, what), func(t *testing.T) {
				w := newWorld(t)
				w.settle(suspending())
				w.suspendByHand("web", "HealthCheck")
				remove := w.srv.Faults().Add(awsemu.Fault{Kind: kind, WritesOnly: true, After: n})
				for _, d := range []reconciler.Desired{suspending("AZRebalance"), suspending()} {
					if r, err := w.pass(reconciler.Apply, d); err != nil || len(r[0].Failures()) > 0 {
						break
					}
				}
				remove()
				w.restart()
				w.settle(suspending("AZRebalance"))
				if got := w.suspended("web"); got != "AZRebalance HealthCheck" {
					t.Errorf("suspended: %s", got)
				}
				w.settle(suspending())
				if got := w.suspended("web"); got != "HealthCheck" {
					t.Errorf("suspended: %s", got)
				}
			})
		}
	}
}

// Processes that Cluster API Provider AWS suspended for the same manifests become
// weir's with the group.
func TestAdoptedSuspensions(t *testing.T) {
	w := newWorld(t)
	d := func(processes ...string) reconciler.Desired {
		d := capaGroupTarget(t, secretBootstrap, "", "m5.large")
		d.Set.Pools[0].Group.SuspendedProcesses = suspending(processes...).Set.Pools[0].Group.SuspendedProcesses
		return d
	}
	w.capaGroup(d(), capaSecret)
	w.suspendByHand("web", "AZRebalance", "HealthCheck")
	w.must(reconciler.Apply, adopting(d("AZRebalance"), ""))
	w.restart()
	w.settle(d("AZRebalance"))
	w.settle(d())
	if got := w.suspended("web"); got != "HealthCheck" {
		t.Errorf("suspended: %s", got)
	}
}

// ready is the condition Ready of a target's first pool.
func ready(r *plan.Report) plan.Condition {
	for _, c := range r.Pools[0].Conditions {
		if c.Type == "Ready" {
			return c
		}
	}
	return plan.Condition{}
}

// A suspended process that a rollout or a change of size waits for is in the pool's
// condition, with who can end it; one that is in nobody's way is not.
func TestASuspensionInTheWayIsNamed(t *testing.T) {
	rolls := func(p *intent.Pool) { p.LaunchTemplate.Data.KeyName = "another" }
	grows := func(p *intent.Pool) { p.Replicas.Value = 3 }
	shrinks := func(p *intent.Pool) { p.Replicas.Value = 1 }
	for name, tt := range map[string]struct {
		process string
		git     bool
		change  func(*intent.Pool)
		want    []string // of the message; none: it converges without
	}{
		"a rollout, Launch by hand":          {"Launch", false, rolls, []string{"Launch", "rollout", "outside Git", "resume-processes"}},
		"a rollout, Terminate by hand":       {"Terminate", false, rolls, []string{"Terminate", "rollout", "outside Git"}},
		"a rollout, InstanceRefresh by hand": {"InstanceRefresh", false, rolls, []string{"InstanceRefresh", "rollout", "outside Git"}},
		"a rollout, by Git":                  {"Launch", true, rolls, []string{"Launch", "rollout", "Git suspends it", "spec.suspendProcesses"}},
		"a rollout, AZRebalance":             {"AZRebalance", false, rolls, nil},
		"a rollout, HealthCheck":             {"HealthCheck", false, rolls, nil},
		"growing":                            {"Launch", false, grows, []string{"Launch", "no machine starts"}},
		"shrinking":                          {"Terminate", false, shrinks, []string{"Terminate", "no machine ends"}},
		"shrinking, Launch":                  {"Launch", false, shrinks, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			declared := []string{}
			if tt.git {
				declared = append(declared, tt.process)
			}
			w.settle(suspending())
			if tt.git {
				w.settle(suspending(declared...))
			} else {
				w.suspendByHand("web", tt.process)
			}
			next := suspending(declared...)
			tt.change(&next.Set.Pools[0])
			if len(tt.want) == 0 {
				w.settle(next)
				if r := w.must(reconciler.Apply, next)[0]; hasCode(r, "process-suspended") {
					t.Errorf("named though nothing waits: %v", r.Diagnostics)
				}
				return
			}
			var r *plan.Report
			for range 5 {
				r = w.must(reconciler.Apply, next)[0]
				w.clock.Advance(5 * time.Second)
			}
			c := ready(r)
			for _, word := range tt.want {
				if !strings.Contains(c.Message, word) || c.Status != "False" {
					t.Errorf("%q is not in the condition %+v", word, c)
				}
			}
			if tt.git {
				next.Set.Pools[0].Group.SuspendedProcesses = nil // which resumes it
			} else {
				w.resumeByHand("web", tt.process)
			}
			w.settle(next)
		})
	}
}

// A group that goes by draining, and whose Terminate weir itself suspended, is not
// kept by that.
func TestDrainingResumesWhatWeirSuspended(t *testing.T) {
	w := newWorld(t)
	d := suspending("Terminate")
	d.Set.Pools[0].Drain = true
	w.settle(d)
	gone := target("blue")
	gone.Policy.Prune.Allowed = map[string]bool{"default/web": true}
	w.settle(gone)
	if got := w.held(); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}
