package page

import (
	"encoding/json"
	"errors"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
	"github.com/weir-gitops/weir/status/wording"
)

// heldBy is a pass over a target of one pool that has a step which waits.
func heldBy(target string, hold step.Hold, why string, verb step.Verb, opts ...statustest.PoolOption) *plan.Report {
	s := statustest.StepFor(verb, step.AutoScalingGroup, "default/web", target+"-web")
	s.Held, s.HeldReason = hold, why
	return statustest.With(statustest.Report(target, statustest.Pool(target, "web", append([]statustest.PoolOption{statustest.Unconverged(plan.PhaseRunning)}, opts...)...)), step.Held, s)
}

func TestWhatIsHeldDoesNotMove(t *testing.T) {
	notThere := func(p *plan.PoolStatus) {
		p.Phase, p.InfrastructureReady, p.Replicas, p.ReadyReplicas = plan.PhaseProvisioning, false, 0, 0
	}
	busy := func(p *plan.PoolStatus) { p.Nodegroup = &plan.NodegroupStatus{Status: "CREATING"} }
	for name, c := range map[string]struct {
		r    *plan.Report
		want report.Phase
	}{
		"an approval":            {heldBy("prod", step.HeldApproval, "", step.Update), report.Held},
		"a deletion":             {heldBy("prod", step.HeldPruneLimit, "", step.Delete), report.Held},
		"a window":               {heldBy("prod", step.HeldWindow, "", step.Rollout), report.Held},
		"a control plane":        {heldBy("prod", step.HeldControlPlane, "", step.Rollout), report.Held},
		"somebody has to look":   {statustest.Report("prod", statustest.Pool("prod", "web", notConverged("Warning"))), report.Held},
		"it passes by itself":    {statustest.Report("prod", statustest.Pool("prod", "web", notConverged("Info"))), report.Moving},
		"a wave":                 {heldBy("prod", step.HeldWave, "", step.Update), report.Held},
		"a suspended pool":       {heldBy("prod", step.HeldSuspended, "", step.Update), report.Held},
		"a pool to be made":      {heldBy("prod", step.HeldApproval, "", step.Create, notThere), report.Held},
		"it scales besides":      {heldBy("prod", step.HeldApproval, "", step.Update, statustest.Sized(1, 4)), report.Moving},
		"it rolls besides":       {heldBy("prod", step.HeldApproval, "", step.Update, statustest.Rolling(10, 2)), report.Moving},
		"the nodegroup is made":  {heldBy("prod", step.HeldApproval, "", step.Update, busy), report.Moving},
		"another step goes on":   {statustest.With(heldBy("prod", step.HeldWindow, "", step.Rollout), step.Done, statustest.StepFor(step.Update, step.LaunchTemplate, "default/web", "web")), report.Moving},
		"an orphan and no pools": {statustest.With(statustest.Report("prod"), step.Held, step.Step{Verb: step.Delete, Resource: step.AutoScalingGroup, Pool: "default/gone", Held: step.HeldApproval}), report.Held},
	} {
		if got := report.PhaseOf(c.r); got != c.want {
			t.Errorf("%s: the target is %s, want %s", name, got, c.want)
		}
		b := testBoard()
		b.Targets.Report(t.Context(), c.r)
		targets := b.Targets.All()
		for _, i := range poolItems(targets) {
			if i.mark != c.want {
				t.Errorf("%s: the pool is %s, want %s", name, i.mark, c.want)
			}
		}
		if page := get(t, b, "/").Body.String(); c.want == report.Held && strings.Contains(page, `class="phase moving"`) {
			t.Errorf("%s: something spins on the overview", name)
		}
	}
}

// notConverged is a pool at rest that is not what Git says although no step is left.
func notConverged(severity string) func(*plan.PoolStatus) {
	return func(p *plan.PoolStatus) {
		p.Converged = false
		p.Conditions = []plan.Condition{{Type: "Ready", Status: "False", Severity: severity, Reason: "RolloutIncomplete", Message: "1 instances do not have the wanted version"}}
	}
}

func TestOverviewSaysThatAnApprovalIsAwaited(t *testing.T) {
	b := testBoard()
	first := heldBy("prod", step.HeldApproval, "", step.Update)
	first.Plan.Steps[0].HeldReason, first.Plan.Steps[0].HeldEnds = "weir approve "+first.Plan.Digest(), "weir approve "+first.Plan.Digest()
	b.Targets.Report(t.Context(), first)
	b.Targets.Report(t.Context(), heldBy("edge", step.HeldPruneLimit, "weir approve", step.Delete))
	b.Targets.Report(t.Context(), heldBy("dev", step.HeldWindow, "opens on Monday", step.Rollout))
	page := get(t, b, "/").Body.String()
	for _, want := range []string{
		"2 plans wait for an approval.", "1 step waits for an approval: weir approve " + first.Plan.Digest() + ". Read the plan first.", "1 step waits for a window: opens on Monday; released by: the window, or weir reconcile dev --override-window.",
		"Last outcome 1 step waits for an approval", "prod held",
	} {
		if !strings.Contains(words(page), want) {
			t.Errorf("the overview lacks %q:\n%s", want, words(page))
		}
	}
	if !strings.Contains(page, `href="/targets/prod/plan"`) {
		t.Error("the overview has no link to the plan")
	}
	b.Targets.Report(t.Context(), statustest.Report("new", statustest.Pool("new", "web", statustest.Sized(1, 4), statustest.Unconverged(plan.PhaseScalingUp))))
	if text := words(get(t, b, "/").Body.String()); !strings.Contains(text, "1 pool changes, 2 plans wait for an approval") {
		t.Errorf("beside what moves the approval is not told:\n%s", text)
	}
}

func TestStalePoolsAreNotCalledConverged(t *testing.T) {
	b := testBoard()
	b.Targets.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web"), statustest.Pool("prod", "batch", statustest.Failed("rollout-failed", "it went back"))))
	away := statustest.Report("prod")
	away.Plan, away.Err = nil, errors.New("sts:AssumeRole: AccessDenied")
	b.Targets.Report(t.Context(), away)
	b.Targets.Report(t.Context(), statustest.Report("edge", statustest.Pool("edge", "cache")))
	for path, want := range map[string][]string{
		"/":                                 {"Pools 1 / 3 converged", "Instances 9 / 9 ready, 6 of them as of an earlier pass", "the state of 2 pools is unknown"},
		"/pools":                            {"Running stale", "unknown", "Failed stale"},
		"/targets/prod/pools/default/web":   {"Running stale", "Converged unknown", "As of", "See target prod", "sts:AssumeRole: AccessDenied"},
		"/targets/edge/pools/default/cache": {"Running Namespace"},
	} {
		text := words(get(t, b, path).Body.String())
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %q:\n%s", path, w, text)
			}
		}
	}
	if page := get(t, b, "/pools?target=prod").Body.String(); strings.Contains(page, "phase converged") || !strings.Contains(page, "phase failing") {
		t.Errorf("the list of pools shows what is not known as converged, or a failure as none:\n%s", words(page))
	}
}

func TestPageSaysThatAConfigurationIsRefused(t *testing.T) {
	b := testBoard()
	b.Daemon.ShowConfiguration("interval: 1m\n")
	const want = "The configuration file is invalid. weir keeps the previous configuration. weir.yaml:3:1: intervall: unknown key"
	b.Daemon.RefuseConfiguration("weir.yaml:3:1: intervall: unknown key")
	for _, path := range []string{"/", "/configuration"} {
		if text := words(get(t, b, path).Body.String()); !strings.Contains(text, want) {
			t.Errorf("%s does not say it:\n%s", path, text)
		}
	}
	if e := b.Activity.Events()[0]; e.Kind != "configuration-refused" || e.Text != "weir.yaml:3:1: intervall: unknown key" {
		t.Errorf("the event is %+v", e)
	}
	b.Daemon.ShowConfiguration("interval: 2m\n")
	if text := words(get(t, b, "/").Body.String()); strings.Contains(text, "is refused") {
		t.Errorf("it is said after another one holds:\n%s", text)
	}
}

func TestStepsSayWhetherInstancesAreReplacedOrEnded(t *testing.T) {
	for _, c := range []struct {
		verb step.Verb
		n    int
		want string
	}{
		{step.Delete, 1, "ends 1 instance"}, {step.Delete, 2, "ends 2 instances"}, {step.Update, 3, "ends 3 instances"}, {step.Update, 0, "replaces instances"},
		{step.Rollout, 2, "replaces 2 instances"}, {step.Replace, 2, "replaces 2 instances"},
	} {
		s := statustest.StepFor(c.verb, step.AutoScalingGroup, "default/web", "web")
		s.Disruptive, s.Instances = true, c.n
		b := testBoard()
		b.Targets.Report(t.Context(), statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Held, s))
		page := get(t, b, "/targets/prod").Body.String()
		if !strings.Contains(words(page), c.want) {
			t.Errorf("%s of %d is not told as %q:\n%s", c.verb, c.n, c.want, words(page))
		}
	}
}

func TestInformationStaysOffTheOverview(t *testing.T) {
	b := testBoard()
	r := statustest.Report("prod", statustest.Pool("prod", "web"))
	r.Diagnostics = diag.List{{Severity: diag.Info, Code: "older-field", Summary: "it is the older way"}, {Severity: diag.Warning, Summary: "the default VPC is used"}}
	b.Targets.Report(t.Context(), r)
	if text := words(get(t, b, "/").Body.String()); strings.Contains(text, "older way") || !strings.Contains(text, "the default VPC is used") {
		t.Errorf("the overview says %s", text)
	}
	if text := words(get(t, b, "/targets/prod").Body.String()); !strings.Contains(text, "it is the older way") {
		t.Errorf("the target's page says %s", text)
	}
}

func TestSourceSaysWhenItChanged(t *testing.T) {
	b := testBoard()
	b.Configure([]current.Source{{Name: "fleet"}}, nil)
	b.Sources.Update(current.Source{Name: "fleet", Revision: statustest.ShaNew, FetchedAt: statustest.Noon.Add(-time.Hour)})
	b.Sources.Update(current.Source{Name: "fleet", Error: "away"})
	b.Sources.Update(current.Source{Name: "fleet", Revision: statustest.ShaNew, FetchedAt: statustest.Noon})
	if s := b.Sources.All()[0]; !s.ChangedAt.Equal(statustest.Noon.Add(-time.Hour)) || !s.FetchedAt.Equal(statustest.Noon) {
		t.Errorf("changed %s, fetched %s", s.ChangedAt, s.FetchedAt)
	}
}

// A wait is told in the words that commit statuses and events have for it.
func TestWaitsAreToldAsElsewhere(t *testing.T) {
	for _, w := range step.Waits {
		if w.Hold == step.HeldConflict { // its diagnostic tells of it
			continue
		}
		b := testBoard()
		r := statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Held, statustest.Waiting(w.Hold))
		b.Targets.Report(t.Context(), r)
		want := wording.WaitsOf("prod", r.Plan.Steps)[0].Text()
		for _, page := range []string{"/", "/targets/prod"} {
			if text := html.UnescapeString(words(get(t, b, page).Body.String())); !strings.Contains(text, want+".") {
				t.Errorf("%s: %s lacks %q:\n%s", w.Hold, page, want, text)
			}
		}
	}
}

// The page says to which commit a target is held, on every page about it: since when, why, what
// is done meanwhile and who ends it.
func TestAHeldTargetIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		report *plan.Report
		want   []string
	}{
		"held": {statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web")), []string{
			"Held to 9c1f0d2", "Reason: the followed commit cannot be rendered: overlays/prod/web.yaml:1:5: did not find expected",
			"weir corrects drift from that commit. It creates, rolls out and deletes nothing. Released by: a commit that fixes or reverts the error; if weir's configuration changed, check it too.",
		}},
		"only observed": {statustest.HeldTo(""), []string{"Only observed", "none of 4 earlier commits", "weir changes nothing of the target, and drift stays."}},
		"held and suspended": {func() *plan.Report {
			r := statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web"))
			r.Suspended = true
			return r
		}(), []string{"Held to 9c1f0d2", "The target is suspended, so weir changes nothing of it, and drift stays."}},
		"held and reporting": {func() *plan.Report {
			r := statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web"))
			r.ReportOnly = true
			return r
		}(), []string{"Held to 9c1f0d2", "The target is in report mode, so weir changes nothing of it, and drift stays."}},
	} {
		b := testBoard()
		b.Targets.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		b.Targets.Report(t.Context(), c.report)
		for _, page := range []string{"/", "/targets/prod", "/targets/prod/plan", "/targets/prod/pools/default/web"} {
			text := html.UnescapeString(words(get(t, b, page).Body.String()))
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %s lacks %q:\n%s", name, page, want, text)
				}
			}
		}
		var api struct {
			Targets []struct {
				Name   string
				HeldTo *report.Kept
			}
		}
		if err := json.Unmarshal(get(t, b, "/api/v1/targets").Body.Bytes(), &api); err != nil {
			t.Fatal(err)
		}
		for _, target := range api.Targets {
			switch h := target.HeldTo; {
			case target.Name != "prod" && h != nil:
				t.Errorf("%s: %s is held as well", name, target.Name)
			case target.Name != "prod":
			case h == nil || h.Revision != c.report.Fallback.To() || h.ObservedOnly != (h.Revision == "") || h.Since.IsZero() || h.Ends == "" || h.Text != c.report.Fallback.Text():
				t.Errorf("%s: the API says %+v", name, h)
			}
		}
		b.Targets.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		if text := words(get(t, b, "/targets/prod").Body.String()); strings.Contains(text, "Held to") || strings.Contains(text, "Only observed") {
			t.Errorf("%s: it is told after its end:\n%s", name, text)
		}
	}
}

// What a held target's plan shows was set by the files of the earlier commit: links lead there.
func TestOriginsOfAHeldTargetLeadToTheEarlierCommit(t *testing.T) {
	b := testBoard()
	s := statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "prod-web")
	s.Held = step.HeldWindow
	s.Changes = []step.Change{{Field: "maxSize", From: 9, To: 3, Origin: &diag.Position{File: "overlays/prod/web.yaml", Line: 14}}}
	b.Sources.Update(current.Source{Name: "fleet", WebURL: "https://forge.example.com/ops/fleet", Forge: "gitea", Revision: statustest.ShaNew})
	b.Targets.Report(t.Context(), statustest.With(statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web")), step.Held, s))
	page := get(t, b, "/targets/prod/plan").Body.String()
	if !strings.Contains(page, statustest.ShaOld+"/overlays/prod/web.yaml#L14") {
		t.Errorf("the origin leads elsewhere:\n%s", page)
	}
}
