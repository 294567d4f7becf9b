package app

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commands"
)

// beganEarlier puts on record that a plan began at an earlier commit, of which nothing was done:
// the one of now is the same.
func beganEarlier(t *testing.T, a *App, p *plan.Plan) {
	t.Helper()
	a.passes.handing.Lock()
	defer a.passes.handing.Unlock()
	beganAt(t, a.recorder, p, "what the earlier commit wanted")
}

// beganAt puts it on record for what the target wanted then. No pass may see the approval before: the
// caller holds handing, or no daemon runs.
func beganAt(t *testing.T, b *gates.Recorder, p *plan.Plan, wants string) {
	t.Helper()
	approval, err := b.Approve(p.Digest(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Begin(gates.Grant{Approval: approval, Target: "prod", Rendered: wants, Works: slices.Collect(maps.Keys(plan.GrantOf(p).Works))}); err != nil {
		t.Fatal(err)
	}
}

// approveAnew fails if the plan does not wait, or does not run once it is approved through a daemon.
func approveAnew(t *testing.T, a *App, revision string) {
	t.Helper()
	eventually(t, "the earlier approval ends", func() string {
		if r := a.recorder.Read(); r.Lost != nil || len(r.Grants) > 0 {
			return "it is on record"
		}
		return ""
	})
	p := heldBy(t, a, "prod", revision, step.HeldApproval, "weir approve ")
	got := command(t, a, commands.ApprovePath, gates.Request{Digest: p.Digest(), By: "bob"})
	if got.Approval == nil || got.Approval.By != "bob" || !slices.Equal(got.Plans, []string{"prod"}) {
		t.Errorf("answered: %+v", got)
	}
	targetConverged(t, a, "prod", revision)
}

// TestASupersededPlanIsApprovedAnew by a person whose approval is not taken for one of the plan that had begun.
func TestASupersededPlanIsApprovedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = "  apply: as-reviewed\n"
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	beganEarlier(t, a, heldBy(t, a, "prod", first, step.HeldApproval, "weir approve "))
	command(t, a, commands.ReconcilePath, gates.Request{})
	approveAnew(t, a, first)
}

// TestASupersededPlanIsApprovedAnewAfterARestart has the daemon end in between.
func TestASupersededPlanIsApprovedAnewAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = "  apply: as-reviewed\n"
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	p, dir := heldBy(t, a, "prod", first, step.HeldApproval, "weir approve "), a.state.Name
	stop()
	db, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	beganAt(t, gates.NewRecorder(db, clock.At(time.Now)), p, "what the earlier commit wanted")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	a, stop = w.start()
	defer stop()
	approveAnew(t, a, first)
}

// TestASupersededPlanIsApprovedAnewElsewhere has the member begin it that is gone, and the approval reach any.
func TestASupersededPlanIsApprovedAnewElsewhere(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.extra = "  apply: as-reviewed\n"
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a := s.member("a")
	beganEarlier(t, a.App, heldBy(t, a.App, "prod", first, step.HeldApproval, "weir approve "))
	b := s.member("b")
	defer b.stop()
	c := s.member("c")
	defer c.stop()
	a.stop()
	approveAnew(t, b.App, first)
	targetConverged(t, c.App, "prod", first)
}
