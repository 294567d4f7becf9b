package app

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/metrics"
)

// TestAnApprovalThatCannotBeWrittenHoldsUpNothingElse: the pass goes on, and another
// approval is used.
func TestAnApprovalThatCannotBeWrittenHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	log, recorder, b := slog.New(slog.DiscardHandler), gates.NewRecorder(db, clock.At(time.Now)), current.New(current.Options{})
	p := newPasses(passesOptions{
		log: log, clock: clock.New(), accounts: accounts.New(accounts.Options{}), approvals: approvals{recorder, b.Activity, log}, targets: b.Targets, loss: reportLoss(b.Daemon, metrics.New(prometheus.NewRegistry(), "")),
	})
	long := strings.Repeat("x", 1<<16) // the state takes no key as long as this
	c := &fleet.Composition{Batches: []reconciler.Batch{{}}, Conditions: map[string]gates.Conditions{}}
	for _, target := range []string{long, "prod"} {
		of := &plan.Plan{Target: target, Steps: []step.Step{{Verb: step.Create, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "web"}}}
		p.memory.before.Note(&plan.Report{Target: target, Plan: of})
		if _, err := recorder.Approve(of.Digest(), "somebody"); err != nil {
			t.Fatal(err)
		}
		c.Conditions[target] = gates.Conditions{Rendered: "w"}
		c.Batches[0].Targets = append(c.Batches[0].Targets, reconciler.Desired{Policy: model.Policy{Target: target}})
	}
	p.memory.store(c)
	batch := p.gated(&loop{Loop: &reconciler.Loop{}}, accounts.Access{})
	if len(batch.Targets) != 2 {
		t.Fatalf("no target is reconciled: %+v", batch)
	}
	var failed []error
	for _, d := range batch.Targets {
		if d.Policy.Gates.Grant == nil || !d.Policy.Gates.Grant.Exact || d.Begin == nil {
			t.Fatalf("not approved: %+v", d.Policy.Gates)
		}
		failed = append(failed, d.Begin(&plan.Plan{}))
	}
	if failed[0] == nil || failed[1] != nil {
		t.Errorf("begun: %v", errors.Join(failed...))
	}
	r := recorder.Read()
	if r.Lost != nil || len(r.Approvals) != 1 || len(r.Grants) != 1 || r.Grants[0].Target != "prod" {
		t.Errorf("approvals %v, grants %v, %v", r.Approvals, r.Grants, r.Lost)
	}
}
