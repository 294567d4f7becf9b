package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// staleTemplates shows templates as they were at some time before.
type staleTemplates struct {
	reconciler.Cloud
	old map[string]observed.Template
}

func (s *staleTemplates) Observe(ctx context.Context, q observed.Query) (observed.State, error) {
	state, err := s.Cloud.Observe(ctx, q)
	if err == nil && s.old != nil {
		for name, t := range s.old {
			state.Templates[name] = t
		}
	}
	return state, err
}

// EC2 is eventually consistent: a version that weir just made may not be in the
// next answer.
func TestAStaleReadDoesNotUndoARollout(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 4)))
	before, err := w.scope.Cloud.Observe(context.Background(), observed.Query{Owner: testInstance, Groups: true, Templates: true})
	if err != nil {
		t.Fatal(err)
	}
	cloud := &staleTemplates{Cloud: w.scope.Cloud}
	w.scope.Cloud = cloud
	w.srv.ResetCalls()
	blue := target("blue", groupPool("web", "m5.xlarge", 4))
	w.must(reconciler.Apply, blue)
	cloud.old = before.Templates
	w.must(reconciler.Apply, blue)
	cloud.old = nil
	w.settle(blue)
	n := w.srv.CallCounts()
	if n["autoscaling:StartInstanceRefresh"] != 1 || n["autoscaling:CancelInstanceRefresh"] != 0 || n["ec2:CreateLaunchTemplateVersion"] != 1 {
		t.Errorf("got %v", n)
	}
}

// endsMeanwhile has whatever is under way end after the groups were read and
// before their refreshes are.
type endsMeanwhile struct {
	reconciler.Cloud
	w *world
}

func (e *endsMeanwhile) Fill(ctx context.Context, s observed.State, n observed.Needs) (observed.State, error) {
	if len(n.Refreshes) > 0 {
		e.w.clock.Advance(time.Hour)
	}
	return e.Cloud.Fill(ctx, s, n)
}

func TestARefreshThatEndsBetweenTwoReadsIsNotStartedAgain(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 2)))
	blue := target("blue", groupPool("web", "m5.xlarge", 2))
	w.srv.ResetCalls()
	w.must(reconciler.Apply, blue)
	w.scope.Cloud = &endsMeanwhile{w.scope.Cloud, w}
	w.must(reconciler.Apply, blue)
	if n := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"]; n != 1 {
		t.Errorf("%d refreshes were started, want 1", n)
	}
	w.settle(blue)
	// Drift back to the old version is put right by another one.
	state, err := w.scope.Cloud.Observe(context.Background(), observed.Query{Owner: testInstance, Groups: true})
	if err != nil {
		t.Fatal(err)
	}
	old := state.Groups["web"].Template
	old.Version = "1"
	if _, err := newScope(w).Cloud.Execute(context.Background(), step.UpdateGroup{Name: "web", Template: &old}); err != nil {
		t.Fatal(err)
	}
	w.settle(blue)
}

func TestARevertOfARevertRolls(t *testing.T) {
	w := newWorld(t)
	a, b := target("blue", groupPool("web", "m5.large", 4)), target("blue", groupPool("web", "m5.xlarge", 4))
	w.settle(a)
	w.must(reconciler.Apply, b)
	w.must(reconciler.Apply, a)
	w.must(reconciler.Apply, b)
	w.settle(b)
}

func TestAFailedRolloutIsTriedAgainWithOtherPreferences(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 2)))
	remove := w.srv.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m5.xlarge", Code: "InsufficientInstanceCapacity"})
	blue := target("blue", groupPool("web", "m5.xlarge", 2))
	for range 60 {
		w.must(reconciler.Apply, blue)
		w.clock.Advance(30 * time.Second)
	}
	if r := w.must(reconciler.Apply, blue)[0]; !strings.Contains(fmt.Sprint(r.Diagnostics), "rollout-failed") {
		t.Fatalf("diagnostics: got %v", r.Diagnostics)
	}
	remove()
	healthy := int32(50)
	pool := groupPool("web", "m5.xlarge", 2)
	pool.Group.Refresh.MinHealthyPercentage = &healthy
	w.settle(target("blue", pool))
}

func TestWhatAnotherTargetHasStaysWhileThatOneCannotBeRead(t *testing.T) {
	w := newWorld(t)
	blue, green := target("blue", groupPool("web", "m5.large", 1)), target("green", groupPool("api", "m5.large", 1))
	w.settle(blue, green)
	lost := green
	lost.Set, lost.Whole, lost.Err = nil, false, fmt.Errorf("unreachable")
	w.srv.ResetCalls()
	w.must(reconciler.Apply, target("blue", groupPool("web", "m5.large", 1), groupPool("api", "m5.xlarge", 1)), lost)
	if _, writes := w.calls(); writes != 0 {
		t.Errorf("writes: got %d: %v", writes, w.srv.CallCounts())
	}
}

func TestAPoolUnderANewNameKeepsItsMachinesUntilTheNewOnesAreUp(t *testing.T) {
	renamed := groupPool("web", "m5.large", 2)
	renamed.Group.Name, renamed.LaunchTemplate.Name = "web2", "web2"
	renamed.AllowReplace = true

	t.Run("in order", func(t *testing.T) {
		w := newWorld(t)
		w.settle(target("blue", groupPool("web", "m5.large", 2)))
		blue := target("blue", renamed)
		w.must(reconciler.Apply, blue)
		w.must(reconciler.Apply, blue)
		if n := w.srv.CallCounts()["autoscaling:DeleteAutoScalingGroup"]; n != 0 {
			t.Error("the old group went before the new one was up")
		}
		w.settle(blue)
		if n := w.srv.CallCounts()["autoscaling:DeleteAutoScalingGroup"]; n != 1 {
			t.Error("the old group stayed")
		}
	})
	t.Run("paused", func(t *testing.T) {
		w := newWorld(t)
		w.settle(target("blue", groupPool("web", "m5.large", 2)))
		paused := renamed
		paused.Paused = true
		w.srv.ResetCalls()
		w.must(reconciler.Apply, target("blue", paused))
		if _, writes := w.calls(); writes != 0 {
			t.Errorf("writes: got %d: %v", writes, w.srv.CallCounts())
		}
	})
	t.Run("blocked", func(t *testing.T) {
		w := newWorld(t)
		w.settle(target("blue", groupPool("web", "m5.large", 2)))
		stuck := renamed
		template := *renamed.LaunchTemplate
		template.Image = intent.Lookup{Kind: intent.ImageByID, Name: "ami-00000000000000000"}
		stuck.LaunchTemplate = &template
		w.srv.ResetCalls()
		w.must(reconciler.Apply, target("blue", stuck))
		if _, writes := w.calls(); writes != 0 {
			t.Errorf("writes: got %d: %v", writes, w.srv.CallCounts())
		}
	})
}

func TestARememberedNodegroupIsLookedAtBeforeItIsWritten(t *testing.T) {
	w := newWorld(t)
	w.scope.Round = 1000 * time.Hour
	blue := target("blue", groupPool("web", "m5.large", 1), nodegroupPool("ng", 2), nodegroupPool("other", 1))
	w.settle(blue)
	// Another weir takes the nodegroup over.
	other := newScope(w)
	state, err := other.Cloud.Observe(context.Background(), observed.Query{Owner: testInstance, EKSClusters: []string{"demo"}})
	if err != nil {
		t.Fatal(err)
	}
	name := observed.NodegroupName{Cluster: "demo", Name: "ng"}
	if _, err := other.Cloud.Execute(context.Background(), step.TagNodegroup{
		NodegroupName: name, ARN: state.Nodegroups[name].ARN, Put: map[string]string{observed.TagOwner: "somebody-else"},
	}); err != nil {
		t.Fatal(err)
	}
	w.srv.ResetCalls()
	w.must(reconciler.Apply, target("blue", groupPool("web", "m5.large", 1), nodegroupPool("ng", 5), nodegroupPool("other", 1)))
	w.must(reconciler.Apply, target("blue", groupPool("web", "m5.large", 1), nodegroupPool("other", 1)))
	n := w.srv.CallCounts()
	if n["eks:UpdateNodegroupConfig"] != 0 || n["eks:DeleteNodegroup"] != 0 {
		t.Errorf("somebody else's nodegroup was written: %v", n)
	}
}

func TestANodegroupDroppedWhileItIsMadeIsStillFound(t *testing.T) {
	w := newWorld(t)
	web := groupPool("web", "m5.large", 1)
	w.settle(target("blue", web))
	w.must(reconciler.Apply, target("blue", web, nodegroupPool("ng", 1)))
	w.restart()
	gone := target("blue", web)
	w.settle(gone)
	n := w.srv.CallCounts()
	if n["eks:DeleteNodegroup"] != 1 || n["ec2:DeleteLaunchTemplate"] != 1 {
		t.Errorf("got %v", n)
	}
}

func TestATemplateThatAForeignGroupUsesStays(t *testing.T) {
	w := newWorld(t)
	web, old := groupPool("web", "m5.large", 1), groupPool("old", "m5.large", 1)
	w.settle(target("blue", web, old))
	state, err := w.scope.Cloud.Observe(context.Background(), observed.Query{Owner: testInstance, Groups: true, Templates: true})
	if err != nil {
		t.Fatal(err)
	}
	g := state.Groups["old"]
	g.Name, g.Tags = "by-hand", map[string]observed.GroupTag{}
	if _, err := w.scope.Cloud.Execute(context.Background(), step.CreateGroup{Group: g}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		w.must(reconciler.Apply, target("blue", web))
		w.clock.Advance(5 * time.Second)
	}
	n := w.srv.CallCounts()
	if n["autoscaling:DeleteAutoScalingGroup"] != 1 || n["ec2:DeleteLaunchTemplate"] != 0 {
		t.Errorf("got %v", n)
	}
}

func TestSubnetsThatNobodyWroteStayAsTheyAre(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", groupPool("web", "m5.large", 1), nodegroupPool("ng", 1))
	w.settle(blue)
	w.scope.Resolver = &fewerSubnets{w.scope.Resolver}
	w.srv.ResetCalls()
	if r := w.must(reconciler.Apply, blue)[0]; !r.Plan.Empty() || r.Diagnostics.HasErrors() {
		t.Errorf("got %d steps, %v", len(r.Plan.Steps), r.Diagnostics)
	}
}

// fewerSubnets answers as if the network had other subnets than before.
type fewerSubnets struct{ reconciler.Resolver }

func (f *fewerSubnets) Answer(ctx context.Context, in []resolve.Request) ([]observed.Answer, error) {
	out, err := f.Resolver.Answer(ctx, in)
	for i := range out {
		if len(out[i].Subnets) > 1 {
			out[i].Subnets = slices.Clone(out[i].Subnets)[:1]
		}
	}
	return out, err
}
