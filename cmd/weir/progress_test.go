package main

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
)

// Each outcome of a step is one line that names the target, the step, its resource and the reason.
func TestProgressOfSteps(t *testing.T) {
	const done, skipped, failed = reconciler.StepDone, reconciler.StepSkipped, reconciler.StepFailed
	var out strings.Builder
	log := newProgress(surroundings{stderr: &out}).logger().With("target", "prod", "pool", "default/web", "step", "update auto-scaling-group", "name", "web")
	log.Info(done)
	log.Warn(skipped, "error", "AWS is busy", "kind", "busy")
	log.Error(failed, "error", "denied\x1b[31m", "kind", "denied")
	log.Debug("nothing that people read")
	log.Warn("a list is old", "age", "1h")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{
		"prod: update auto-scaling-group web: done",
		"prod: update auto-scaling-group web: not done, a later pass tries again: AWS is busy",
		"prod: update auto-scaling-group web: failed: denied",
	}
	if len(lines) != len(want)+1 || strings.Contains(out.String(), "\x1b") {
		t.Fatalf("got %q", lines)
	}
	for i, text := range want {
		if !strings.HasPrefix(lines[i], text) {
			t.Errorf("line %d: got %q, want %q", i, lines[i], text)
		}
	}
	if !strings.HasPrefix(lines[3], "a list is old ") || !strings.Contains(lines[3], `age="1h"`) {
		t.Errorf("a warning: %q", lines[3])
	}
}
