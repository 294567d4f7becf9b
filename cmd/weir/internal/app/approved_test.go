package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commands"
)

// approve has a person approve the plan of prod that waits at a revision.
func approve(t *testing.T, a *App, revision, reason string) {
	t.Helper()
	p := heldBy(t, a, "prod", revision, step.HeldApproval, reason)
	command(t, a, commands.ApprovePath, gates.Request{Digest: p.Digest(), By: "ann"})
}

// TestAnApprovalCoversNoMoreThanItsPlan: while a size is changed that was approved, somebody rolls
// the group to another version. The size is changed all the same, and the way back is a question
// of its own.
func TestAnApprovalCoversNoMoreThanItsPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = "  apply: as-reviewed\n"
	somebody := sync.OnceFunc(func() {
		w.query("ec2", "CreateLaunchTemplateVersion&LaunchTemplateName=prod-web&SourceVersion=1&LaunchTemplateData.InstanceType=m5.2xlarge")
		w.query("autoscaling", "StartInstanceRefresh&AutoScalingGroupName=prod-web"+
			"&DesiredConfiguration.LaunchTemplate.LaunchTemplateName=prod-web&DesiredConfiguration.LaunchTemplate.Version=2")
		// What was approved fails once, so that it is left to a pass that sees the other version.
		w.aws.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "UpdateAutoScalingGroup", Code: "ResourceContention"})
	})
	w.before = func(body string) {
		if strings.Contains(body, "Action=UpdateAutoScalingGroup") {
			somebody()
		}
	}
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	approve(t, a, first, "weir approve ")
	targetConverged(t, a, "prod", first)
	w.repo.Write(map[string]string{"overlays/prod/pool.yaml": pool("prod-web", "m5.large", 5)})
	second := w.repo.Commit("a size")
	approve(t, a, second, "weir approve ")
	rolls := func() (n int) {
		counts := w.aws.CallCounts()
		return counts["ec2:CreateLaunchTemplateVersion"] + counts["autoscaling:StartInstanceRefresh"] + counts["autoscaling:CancelInstanceRefresh"]
	}
	eventually(t, "the approved size", func() string {
		if s := w.query("autoscaling", "DescribeAutoScalingGroups"); !strings.Contains(s, "<MaxSize>5</MaxSize>") {
			return s
		}
		return ""
	})
	eventually(t, "the end of the other rollout", func() string {
		if s := w.query("autoscaling", "DescribeInstanceRefreshes&AutoScalingGroupName=prod-web"); !strings.Contains(s, "<Status>Successful</Status>") {
			return s
		}
		return ""
	})
	eventually(t, "the plan of the way back", func() string { // it was one to cancel the other rollout
		if p := heldBy(t, a, "prod", second, step.HeldApproval, "; it is not part of the approval of "); len(p.Steps) < 2 {
			return fmt.Sprintf("%+v", p.Steps)
		}
		return ""
	})
	if n := rolls(); n != 2 {
		t.Errorf("%d calls of a rollout, of which 2 are not weir's: %v", n, w.writes())
	}
	approve(t, a, second, "weir approve ")
	targetConverged(t, a, "prod", second)
	if n := rolls(); n != 4 {
		t.Errorf("%d calls of a rollout: %v", n, w.writes())
	}
	eventually(t, "the approvals are used", func() string { return onRecord(a) })
}

// onRecord says what of approvals is on record.
func onRecord(a *App) string {
	if r := a.recorder.Read(); r.Lost != nil || len(r.Approvals)+len(r.Grants) > 0 {
		return fmt.Sprintf("%+v", r)
	}
	return ""
}

// slowly is an AWS where an approved rollout can be caught in the middle.
func slowly() awsemu.Options {
	o := quickAWS()
	o.Timings.RefreshBatch = time.Second
	return o
}

// rollouts are overlays of three commits: web rolls in both of the later ones and keeps one earlier
// version, in the last one old goes and new comes.
func rolloutsOf(n int) map[string]string {
	web := strings.Replace(pool("web", []string{"m5.large", "m5.xlarge", "m5.2xlarge"}[n], 3), "kind: AWSMachinePool\nmetadata: {name: web}", "kind: AWSMachinePool\nmetadata: {name: web, annotations: {weir.dev/keep-versions: \"1\"}}", 1)
	if n < 2 {
		return overlay(map[string]string{"web": web, "old": pool("old", "m5.large", 3)})
	}
	return overlay(map[string]string{"web": web, "new": pool("new", "m5.large", 4)})
}

// rolledOut fails unless all of the last of rolloutsOf was done, by one approval of each commit.
func rolledOut(t *testing.T, w *world) {
	t.Helper()
	counts := w.aws.CallCounts()
	want := map[string]int{
		"autoscaling:StartInstanceRefresh": 2, "ec2:ModifyLaunchTemplate": 2, "ec2:DeleteLaunchTemplateVersions": 1,
		"autoscaling:CreateAutoScalingGroup": 3, "autoscaling:DeleteAutoScalingGroup": 1, "ec2:DeleteLaunchTemplate": 1,
	}
	for _, op := range slices.Sorted(maps.Keys(want)) {
		if counts[op] != want[op] {
			t.Errorf("%s: %d times, want %d: %v", op, counts[op], want[op], w.writes())
		}
	}
}

// moving waits until a refresh is under way.
func (w *world) moving() {
	w.t.Helper()
	eventually(w.t, "a rollout", func() string {
		if s := w.query("autoscaling", "DescribeInstanceRefreshes&AutoScalingGroupName=web"); !strings.Contains(s, "<Status>InProgress</Status>") {
			return s
		}
		return ""
	})
}

// TestOneApprovalOfARollout is enough for all that belongs to it, though the process ends in between.
func TestOneApprovalOfARollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slowly())
	w.extra = "  apply: as-reviewed\n"
	w.repo.Write(rolloutsOf(0))
	a, stop := w.start()
	for n := range 3 {
		if n > 0 {
			w.repo.Write(rolloutsOf(n))
		}
		revision := w.repo.Commit(fmt.Sprint(n))
		approve(t, a, revision, "weir approve ")
		if n > 0 {
			w.moving()
			stop()
			a, stop = w.start()
		}
		targetConverged(t, a, "prod", revision)
		eventually(t, "the approval is used", func() string { return onRecord(a) })
	}
	stop()
	rolledOut(t, w)
}

// TestOneApprovalOfARolloutElsewhere has another member end what one has begun.
func TestOneApprovalOfARolloutElsewhere(t *testing.T) {
	t.Parallel()
	s := newSeveralOn(t, slowly())
	s.extra = "  apply: as-reviewed\n"
	s.repo.Write(rolloutsOf(0))
	members := []*member{s.member("b"), s.member("a"), s.member("c")}
	a := members[1]
	defer a.stop()
	for n := range 3 {
		if n > 0 {
			s.repo.Write(rolloutsOf(n))
		}
		revision := s.repo.Commit(fmt.Sprint(n))
		approve(t, a.App, revision, "weir approve ")
		if n > 0 {
			s.moving()
		}
		if n == 2 {
			for _, m := range members {
				if m != a && m.member.Leases.Get(s.scope()) != nil {
					m.stop()
				}
			}
		}
		targetConverged(t, a.App, "prod", revision)
		eventually(t, "the approval is used", func() string { return onRecord(a.App) })
	}
	for _, m := range members {
		m.stop()
	}
	rolledOut(t, s.world)
}
