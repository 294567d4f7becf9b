package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/control"
	"github.com/weir-gitops/weir/cmd/weir/internal/fleet"
	"github.com/weir-gitops/weir/cmd/weir/internal/state"
	"github.com/weir-gitops/weir/reconciler/plan"
)

// TestAnApprovalThatCannotBeWrittenHoldsUpNothingElse: the pass goes on, another
// approval is used, and what is wrong is said once.
func TestAnApprovalThatCannotBeWrittenHoldsUpNothingElse(t *testing.T) {
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var out bytes.Buffer
	a := &App{log: slog.New(slog.NewTextHandler(&out, nil)), book: control.NewBook(db, time.Now)}
	// The state takes no key as long as this.
	for _, target := range []string{strings.Repeat("x", 1<<16), "prod"} {
		p := &plan.Plan{Target: target, Steps: []plan.Step{{Verb: plan.Create, Resource: plan.AutoScalingGroup, Pool: "default/web", Name: "web"}}}
		a.memory.before.Note(&plan.Report{Target: target, Plan: p})
		if _, err := a.book.Approve(p.Digest(), "somebody"); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := a.gate(&fleet.Composition{}); err != nil {
			t.Fatalf("no target is reconciled: %v", err)
		}
	}
	r, err := a.book.Read()
	if err != nil || len(r.Approvals) != 1 || len(r.Grants) != 1 || r.Grants[0].Target != "prod" {
		t.Errorf("approvals %v, grants %v, %v", r.Approvals, r.Grants, err)
	}
	if n := strings.Count(out.String(), "level=ERROR"); n != 1 {
		t.Errorf("said %d times", n)
	}
	if g := a.memory.grants["prod"]; len(a.memory.grants) != 1 || g.Target != "prod" {
		t.Errorf("grants of the pass: %v", a.memory.grants)
	}
}
