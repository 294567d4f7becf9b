package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/statustest"
	"github.com/weir-gitops/weir/status/wording"
)

// Each wait is told in the words that everybody else has for it: in plans as text, Markdown and
// JSON, after an apply, and with the pools.
func TestEachWaitIsToldInTheSameWords(t *testing.T) {
	for _, w := range step.Waits {
		r := statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Held, statustest.Waiting(w.Hold))
		wait := wording.WaitsOf("prod", r.Plan.Steps)[0]
		var text, after, markdown, done bytes.Buffer
		Printer{W: &text}.Plan(r)
		Printer{W: &after}.Applied(Applied{First: r, Last: r, Outcomes: r.Outcomes})
		if err := PlansMarkdown(&markdown, []*plan.Report{r}); err != nil {
			t.Fatal(err)
		}
		if err := AppliedMarkdown(&done, []Applied{{First: r, Last: r, Outcomes: r.Outcomes}}); err != nil {
			t.Fatal(err)
		}
		for outlet, c := range map[string]struct{ got, want string }{
			"plan":             {text.String(), "\n  " + wait.Text() + "\n"},
			"apply":            {after.String(), "\n  " + wait.Text() + "\n"},
			"plan, Markdown":   {markdown.String(), "\n- " + wording.Escape(wait.Text()) + "\n"},
			"apply, Markdown":  {done.String(), "\n- " + wording.Escape(wait.Text()) + "\n"},
			"the step's line":  {text.String(), "[held: " + string(w.Hold) + ", until the cows come home]\n"},
			"a pool of status": {marked(t, r), string(w.Hold) + ", until the cows come home; released by: " + wait.Ends},
		} {
			if !strings.Contains(c.got, c.want) {
				t.Errorf("%s, %s: lacks %q:\n%s", w.Hold, outlet, c.want, c.got)
			}
		}
		data, err := json.Marshal(r.Plan)
		if err != nil {
			t.Fatal(err)
		}
		var shown struct {
			Steps []struct{ Held, HeldReason, HeldEnds string }
		}
		if err := json.Unmarshal(data, &shown); err != nil {
			t.Fatal(err)
		}
		if s := shown.Steps[0]; s.Held != string(w.Hold) || s.HeldReason != wait.Reason || s.HeldEnds != wait.Ends || s.HeldEnds == "" || strings.Contains(s.HeldEnds, "TARGET") {
			t.Errorf("%s, JSON: %+v", w.Hold, s)
		}
	}
}

// marked is what weir status says of the pool in JSON.
func marked(t *testing.T, r *plan.Report) string {
	t.Helper()
	var m Marks
	m.Add("prod", r.Plan.Steps)
	data, err := json.Marshal(Standing("", r.Pools, nil, m, []Target{{Name: "prod"}}))
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Pools   []Mark
		Targets []Target
	}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Targets[0].Held) != 1 || out.Targets[0].Held[0] != "default/web: "+out.Pools[0].Held {
		t.Errorf("of the target it says %q, of the pool %q", out.Targets[0].Held, out.Pools[0].Held)
	}
	return out.Pools[0].Held
}
