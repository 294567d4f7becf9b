package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// A pass makes one line: at debug level where it did nothing and found nothing new.
func TestPassLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newPassLog(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	pass := func(r plan.Report) (level, message string, keys []string) {
		t.Helper()
		out.Reset()
		r.Target, r.Revision = "prod", "0123456789abcdef"
		p.report(&r)
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("not one line: %s", &out)
		}
		if line["target"] != "prod" || line["revision"] != "0123456" {
			t.Errorf("line %v", line)
		}
		return line["level"].(string), line["msg"].(string), slices.Sorted(maps.Keys(line))
	}
	quiet := []string{"converged", "duration", "level", "msg", "revision", "target", "time"}
	changed := []string{"converged", "done", "duration", "failed", "level", "msg", "revision", "target", "time"}
	wrong := []string{"duration", "level", "msg", "problems", "revision", "target", "time"}
	for _, tc := range []struct {
		name           string
		report         plan.Report
		level, message string
		keys           []string
	}{
		{"nothing to do", plan.Report{}, "DEBUG", "pass changed nothing", quiet},
		{"a step", plan.Report{Outcomes: []step.Outcome{{Status: step.Done}}}, "INFO", "pass changed AWS", changed},
		{"a fault", plan.Report{Err: errors.New("refused")}, "ERROR", "target has problems", wrong},
		{"the same fault", plan.Report{Err: errors.New("refused")}, "DEBUG", "pass changed nothing", quiet},
		{"the error is resolved", plan.Report{}, "INFO", "target has no more problems", []string{"duration", "level", "msg", "revision", "target", "time"}},
		{"the source's fault, which has its own line", plan.Report{Err: fmt.Errorf("unreachable: %w", plan.ErrSource)}, "DEBUG", "pass changed nothing", quiet},
		{"the source is back", plan.Report{}, "DEBUG", "pass changed nothing", quiet},
		{"a step from the last commit", plan.Report{Err: plan.ErrSource, Outcomes: []step.Outcome{{Status: step.Done}}}, "INFO", "pass changed AWS", changed},
		{"nothing again", plan.Report{}, "DEBUG", "pass changed nothing", quiet},
	} {
		if level, message, keys := pass(tc.report); level != tc.level || message != tc.message || !slices.Equal(keys, tc.keys) {
			t.Errorf("%s: %s %q %v, want %s %q %v", tc.name, level, message, keys, tc.level, tc.message, tc.keys)
		}
	}
}
