package reconciler_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
)

// TestNothingIsWrittenBeforeTheCheck: what AWS holds of the instance is on record before
// a pass writes, and a record that cannot be kept stops the pass.
func TestNothingIsWrittenBeforeTheCheck(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", groupPool("web", "m5.large", 2))
	var told []bool
	refuses := errors.New("no records")
	b := reconciler.Batch{Scope: w.scope, Targets: []reconciler.Desired{blue}, BeforeWrite: func(holds bool) error {
		told = append(told, holds)
		return refuses
	}}
	r := reconciler.RunBatch(context.Background(), b, reconciler.Apply)
	if len(w.writes()) != 0 || r[0].Err == nil || !errors.Is(r[0].Err, refuses) {
		t.Fatalf("writes %v, error %v", w.writes(), r[0].Err)
	}
	refuses = nil
	reconciler.RunBatch(context.Background(), b, reconciler.Apply)
	w.settle(blue)
	w.srv.ResetCalls()
	reconciler.RunBatch(context.Background(), b, reconciler.Apply)
	b.Targets[0].Policy.Suspended = true
	reconciler.RunBatch(context.Background(), b, reconciler.Apply)
	if len(told) != 3 || told[0] || told[1] || !told[2] {
		t.Errorf("told: %v", told)
	}
}
