package app

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commands"
)

// earlier is what is on record of a plan that began at an earlier commit, of which nothing was
// done: the one of now is the same.
func earlier(p *plan.Plan) gates.Grant {
	approval := gates.Approval{Digest: p.Digest(), By: "ann", Until: time.Now().Add(time.Hour)}
	return gates.Grant{Approval: approval, Target: "prod", Rendered: "what the earlier commit wanted", Owners: []string{"default/prod-web"}}
}

// approveAnew fails if the plan does not wait, or does not run once it is approved through a daemon.
func approveAnew(t *testing.T, a *App, revision string) {
	t.Helper()
	eventually(t, "the earlier approval ends", func() string {
		if r := a.book.Read(); r.Lost != nil || len(r.Grants) > 0 {
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
	w := newWorld(t, quickAWS())
	w.extra = "  apply: as-reviewed\n"
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	if err := a.book.Begin(earlier(heldBy(t, a, "prod", first, step.HeldApproval, "weir approve "))); err != nil {
		t.Fatal(err)
	}
	command(t, a, commands.ReconcilePath, gates.Request{})
	approveAnew(t, a, first)
}

// TestASupersededPlanIsApprovedAnewElsewhere has the member begin it that is gone, and the approval reach any.
func TestASupersededPlanIsApprovedAnewElsewhere(t *testing.T) {
	s := newSeveral(t)
	s.extra = "  apply: as-reviewed\n"
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a := s.member("a")
	p := heldBy(t, a.App, "prod", first, step.HeldApproval, "weir approve ")
	if err := a.book.Begin(earlier(p)); err != nil {
		t.Fatal(err)
	}
	b := s.member("b")
	defer b.stop()
	c := s.member("c")
	defer c.stop()
	a.stop()
	approveAnew(t, b.App, first)
	targetConverged(t, c.App, "prod", first)
}
