package reconciler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// manyPasses makes passes until what moves has had the time for it.
func (w *world) manyPasses(d reconciler.Desired) (r *plan.Report) {
	w.t.Helper()
	for range 10 {
		r = w.must(reconciler.Apply, d)[0]
		w.clock.Advance(time.Minute)
	}
	return r
}

// undecided are the held steps of a pool that would roll for the first time.
func undecided(r *plan.Report) (out []string) {
	for _, s := range r.Plan.Steps {
		if s.Held == step.HeldApproval && strings.Contains(s.HeldReason, "since the pool was adopted") {
			out = append(out, string(s.Verb)+" "+string(s.Resource))
		}
	}
	return out
}

// The mark of an adoption stays while the rollout that it is about is held, whoever has
// decided about that: else the next one would need no decision.
func TestTheMarkOfAnAdoptionWaitsWithItsRollout(t *testing.T) {
	w := newWorld(t)
	w.capaGroup(capaGroupTarget(t, secretBootstrap, "", "m5.large"), "first", "second", "third", capaSecret)
	w.must(reconciler.Apply, adopting(capaGroupTarget(t, secretBootstrap, "", "m5.xlarge"), ""))
	d := capaGroupTarget(t, secretBootstrap, "", "m5.2xlarge") // the commit that decides
	d.Policy.Gates.Window = "the window is closed"
	r := w.manyPasses(d)
	marks := 0
	for _, s := range r.Plan.Steps {
		if _, tags := s.Do.(step.TagGroup); tags {
			marks++
			if s.Held != step.HeldWindow {
				t.Errorf("the step that takes the mark away is held by %q", s.Held)
			}
		}
	}
	if marks != 1 {
		t.Errorf("%d steps change tags: %+v", marks, r.Plan.Steps)
	}
	d.Policy.Gates.Window = ""
	if r = w.manyPasses(d); len(r.Plan.Steps) > 0 || !r.Pools[0].Converged {
		t.Errorf("once the window opens: %+v", r.Plan.Steps)
	}
}

// TestTheFirstRolloutAfterAdoption: what Git wants otherwise of a group that was taken
// over in report mode replaces no machine when the target is set to correct, nor after a
// restart, until somebody approves it or a commit changes the pool. After that there is
// nothing special about it.
func TestTheFirstRolloutAfterAdoption(t *testing.T) {
	t.Parallel()
	const rolls = "StartInstanceRefresh"
	adopted := func(t *testing.T) (*world, reconciler.Desired, []string) {
		w := newWorld(t)
		w.capaGroup(capaGroupTarget(t, secretBootstrap, "", "m5.large"), "first", "second", "third", capaSecret)
		before := w.instances("web")
		d := capaGroupTarget(t, secretBootstrap, "", "m5.xlarge")
		d.Policy.ReportOnly = true
		w.srv.ResetCalls()
		w.must(reconciler.Apply, adopting(d, ""))
		if diff := cmp.Diff([]string{"CreateOrUpdateTags", "CreateTags"}, w.wrote()); diff != "" {
			t.Fatalf("adopting in report mode (-want +got):\n%s", diff)
		}
		w.srv.ResetCalls()
		if w.manyPasses(d); len(w.wrote()) > 0 {
			t.Fatalf("report mode wrote %v", w.wrote())
		}
		d.Policy.ReportOnly = false
		w.manyPasses(d)
		w.restart()
		r := w.manyPasses(d)
		if diff := cmp.Diff([]string{"update auto-scaling-group", "rollout auto-scaling-group"}, undecided(r)); diff != "" {
			t.Fatalf("held (-want +got):\n%s\n%+v", diff, r.Plan.Steps)
		}
		if reason := r.Plan.Steps[len(r.Plan.Steps)-1].HeldReason; !strings.Contains(reason, "weir approve "+r.Plan.Digest()) {
			t.Errorf("held: %s", reason)
		}
		if r.Pools[0].Converged {
			t.Error("the pool counts as converged")
		}
		if slices.Contains(w.wrote(), rolls) || !slices.Equal(before, w.instances("web")) {
			t.Fatalf("machines were replaced: %v", w.wrote())
		}
		return w, d, before
	}
	done := func(t *testing.T, w *world, d reconciler.Desired) {
		t.Helper()
		w.settle(d)
		for _, tag := range w.group("web").Tags {
			if aws.ToString(tag.Key) == observed.TagAdopted {
				t.Error("the group is still marked")
			}
		}
		// The next one is an ordinary one.
		w.settle(capaGroupTarget(t, secretBootstrap, "", "m5.4xlarge"))
	}
	t.Run("approved", func(t *testing.T) {
		w, d, _ := adopted(t)
		p := w.must(reconciler.PlanOnly, d)[0].Plan
		grant := plan.GrantOf(p)
		d.Policy.Gates.Grant = &grant
		w.must(reconciler.Apply, d)
		if !slices.Contains(w.wrote(), rolls) {
			t.Fatalf("an approval started nothing: %v", w.wrote())
		}
		d.Policy.Gates.Grant = nil // it was used
		done(t, w, d)
	})
	t.Run("a commit that changes the pool", func(t *testing.T) {
		w, _, _ := adopted(t)
		done(t, w, capaGroupTarget(t, secretBootstrap, "", "m5.2xlarge"))
	})
	t.Run("a command that was agreed to", func(t *testing.T) {
		w, d, _ := adopted(t)
		d.Policy.Gates.Decided = true
		done(t, w, d)
	})
}

// A nodegroup's first update that replaces machines is held in the same way.
func TestTheFirstUpdateAfterAdoption(t *testing.T) {
	w := newWorld(t)
	behind := w.capaNodegroup(fromManifests(t, capaNodegroupManifests))
	before := w.instances(behind)
	d := fromManifests(t, strings.Replace(capaNodegroupManifests, "instanceType: m5.large", "instanceType: m5.xlarge", 1))
	d.Policy.Suspended = true
	w.must(reconciler.Apply, adopting(d, ""))
	d.Policy.Suspended = false
	w.manyPasses(d)
	w.restart()
	r := w.manyPasses(d)
	if got := undecided(r); len(got) != 2 || !slices.Equal(before, w.instances(behind)) {
		t.Fatalf("held %v of %+v; %v", got, r.Plan.Steps, r.Diagnostics)
	}
	grant := plan.GrantOf(w.must(reconciler.PlanOnly, d)[0].Plan)
	d.Policy.Gates.Grant = &grant
	w.must(reconciler.Apply, d)
	d.Policy.Gates.Grant = nil
	w.clock.Advance(time.Hour)
	w.settle(d)
	if slices.Equal(before, w.instances(behind)) {
		t.Error("nothing was replaced")
	}
}

// TestReportModeShowsWhatIsNotAdopted: a fleet of somebody else's is shown as it is, with
// its machines and with what differs from Git, and nothing is written. A resource that
// another tool has marked stays a conflict.
func TestReportModeShowsWhatIsNotAdopted(t *testing.T) {
	t.Parallel()
	report := func(d reconciler.Desired) reconciler.Desired {
		d.Policy.ReportOnly = true
		return d
	}
	shown := func(t *testing.T, w *world, d reconciler.Desired, field, command string) {
		t.Helper()
		w.srv.ResetCalls()
		w.manyPasses(report(d))
		w.restart()
		r := w.manyPasses(report(d))
		if wrote := w.wrote(); len(wrote) > 0 {
			t.Errorf("report mode wrote %v", wrote)
		}
		if r.Diagnostics.HasErrors() || len(r.Pools) != 1 {
			t.Fatalf("%v\n%+v", r.Diagnostics, r.Pools)
		}
		if p := r.Pools[0]; p.Phase != plan.PhaseRunning || p.ReadyReplicas != 2 || p.DesiredReplicas != 2 || len(p.ProviderIDList) != 2 || p.LaunchTemplateVersion == "" || p.Converged {
			t.Errorf("%s %d/%d, version %q, converged %v, %v", p.Phase, p.ReadyReplicas, p.DesiredReplicas, p.LaunchTemplateVersion, p.Converged, p.ProviderIDList)
		}
		var adopts int
		var differs bool
		for _, s := range r.Plan.Steps {
			if s.Held != step.HeldSuspended {
				t.Errorf("%s %s is held by %q", s.Verb, s.Name, s.Held)
			}
			if s.Verb == step.Adopt {
				if adopts++; !strings.Contains(s.HeldReason, command+" adopts it anyway") {
					t.Errorf("held: %s", s.HeldReason)
				}
			}
			differs = differs || slices.ContainsFunc(s.Changes, func(c step.Change) bool { return c.Field == field })
		}
		if adopts == 0 || !differs {
			t.Errorf("%d adoptions; %s differs: %t; %+v", adopts, field, differs, r.Plan.Steps)
		}
	}
	t.Run("a group of CAPA's", func(t *testing.T) {
		w := newWorld(t)
		w.capaGroup(capaGroupTarget(t, secretBootstrap, "", "m5.large"), "first", "second", capaSecret)
		shown(t, w, capaGroupTarget(t, secretBootstrap, "", "m5.xlarge"), "awsLaunchTemplate.instanceType", "weir adopt --config FILE blue")
	})
	t.Run("a nodegroup of CAPA's", func(t *testing.T) {
		w := newWorld(t)
		w.capaNodegroup(fromManifests(t, capaNodegroupManifests))
		shown(t, w, fromManifests(t, strings.Replace(capaNodegroupManifests, "instanceType: m5.large", "instanceType: m5.xlarge", 1)), "awsLaunchTemplate.instanceType", "weir adopt --config FILE blue")
	})
	t.Run("a group of another weir's", func(t *testing.T) {
		w := newWorld(t)
		w.settle(target("blue", groupPool("web", "m5.large", 2)))
		shown(t, w, owned(target("blue", groupPool("web", "m5.xlarge", 2)), "next"), "awsLaunchTemplate.instanceType", "--from "+testInstance)
	})
	t.Run("Karpenter's", func(t *testing.T) {
		w := newWorld(t)
		d := capaGroupTarget(t, secretBootstrap, "", "m5.large")
		w.capaGroup(d, "first", "second", capaSecret)
		w.check(w.groups().CreateOrUpdateTags(t.Context(), &autoscaling.CreateOrUpdateTagsInput{Tags: []astypes.Tag{{Key: aws.String("karpenter.sh/nodepool"), Value: aws.String("x"),
			PropagateAtLaunch: aws.Bool(false), ResourceId: aws.String("web"), ResourceType: aws.String("auto-scaling-group")}}}))
		if r := w.manyPasses(report(d)); !hasCode(r, "conflict") {
			t.Errorf("%v", r.Diagnostics)
		}
	})
}
