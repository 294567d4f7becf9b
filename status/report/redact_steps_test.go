package report_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/report"
)

// What is shown of changes is what a deep copy with every text redacted is, whatever they
// hold, and the changes themselves stay.
func TestSharedChangesAreRedactedLikeCopies(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	redact := report.Redact(func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") })
	text := func() string { return []string{"", "a", "spot", "a hunter2 b", "hunter2"}[random.IntN(5)] }
	var value func(depth int) any
	value = func(depth int) any {
		switch n := random.IntN(10); {
		case n < 4 || depth == 0:
			return []any{nil, true, int32(3), int64(4), 0.5, []string(nil), map[string]any(nil), text(), text(), text()}[random.IntN(10)]
		case n < 6:
			return []any{value(depth - 1), value(depth - 1)}[:random.IntN(3)]
		case n < 8:
			return map[string]any{"a": value(depth - 1), "b": value(depth - 1)}
		case n < 9:
			return []string{text(), text()}[:random.IntN(3)]
		}
		return map[string]string{"a": text()}
	}
	for range 2000 {
		changes := make([]step.Change, random.IntN(4))
		for i := range changes {
			changes[i] = step.Change{Field: text(), From: value(3), To: value(3), Words: text()}
		}
		before, err := json.Marshal(changes)
		if err != nil {
			t.Fatal(err)
		}
		steps := []step.Step{{Changes: changes}}
		shown := redact.Report(&plan.Report{Plan: &plan.Plan{Steps: steps}, Outcomes: []step.Outcome{{Step: steps[0]}}})
		want := make([]step.Change, len(changes))
		for i, c := range changes {
			c.Field, c.From, c.To, c.Words = redact.Text(c.Field), redact.Value(c.From), redact.Value(c.To), redact.Text(c.Words)
			want[i] = c
		}
		for _, got := range [][]step.Change{shown.Plan.Steps[0].Changes, shown.Outcomes[0].Step.Changes} {
			if out, _ := json.Marshal(got); !reflect.DeepEqual(got, want) || strings.Contains(string(out), "hunter2") {
				t.Fatalf("%s is shown as %s", before, out)
			}
		}
		if after, _ := json.Marshal(changes); string(after) != string(before) {
			t.Fatalf("%s became %s", before, after)
		}
	}
}
