package gates

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// threeWaves are dev, stage and prod, one after the other.
var threeWaves = map[string]Conditions{
	"dev": {Wanted: "d"}, "stage": {Wanted: "s", DependsOn: []string{"dev"}}, "prod": {Wanted: "p", DependsOn: []string{"dev", "stage"}},
}

// noted is what passes left that found the targets so.
func noted(reports ...*plan.Report) Before {
	var b Before
	for _, r := range reports {
		r.Source, r.Wanted = "s", threeWaves[r.Target].Wanted
		b.Note(r)
	}
	return b
}

func TestATargetNamesWhomItWaitsForAndWhoEndsIt(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	done := func(target string) *plan.Report {
		return &plan.Report{Target: target, Revision: "r1", Plan: &plan.Plan{}}
	}
	held := func(target string) *plan.Report {
		r := done(target)
		r.Plan.Steps = []step.Step{{Held: step.HeldSuspended, HeldReason: "of the pass before", Pool: "a/web"}}
		return r
	}
	by := func(target, pool string) Records {
		return Records{Suspensions: []Suspension{{Target: target, Pool: pool, By: "ann", Reason: "incident", Since: now.Add(-time.Hour), Until: now.Add(time.Hour)}}}
	}
	const text = "suspended by ann until 2 Mar 2026 11:00 UTC: incident (since 2 Mar 2026 09:00 UTC); "
	for name, tc := range map[string]struct {
		before  Before
		records Records
		want    string
	}{
		"both have converged":     {noted(done("dev"), done("stage")), Records{}, ""},
		"a process that starts":   {Before{}, Records{}, "waits for the target dev, which has not been observed yet"},
		"the nearer alone is":     {noted(done("stage")), Records{}, "waits for the target dev, which has not been observed yet"},
		"the first alone has":     {noted(done("dev")), Records{}, "waits for the target stage, which has not been observed yet"},
		"the first is suspended":  {noted(held("dev"), done("stage")), by("dev", ""), "waits for the target dev, which is " + text + "weir resume dev"},
		"a pool of the first is":  {noted(held("dev"), done("stage")), by("dev", "a/web"), "waits for the target dev, which has the pool a/web " + text + "weir resume dev a/web"},
		"everything is":           {noted(held("dev"), done("stage")), by("", ""), "waits for the target dev, which is suspended with all others, " + text + "weir resume --all"},
		"suspended as Git has it": {noted(done("dev"), done("stage")), by("dev", ""), ""},
		"it has been resumed":     {noted(held("dev"), done("stage")), Records{}, "waits for the target dev, which is held (suspended): of the pass before"},
	} {
		d := reconciler.Desired{Source: "s", Commit: content.Commit{Revision: "r1"}, Policy: model.Policy{Target: "prod"}}
		batches := []reconciler.Batch{{Targets: []reconciler.Desired{d}}}
		Gate(batches, threeWaves, tc.records, tc.before, Pending{}, clock.At(func() time.Time { return now })())
		got := batches[0].Targets[0]
		if got.Policy.Gates.Wave != tc.want || got.Wanted != "p" {
			t.Errorf("%s: got %q, want %q", name, got.Policy.Gates.Wave, tc.want)
		}
		if (len(got.Policy.Gates.Earlier) == 2) != (tc.want == "") {
			t.Errorf("%s: earlier %+v", name, got.Policy.Gates.Earlier)
		}
	}
}

// An image that only a later target knows makes weir ask AWS anew for the earlier ones, once.
func TestEarlierTargetsAreAskedAnew(t *testing.T) {
	t0 := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	at := func(target, image string, since, fresh time.Time) *plan.Report {
		r := &plan.Report{Target: target, Revision: "r1", Region: "region-of-" + target, Plan: &plan.Plan{}, Fresh: fresh}
		if image != "" {
			r.Levels = []model.Level{{ID: "ami-" + target + image, Name: image, Since: since}}
		}
		return r
	}
	busy := at("dev", "old", t0, time.Time{})
	busy.Plan.Steps = []step.Step{{}}
	for name, tc := range map[string]struct {
		before Before
		want   map[string]time.Time
	}{
		"all have it":              {noted(at("dev", "new", t0, time.Time{}), at("stage", "new", t0, time.Time{}), at("prod", "new", t0, time.Time{})), map[string]time.Time{}},
		"nobody else has it":       {noted(at("dev", "old", t0, time.Time{}), at("stage", "old", t0, time.Time{}), at("prod", "new", t0.Add(1), time.Time{})), map[string]time.Time{"dev": t0.Add(1), "stage": t0.Add(1)}},
		"the first has":            {noted(at("dev", "new", t0, time.Time{}), at("stage", "old", t0, time.Time{}), at("prod", "new", t0.Add(1), time.Time{})), map[string]time.Time{"stage": t0.Add(1)}},
		"they were asked since":    {noted(at("dev", "old", t0, t0.Add(1)), at("stage", "old", t0, t0.Add(2)), at("prod", "new", t0.Add(1), time.Time{})), map[string]time.Time{}},
		"the first is at work":     {noted(busy, at("stage", "new", t0, time.Time{}), at("prod", "new", t0, time.Time{})), map[string]time.Time{}},
		"the first follows none":   {noted(at("dev", "", t0, time.Time{}), at("stage", "new", t0, time.Time{}), at("prod", "new", t0, time.Time{})), map[string]time.Time{}},
		"the last was not seen":    {noted(at("dev", "old", t0, time.Time{})), nil},
		"the last follows nothing": {noted(at("dev", "old", t0, time.Time{}), at("prod", "", t0, time.Time{})), nil},
	} {
		if d := cmp.Diff(tc.want, Renewals("prod", threeWaves, tc.before)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// A target that was at the revision before, or with another configuration, has not
// converged with what is wanted now.
func TestConvergedIsAboutWhatIsWantedNow(t *testing.T) {
	for name, change := range map[string]func(r *plan.Report){
		"another revision": func(r *plan.Report) { r.Revision = "r0" }, "another configuration": func(r *plan.Report) { r.Wanted = "old" },
	} {
		r := &plan.Report{Target: "dev", Source: "s", Revision: "r1", Wanted: "d", Plan: &plan.Plan{}}
		change(r)
		var b Before
		b.Note(r)
		batches := []reconciler.Batch{{Targets: []reconciler.Desired{{Source: "s", Commit: content.Commit{Revision: "r1"}, Policy: model.Policy{Target: "stage"}}}}}
		Gate(batches, threeWaves, Records{}, b, Pending{}, clock.At(time.Now)())
		if got := batches[0].Targets[0].Policy.Gates.Wave; !strings.HasPrefix(got, "waits for the target dev, which ") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
