package app

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commands"
)

// TestAnApprovalIsTakenBack before anything of it runs, and once it has begun: nothing more does.
func TestAnApprovalIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		w := newWorld(t, quickAWS())
		w.extra = "  apply: as-reviewed\n"
		w.repo.Write(fleetOf("m5.large", "prod"))
		first := w.repo.Commit("first")
		a, stop := w.start()
		p := heldBy(t, a, "prod", first, step.HeldApproval, "weir approve ")
		suspend := gates.Request{Target: "prod", Reason: "night", For: "1h", By: "ann"}
		if begun {
			a.passes.handing.Lock()
			a.passes.mu.Lock()
			wants := a.passes.memory.conditions["prod"].Rendered
			a.passes.mu.Unlock()
			beganAt(t, a.recorder, p, wants)
			command(t, a, commands.SuspendPath, suspend)
			a.passes.handing.Unlock()
		} else {
			command(t, a, commands.SuspendPath, suspend)
			if got := command(t, a, commands.ApprovePath, gates.Request{Digest: p.Digest(), By: "ann"}); !slices.Equal(got.Plans, []string{"prod"}) || len(got.Behind) > 0 {
				t.Errorf("approved: %+v", got)
			}
		}
		got := command(t, a, commands.UnapprovePath, gates.Request{Digest: p.Digest(), By: "bob"})
		if (len(got.Begun) == 1) != begun || (len(got.Withdrawn) == 1) == begun || !slices.Equal(got.Plans, []string{"prod"}) {
			t.Errorf("begun %t: taken back: %+v", begun, got)
		}
		command(t, a, commands.ResumePath, gates.Request{Target: "prod"})
		heldBy(t, a, "prod", first, step.HeldApproval, "weir approve ")
		if r := a.recorder.Read(); len(r.Approvals)+len(r.Grants) > 0 {
			t.Errorf("on record: %+v", r)
		}
		stop()
	}
}

// TestAnApprovalOfAnEarlierPlanIsTold where the plan waits: it is not the one that waits now.
func TestAnApprovalOfAnEarlierPlanIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = "  apply: as-reviewed\n"
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	p := heldBy(t, a, "prod", first, step.HeldApproval, "weir approve ")
	command(t, a, commands.SuspendPath, gates.Request{Target: "prod", Reason: "night", For: "1h", By: "ann"})
	command(t, a, commands.ApprovePath, gates.Request{Digest: p.Digest(), By: "ann"})
	w.repo.Write(fleetOf("m5.xlarge", "prod"))
	second := w.repo.Commit("second")
	heldBy(t, a, "prod", second, step.HeldSuspended, "")
	command(t, a, commands.ResumePath, gates.Request{Target: "prod"})
	heldBy(t, a, "prod", second, step.HeldApproval, "; the plan has changed since the last approval, "+p.Digest()[:12]+" of prod by ann")
}

// TestAnApprovalAtACommit comes after the commit is known, and before the pass over it: it is no
// approval of what the earlier commit had begun.
func TestAnApprovalAtACommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = "  apply: as-reviewed\n"
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	p := heldBy(t, a, "prod", first, step.HeldApproval, "weir approve ")
	beganEarlier(t, a, p)
	got := command(t, a, commands.ApprovePath, gates.Request{Digest: p.Digest(), By: "bob"})
	if got.Approval == nil || got.Approval.By != "bob" {
		t.Errorf("answered: %+v", got)
	}
	targetConverged(t, a, "prod", first)
}

// TestTwoApproveAtOnce through two members: the plan runs once, and each is told by whose approval.
func TestTwoApproveAtOnce(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.extra = "  apply: as-reviewed\n"
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	p := heldBy(t, a.App, "prod", first, step.HeldApproval, "weir approve ")
	heldBy(t, b.App, "prod", first, step.HeldApproval, "weir approve ")
	var wg sync.WaitGroup
	by := make([]string, 2)
	for i, m := range []*App{a.App, b.App} {
		wg.Go(func() {
			by[i] = command(t, m, commands.ApprovePath, gates.Request{Digest: p.Digest(), By: string(rune('x' + i))}).Approval.By
		})
	}
	wg.Wait()
	if !strings.Contains("x y x", strings.Join(by, " ")) && by[0] != by[1] {
		t.Errorf("by %v", by)
	}
	targetConverged(t, a.App, "prod", first)
	targetConverged(t, b.App, "prod", first)
	eventually(t, "nothing of it is left", func() string {
		if r := a.recorder.Read(); len(r.Approvals)+len(r.Grants) > 0 {
			return "on record"
		}
		return ""
	})
}
