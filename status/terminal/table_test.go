package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
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
		m.Add(pools[0].Target, []step.Step{{Pool: "default/" + pools[0].Name, Held: step.HeldPruneLimit, Drift: &step.Drift{}}})
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
			if !strings.Contains(b.String(), s.Name) || !strings.Contains(b.String(), s.FailureMessage) || !strings.Contains(b.String(), "held: prune-limit; released by: weir approve DIGEST, or a commit that reverts the deletion; drift") {
				t.Errorf("something of %q is missing:\n%s", s.Name, b.String())
			}
		}
	})
}

// TestPlanOnATerminal keeps each field's value and origin within the width.
func TestPlanOnATerminal(t *testing.T) {
	r := changing()
	r.Plan.Steps[0].Changes = append(r.Plan.Steps[0].Changes, step.Change{Field: "description", To: strings.Repeat("long ", 60), Origin: at("overlays/prod/web.yaml", 13)})
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
		if got := ago(d); got != want {
			t.Errorf("%s: want %s, got %s", d, want, got)
		}
	}
}

// TestHistoryOnANarrowTerminal: which pool, and by which commit, is what somebody looks
// for at night, also in 80 columns.
func TestHistoryOnANarrowTerminal(t *testing.T) {
	events := []events.Event{{
		Time: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), Kind: "template-created", Target: "self-managed", Pool: "fleet/kubeadm-workers",
		Revision: "af3e4a8c0ffee", Text: "created launch template kubeadm-workers: it does not exist",
	}}
	runs := []history.Run{{Time: events[0].Time, Target: "self-managed", Phase: "Converged", Revision: "af3e4a8c0ffee", Text: "created launch template kubeadm-workers"}}
	for what, test := range map[string]struct {
		print func(Printer)
		want  []string
	}{
		"events": {func(p Printer) { p.Events(events) }, []string{"03-02 12:00:00", "fleet/kubeadm-workers", "af3e4a8", "created"}},
		"passes": {func(p Printer) { p.Passes(runs) }, []string{"03-02 12:00:00", "self-managed", "af3e4a8", "created"}},
	} {
		var b bytes.Buffer
		test.print(Printer{W: &b, Width: 80})
		for _, w := range test.want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s do not show %q:\n%s", what, w, b.String())
			}
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s: %d characters: %s", what, n, line)
			}
		}
	}
}
