package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commands"
)

func TestASuspensionHoldsUntilItEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	targetConverged(t, a, "prod", first)
	command(t, a, commands.SuspendPath, gates.Request{Target: "prod", Reason: "incident 17", For: "1h", By: "ann"})
	stop()

	// It outlives a restart.
	w.aws.ResetCalls()
	w.repo.Write(fleetOf("m6i.large", "prod"))
	second := w.repo.Commit("second")
	a, stop = w.start()
	defer stop()
	heldBy(t, a, "prod", second, step.HeldSuspended, "suspended by ann until")
	if s, _ := a.current.Targets.Find("prod"); !s.Last.Suspended {
		t.Error("the target is not shown as suspended")
	}
	if got := w.writes(); len(got) != 0 {
		t.Errorf("writes: %v", got)
	}
	if got := command(t, a, commands.ResumePath, gates.Request{Target: "prod"}); len(got.Resumed) != 1 || got.Resumed[0].Reason != "incident 17" {
		t.Errorf("resumed: %+v", got)
	}
	targetConverged(t, a, "prod", second)
}

func TestAnApprovalLetsAPlanRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = "  apply: as-reviewed\n"
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	p := heldBy(t, a, "prod", first, step.HeldApproval, "weir approve ")
	if got := w.writes(); len(got) != 0 {
		t.Fatalf("writes before an approval: %v", got)
	}
	if got := command(t, a, commands.ApprovePath, gates.Request{Digest: p.Digest(), By: "ann"}); !slices.Equal(got.Plans, []string{"prod"}) {
		t.Errorf("approved: %+v", got)
	}
	targetConverged(t, a, "prod", first)

	// The next plan needs its own; a rollout is done to its end under one.
	w.repo.Write(fleetOf("m6i.large", "prod"))
	second := w.repo.Commit("second")
	p = heldBy(t, a, "prod", second, step.HeldApproval, "weir approve ")
	command(t, a, commands.ApprovePath, gates.Request{Digest: p.Digest(), By: "ann"})
	targetConverged(t, a, "prod", second)
	eventually(t, "the approval is used up", func() string {
		if r := a.recorder.Read(); r.Lost != nil || len(r.Approvals)+len(r.Grants) > 0 {
			return fmt.Sprintf("%+v, %v", r, r.Lost)
		}
		return ""
	})
}

func TestAnApprovalLiftsThePruneLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	three := map[string]string{}
	for _, name := range []string{"pool-a", "pool-b", "pool-c"} {
		three[name] = pool(name, "m5.large", 3)
	}
	w.repo.Write(overlay(three))
	first := w.repo.Commit("first")
	c := w.config()
	c.Targets[0].Prune.Limit.Percent = 20
	a, stop := w.startConfig(c, nil)
	defer stop()
	targetConverged(t, a, "prod", first)
	w.repo.Write(overlay(map[string]string{"pool-a": three["pool-a"]}))
	second := w.repo.Commit("second")
	p := heldBy(t, a, "prod", second, step.HeldPruneLimit, "weir approve ")
	command(t, a, commands.ApprovePath, gates.Request{Digest: p.Digest()})
	targetConverged(t, a, "prod", second)
	if got := w.query("ec2", "DescribeLaunchTemplates"); strings.Count(got, "<launchTemplateName>") != 1 {
		t.Errorf("templates are left: %s", got)
	}
}

func TestAClosedWindowHoldsWhatDisrupts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	// Open on the day before yesterday alone.
	day := strings.ToLower(time.Now().UTC().AddDate(0, 0, -2).Format("Mon"))
	w.extra = "  windows: [{days: [" + day + "], duration: 1h}]\n"
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	targetConverged(t, a, "prod", first) // what is made needs no window
	w.repo.Write(fleetOf("m6i.large", "prod"))
	second := w.repo.Commit("second")
	heldBy(t, a, "prod", second, step.HeldWindow, "the next window opens on ")
	eventually(t, "status", func() string {
		if state, text := w.forge.last(second, "fleet/apply/prod"); state != "pending" || !strings.Contains(text, "the next window opens on") {
			return state + " " + text
		}
		return ""
	})
	if got := w.writes(); slices.Contains(got, "StartInstanceRefresh") {
		t.Errorf("it rolls outside of a window: %v", got)
	}
	command(t, a, commands.ReconcilePath, gates.Request{Targets: []string{"prod"}, OverrideWindow: true})
	targetConverged(t, a, "prod", second)
	eventually(t, "the override ends", func() string {
		if r := a.recorder.Read(); r.Lost != nil || len(r.Overrides) > 0 {
			return fmt.Sprintf("%+v, %v", r, r.Lost)
		}
		return ""
	})
}

// TestAnApprovalOutlivesARestart approves while nothing runs, and has a grant that
// had begun when the process ended: the plan is no longer the one that was approved.
func TestAnApprovalOutlivesARestart(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		w := newWorld(t, quickAWS())
		w.extra = "  apply: as-reviewed\n"
		w.repo.Write(fleetOf("m5.large", "prod"))
		first := w.repo.Commit("first")
		a, stop := w.start()
		p := heldBy(t, a, "prod", first, step.HeldApproval, "weir approve ")
		dir := a.state.Name
		a.passes.mu.Lock()
		wants := a.passes.memory.conditions["prod"].Rendered
		a.passes.mu.Unlock()
		stop()
		db, err := state.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		recorder := gates.NewRecorder(db, clock.At(time.Now))
		if !begun {
			_, err = recorder.Approve(p.Digest(), "ann")
		} else {
			var approval gates.Approval
			approval, err = recorder.Approve(strings.Repeat("0", 64), "ann")
			if err != nil {
				t.Fatal(err)
			}
			err = recorder.Begin(gates.Grant{Approval: approval, Target: "prod", Rendered: wants, Works: slices.Collect(maps.Keys(plan.GrantOf(p).Works))})
		}
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		a, stop = w.start()
		targetConverged(t, a, "prod", first)
		stop()
	}
}
