package reconciler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
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
		if s.Held == plan.HeldApproval && strings.Contains(s.HeldReason, "since the pool was adopted") {
			out = append(out, string(s.Verb)+" "+string(s.Resource))
		}
	}
	return out
}

// TestTheFirstRolloutAfterAdoption: what Git wants otherwise of a group that was taken
// over in report mode replaces no machine when the target is set to correct, nor after a
// restart, until somebody approves it or a commit changes the pool. After that there is
// nothing special about it.
func TestTheFirstRolloutAfterAdoption(t *testing.T) {
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
			if aws.ToString(tag.Key) == plan.TagAdopted {
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
