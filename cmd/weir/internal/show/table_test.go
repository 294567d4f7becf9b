package show

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// TestTablesFitTheTerminal draws tables of any texts: from 50 columns on no line is
// wider than the terminal, and elsewhere nothing is cut.
func TestTablesFitTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-zé/-]{0,60}`)
		var pools []plan.PoolStatus
		for range rapid.IntRange(1, 5).Draw(t, "pools") {
			pools = append(pools, plan.PoolStatus{
				Target: word.Draw(t, "target"), Namespace: "default", Name: word.Draw(t, "name"), Phase: plan.PhaseFailed, FailureMessage: word.Draw(t, "failure"),
				ReadyReplicas: 1000, DesiredReplicas: 1000, MinReplicas: 1, MaxReplicas: 1000, LaunchTemplateVersion: "9998",
			})
		}
		now := time.Now()
		m := Marks{Seen: map[string]time.Time{pools[0].Target: now.Add(-time.Hour)}, Now: now}
		m.Add(pools[0].Target, []plan.Step{{Pool: "default/" + pools[0].Name, Held: plan.HeldPruneLimit, Drift: &plan.Drift{}}})
		width := rapid.IntRange(60, 240).Draw(t, "width")
		var b bytes.Buffer
		Printer{W: &b, Width: width}.Pools(pools, m)
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d characters on a terminal of %d: %s", n, width, line)
			}
		}
		b.Reset()
		Printer{W: &b}.Pools(pools, m)
		for _, s := range pools {
			if !strings.Contains(b.String(), s.Name) || !strings.Contains(b.String(), s.FailureMessage) || !strings.Contains(b.String(), "held: prune-limit; drift") {
				t.Errorf("something of %q is missing:\n%s", s.Name, b.String())
			}
		}
	})
}

// TestPlanOnATerminal keeps each field's value and origin within the width.
func TestPlanOnATerminal(t *testing.T) {
	r := changing()
	r.Plan.Steps[0].Changes = append(r.Plan.Steps[0].Changes, plan.Change{Field: "description", To: strings.Repeat("long ", 60), Origin: at("overlays/prod/web.yaml", 13)})
	long := strings.Repeat("long ", 59)
	print := func(p Printer) string {
		var b bytes.Buffer
		p.W = &b
		p.Plan(r)
		return b.String()
	}
	folded := print(Printer{Width: 80})
	if strings.Contains(folded, long) || !strings.Contains(folded, "web.yaml:13)") {
		t.Errorf("want the value cut, and its origin in sight:\n%s", folded)
	}
	for line := range strings.Lines(folded) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); strings.HasPrefix(line, "      ") && n > 80 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	for name, p := range map[string]Printer{"--full": {Width: 80, Full: true}, "no terminal": {}} {
		if !strings.Contains(print(p), long) {
			t.Errorf("%s: the value is cut", name)
		}
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m", 47 * time.Hour: "47h", 50 * time.Hour: "2d"} {
		if got := Ago(d); got != want {
			t.Errorf("%s: want %s, got %s", d, want, got)
		}
	}
}
