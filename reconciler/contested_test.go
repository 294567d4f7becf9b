package reconciler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// undo changes something of the group web that weir sets.
func (w *world) undo(what string) {
	w.t.Helper()
	ctx, web := context.Background(), aws.String("web")
	switch what {
	case "size":
		w.check(w.groups().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: web, MaxSize: aws.Int32(7)}))
	case "processes":
		w.check(w.groups().ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: web, ScalingProcesses: []string{"AlarmNotification"}}))
	case "tags":
		w.tagGroup("web", observed.TagPrune, "disabled")
	}
}

// A field that somebody sets back is corrected three times in six hours, whichever it is and
// whether weir sees its own value in between or not.
func TestCorrectionsPause(t *testing.T) {
	web := groupPool("web", "m5.large", 1)
	web.Group.SuspendedProcesses = []intent.Process{{Name: "AlarmNotification", Suspended: true}}
	blue := at(nil, commits(1)[0], target("blue", web))
	for _, what := range []string{"size", "processes", "tags"} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.settle(blue)
			undone := func(rounds int) (writes int, last *plan.Report) {
				for range rounds {
					w.undo(what)
					w.srv.ResetCalls()
					last = w.must(reconciler.Apply, blue)[0]
					if _, n := w.calls(); n > 0 {
						writes++
						w.must(reconciler.Apply, blue) // which sees that AWS has it
					}
					w.clock.Advance(time.Second)
				}
				return writes, last
			}
			writes, last := undone(20)
			// The first correction is a write; three more follow it.
			if most := refusals.MostCorrections + 1; writes < 1 || writes > most {
				t.Errorf("%d corrections, want at most %d", writes, most)
			}
			if last.Plan.Runnable() > 0 || last.Plan.Steps[0].Held != step.HeldStopped || hasCode(last, "drift") {
				t.Errorf("it goes on: %+v", last.Plan.Steps)
			}
			said := strings.Join(errorsOf(last), "\n")
			if !hasCode(last, model.CodeContested) || !strings.Contains(said, "at commit 0000001") || !strings.Contains(said, "a writer that leaves no commit") {
				t.Errorf("says %s", said)
			}
			if p := last.Pools[0]; p.Converged || p.FailureReason != model.CodeContested {
				t.Errorf("the pool is %+v", p)
			}
			w.scope.Retry([]string{"default/web"})
			if n, _ := undone(1); n != 1 {
				t.Error("it is not corrected although somebody asked")
			}
			undone(20)
			w.clock.Advance(refusals.CorrectionsFor + time.Minute)
			if n, _ := undone(1); n != 1 {
				t.Error("it is not corrected after six hours")
			}
		})
	}
}

// Two processes of which neither knows Git come to rest, and name each other's commit.
func TestTwoWritersOfASizeComeToRest(t *testing.T) {
	c := commits(2)
	w := newWorld(t)
	ahead, behind := at(nil, c[1], target("blue", groupPool("web", "m5.large", 4))), at(nil, c[0], target("blue", groupPool("web", "m5.large", 3)))
	w.settle(behind)
	first, second, calls := w.beside(200, ahead, behind)
	if n := calls["autoscaling:UpdateAutoScalingGroup"]; n > 2*(refusals.MostCorrections+1) {
		t.Errorf("%d updates: %v", n, calls)
	}
	said := strings.Join(append(errorsOf(first), errorsOf(second)...), "\n")
	if !strings.Contains(said, "another weir of the instance prod at commit 000000") {
		t.Errorf("nobody names the other one: %s", said)
	}
}

// The commit stands on the group before its fields are written, so that a crash in between
// leaves no group that a process at an earlier commit would set back. The next pass does the
// rest without another tag.
func TestAGroupIsClaimedBeforeItIsChanged(t *testing.T) {
	c := commits(2)
	w := newWorld(t)
	w.settle(at(c, c[0], target("blue", groupPool("web", "m5.large", 3))))
	next := at(c, c[1], target("blue", groupPool("web", "m5.large", 4)))
	w.srv.ResetCalls()
	stop := w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Service: "autoscaling", Operation: "UpdateAutoScalingGroup", Times: -1, Code: "AccessDenied"})
	w.must(reconciler.Apply, next)
	stop()
	behind, _ := newScope(w).Pass(context.Background(), []reconciler.Desired{at(c[:1], c[0], target("blue", groupPool("web", "m5.large", 2)))}, reconciler.Apply)
	if behind[0].Plan.Runnable() > 0 || !hasCode(behind[0], "commit-ahead") {
		t.Errorf("a process behind goes on: %v", errorsOf(behind[0]))
	}
	w.restart()
	w.settle(next)
	if calls := w.srv.CallCounts(); calls["autoscaling:CreateOrUpdateTags"] != 1 {
		t.Errorf("calls: %v", calls)
	}
	for _, tag := range w.group("web").Tags {
		if aws.ToString(tag.Key) == observed.TagRevision && (aws.ToString(tag.Value) != c[1] || aws.ToBool(tag.PropagateAtLaunch)) {
			t.Errorf("the tag is %q, on machines %t", aws.ToString(tag.Value), aws.ToBool(tag.PropagateAtLaunch))
		}
	}
	// Nothing is written for a commit that changes nothing, and a correction costs no tag.
	w.srv.ResetCalls()
	w.must(reconciler.Apply, at(commits(3), commits(3)[2], next))
	if _, writes := w.calls(); writes > 0 {
		t.Errorf("%d writes at rest", writes)
	}
	w.undo("size")
	w.srv.ResetCalls()
	w.must(reconciler.Apply, next)
	if _, writes := w.calls(); writes != 1 {
		t.Errorf("a correction took %d writes", writes)
	}
}

// A process that is behind writes nothing to a pool of which a newer commit set anything:
// also not to its template.
func TestANewerCommitStopsThePoolAsAWhole(t *testing.T) {
	c := commits(2)
	w := newWorld(t)
	old := target("blue", groupPool("web", "m5.large", 3))
	w.settle(at(c, c[0], old))
	w.settle(at(c, c[1], target("blue", groupPool("web", "m5.large", 4))))
	w.tagTemplate("web", observed.TagPool, "default/other")
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, at(c[:1], c[0], old))[0]
	if _, writes := w.calls(); writes > 0 || r.Plan.Runnable() > 0 {
		t.Errorf("%d writes; %+v", writes, r.Plan.Steps)
	}
}

// A step that weir holds back, because the resource is another one right before the request,
// is not tried again at once, and the pool says why.
func TestHeldBackRequestsBackOff(t *testing.T) {
	w := newWorld(t)
	web, old := groupPool("web", "m5.large", 1), groupPool("old", "m5.large", 1)
	w.settle(target("blue", web, old))
	blue := target("blue", web)
	blue.Policy.Prune.Count = 10
	cloud := &elsewhere{Cloud: w.scope.Cloud}
	w.scope.Cloud = cloud
	var last *plan.Report
	for range 40 {
		last = w.must(reconciler.Apply, blue)[0]
		w.clock.Advance(350 * time.Millisecond)
	}
	if cloud.looks > 3 {
		t.Errorf("%d attempts in 14 seconds", cloud.looks)
	}
	if reconciler.Moving(last) {
		t.Error("the next pass follows at once")
	}
	o := last.Outcomes[0]
	if o.Status != step.Skipped || !o.Parked || o.Err == nil || o.Err.Code != observed.CodeChanged || !strings.Contains(o.Lift, "doubles after every attempt") {
		t.Errorf("outcome: %+v", o)
	}
	cloud.agrees = true
	w.settle(blue)
}

// elsewhere is an AWS whose lists are stale: each second read shows another resource.
type elsewhere struct {
	reconciler.Cloud
	agrees bool
	looks  int
}

func (c *elsewhere) Confirm(ctx context.Context, seen step.Seen) error {
	if c.agrees {
		return c.Cloud.Confirm(ctx, seen)
	}
	c.looks++
	return &observed.Error{Kind: observed.Busy, Service: "autoscaling", Operation: "DescribeAutoScalingGroups", Code: observed.CodeChanged, Message: "it is another one"}
}

// What AWS refuses to make because it is there already was not made: a list that lacks it for
// a while makes no history of creations, and no contest.
func TestWhatIsThereAlreadyWasNotMade(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", groupPool("web", "m5.large", 1))
	w.settle(blue)
	w.restart()
	cloud := &blind{Cloud: w.scope.Cloud, group: "web"}
	w.scope.Cloud = cloud
	var last *plan.Report
	for range 30 {
		last = w.must(reconciler.Apply, blue)[0]
		for _, o := range last.Outcomes {
			if o.Step.Verb == step.Create && o.Status == step.Done {
				t.Fatalf("made %s", o.Step.Name)
			}
		}
		w.clock.Advance(5 * time.Second)
	}
	if hasCode(last, "rollout-contested") || last.Outcomes[0].Err == nil || !strings.Contains(last.Outcomes[0].Err.Message, "already exists") {
		t.Errorf("%v, %+v", errorsOf(last), last.Outcomes)
	}
	cloud.group = ""
	w.clock.Advance(10 * time.Minute)
	w.settle(blue)
}

// blind is an AWS whose lists lack a group.
type blind struct {
	reconciler.Cloud
	group string
}

func (c *blind) Observe(ctx context.Context, q observed.Query) (observed.State, error) {
	s, err := c.Cloud.Observe(ctx, q)
	return c.lacks(s), err
}

func (c *blind) Fill(ctx context.Context, s observed.State, n observed.Needs) (observed.State, error) {
	s, err := c.Cloud.Fill(ctx, s, n)
	return c.lacks(s), err
}

func (c *blind) lacks(s observed.State) observed.State {
	if c.group == "" {
		return s
	}
	groups, absent := map[string]observed.Group{}, map[string]bool{c.group: true}
	for name, g := range s.Groups {
		if name != c.group {
			groups[name] = g
		}
	}
	for name := range s.Absent.Groups {
		absent[name] = true
	}
	s.Groups, s.Absent.Groups = groups, absent
	return s
}
