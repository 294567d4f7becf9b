package app

import (
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/diag"
)

// TestAWaveSaysWhyATargetHasNoPlan, and says the same of the next pass.
func TestAWaveSaysWhyATargetHasNoPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	targetConverged(t, a, "prod", first)
	stop()
	for id, want := range map[string]string{
		"1": "has no plan: reading groups: autoscaling:DescribeAutoScalingGroups: AccessDenied: no",
		"2": "has no plan: reading groups: autoscaling:DescribeAutoScalingGroups: AccessDenied: no",
		"":  "has no plan: reading groups: autoscaling:DescribeAutoScalingGroups: AccessDenied: no",
	} {
		err := &observed.Error{Service: "autoscaling", Operation: "DescribeAutoScalingGroups", Code: "AccessDenied", Message: "no", RequestID: id}
		if got := a.rollouts.planless(&plan.Report{Err: fmt.Errorf("reading groups: %w", err)}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	broken := &plan.Report{Diagnostics: diag.List{{Severity: diag.Warning, Summary: "never mind"}, {Severity: diag.Error, Summary: "no such key"}, {Severity: diag.Error, Summary: "nor this"}}}
	if got, want := a.rollouts.planless(broken), "has no plan: no such key (and 1 more)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := a.rollouts.planless(&plan.Report{}); got != "has no plan" {
		t.Errorf("%q", got)
	}
}

// TestOnlyItsOwnNewsWakesTheConductor: what else members write leaves it alone.
func TestOnlyItsOwnNewsWakesTheConductor(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(inWaves("m5.large", "  waves: [{pools: 1}]\n"))
	first := s.repo.Commit("first")
	m := s.member("a")
	targetConverged(t, m.App, "prod", first)
	m.stop() // from here on this goroutine is the only one
	r := m.rollouts
	woken := func() bool {
		select {
		case <-r.due:
			return true
		default:
			return false
		}
	}
	source := ""
	for source = range m.gen.Load().followers {
	}
	r.handleNews()
	woken()
	for range 3 {
		if r.handleNews(); woken() {
			t.Fatal("it was woken without news")
		}
	}
	r.lastRead[source] = &rollout.Record{Seq: -1}
	if r.handleNews(); !woken() {
		t.Error("another record does not wake it")
	}
	r.leads = map[string]bool{source: true}
	if r.handleNews(); !woken() {
		t.Error("that it speaks for other sources does not wake it")
	}
}
