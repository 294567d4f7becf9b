package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

func TestTargetsComeAfterThoseOfOthersToo(t *testing.T) {
	direct := map[string][]string{"stage": {"dev"}, "eu": {"stage"}, "us": {"stage"}, "prod": {"eu", "us", "dev"}, "loop": {"ring"}, "ring": {"loop"}}
	for target, want := range map[string][]string{
		"dev": nil, "stage": {"dev"}, "eu": {"dev", "stage"}, "prod": {"dev", "stage", "eu", "us"}, "loop": {"loop", "ring"},
	} {
		c := chains{direct: direct, lists: map[string][]string{}}
		if got := c.before(target); !slices.Equal(got, want) && target != "loop" {
			t.Errorf("%s comes after %v, want %v", target, got, want)
		}
	}
	c := chains{direct: direct, lists: map[string][]string{}}
	if a, b := c.before("eu"), c.before("us"); &a[0] != &b[0] {
		t.Error("targets after the same ones do not share a list")
	}
}

// A proposal's plan names the target that it moves first, where that has something to do.
func TestAProposalNamesWhatMovesFirst(t *testing.T) {
	report := func(target string, held ...step.Hold) *plan.Report {
		r := &plan.Report{Target: target, Plan: &plan.Plan{}}
		for _, h := range held {
			r.Plan.Steps = append(r.Plan.Steps, step.Step{Held: h})
		}
		return r
	}
	broken := &plan.Report{Target: "dev"}
	for name, tc := range map[string]struct {
		reports []*plan.Report
		want    string
	}{
		"all change":                 {[]*plan.Report{report("dev", ""), report("prod", ""), report("stage", "")}, "waits for the target dev, which moves first"},
		"the first has nothing":      {[]*plan.Report{report("dev"), report("prod", ""), report("stage", "")}, "waits for the target stage, which moves first"},
		"the first is not touched":   {[]*plan.Report{report("prod", "")}, ""},
		"the first cannot be told":   {[]*plan.Report{broken, report("prod", "")}, "waits for the target dev, which moves first"},
		"the last has nothing":       {[]*plan.Report{report("dev", ""), report("prod")}, ""},
		"the last is held, as it is": {[]*plan.Report{report("dev", ""), report("prod", step.HeldPaused)}, ""},
	} {
		r := &Review{after: map[string][]string{"prod": {"dev", "stage"}, "stage": {"dev"}}}
		r.await(tc.reports)
		for _, report := range tc.reports {
			if report.Target == "prod" && !report.Plan.Empty() {
				if got := report.Plan.Steps[0]; got.HeldReason != tc.want || (got.Held == step.HeldWave) != (tc.want != "") {
					t.Errorf("%s: %q, %q", name, got.Held, got.HeldReason)
				}
			}
			if report.Target == "dev" && report.Plan != nil && !report.Plan.Empty() && report.Plan.Steps[0].Held != "" {
				t.Errorf("%s: the first waits", name)
			}
		}
	}
}

// Waves of hundreds after hundreds are looked at with every commit.
func TestManyWavesOfManyTargets(t *testing.T) {
	c := chains{direct: map[string][]string{}, lists: map[string][]string{}}
	var before []string
	for wave := range 4 {
		var names []string
		for i := range 500 {
			names = append(names, fmt.Sprintf("%d-%d", wave, i))
			c.direct[names[i]] = before
		}
		before = names
	}
	began := time.Now()
	for name := range c.direct {
		if n, wave := len(c.before(name)), int(name[0]-'0'); n != 500*wave {
			t.Fatalf("%s comes after %d", name, n)
		}
	}
	t.Logf("%v for %d targets", time.Since(began), len(c.direct))
	if len(c.lists) != 3 {
		t.Errorf("%d lists were made for three waves", len(c.lists))
	}
}
