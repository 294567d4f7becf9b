package status

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// heldBy is a pass over a target of one pool that has a step which waits.
func heldBy(target string, hold step.Hold, why string, verb step.Verb, opts ...poolOption) *plan.Report {
	s := stepFor(verb, step.AutoScalingGroup, "default/web", target+"-web")
	s.Held, s.HeldReason = hold, why
	return with(report(target, pool(target, "web", append([]poolOption{unconverged(plan.PhaseRunning)}, opts...)...)), step.Held, s)
}

func TestWhatIsHeldDoesNotMove(t *testing.T) {
	notThere := func(p *plan.PoolStatus) {
		p.Phase, p.InfrastructureReady, p.Replicas, p.ReadyReplicas = plan.PhaseProvisioning, false, 0, 0
	}
	busy := func(p *plan.PoolStatus) { p.Nodegroup = &plan.NodegroupStatus{Status: "CREATING"} }
	for name, c := range map[string]struct {
		r    *plan.Report
		want TargetPhase
	}{
		"an approval":            {heldBy("prod", step.HeldApproval, "", step.Update), TargetHeld},
		"a deletion":             {heldBy("prod", step.HeldPruneLimit, "", step.Delete), TargetHeld},
		"a window":               {heldBy("prod", step.HeldWindow, "", step.Rollout), TargetHeld},
		"a control plane":        {heldBy("prod", step.HeldControlPlane, "", step.Rollout), TargetHeld},
		"somebody has to look":   {report("prod", pool("prod", "web", notConverged("Warning"))), TargetHeld},
		"it passes by itself":    {report("prod", pool("prod", "web", notConverged("Info"))), TargetMoving},
		"a wave":                 {heldBy("prod", step.HeldWave, "", step.Update), TargetHeld},
		"a suspended pool":       {heldBy("prod", step.HeldSuspended, "", step.Update), TargetHeld},
		"a pool to be made":      {heldBy("prod", step.HeldApproval, "", step.Create, notThere), TargetHeld},
		"it scales besides":      {heldBy("prod", step.HeldApproval, "", step.Update, sized(1, 4)), TargetMoving},
		"it rolls besides":       {heldBy("prod", step.HeldApproval, "", step.Update, rolling(10, 2)), TargetMoving},
		"the nodegroup is made":  {heldBy("prod", step.HeldApproval, "", step.Update, busy), TargetMoving},
		"another step goes on":   {with(heldBy("prod", step.HeldWindow, "", step.Rollout), step.Done, stepFor(step.Update, step.LaunchTemplate, "default/web", "web")), TargetMoving},
		"an orphan and no pools": {with(report("prod"), step.Held, step.Step{Verb: step.Delete, Resource: step.AutoScalingGroup, Pool: "default/gone", Held: step.HeldApproval}), TargetHeld},
	} {
		if got := phaseOf(c.r); got != c.want {
			t.Errorf("%s: the target is %s, want %s", name, got, c.want)
		}
		b := testBoard()
		b.Report(t.Context(), c.r)
		targets := b.Targets()
		for _, i := range poolItems(targets) {
			if i.mark != c.want {
				t.Errorf("%s: the pool is %s, want %s", name, i.mark, c.want)
			}
		}
		if page := get(t, b, "/").Body.String(); c.want == TargetHeld && strings.Contains(page, `class="phase moving"`) {
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
	first := heldBy("prod", step.HeldApproval, "weir approve", step.Update)
	b.Report(t.Context(), first)
	b.Report(t.Context(), heldBy("edge", step.HeldPruneLimit, "weir approve", step.Delete))
	b.Report(t.Context(), heldBy("dev", step.HeldWindow, "opens on Monday", step.Rollout))
	page := get(t, b, "/").Body.String()
	for _, want := range []string{
		"2 plans wait for an approval.", "The plan waits for an approval. Read it first. weir approve " + first.Plan.Digest(), "1 step is held: window, opens on Monday",
		"Last outcome 1 step held: approval", "prod held",
	} {
		if !strings.Contains(words(page), want) {
			t.Errorf("the overview lacks %q:\n%s", want, words(page))
		}
	}
	if !strings.Contains(page, `href="/targets/prod/plan"`) {
		t.Error("the overview has no link to the plan")
	}
	b.Report(t.Context(), report("new", pool("new", "web", sized(1, 4), unconverged(plan.PhaseScalingUp))))
	if text := words(get(t, b, "/").Body.String()); !strings.Contains(text, "1 pool changes, 2 plans wait for an approval") {
		t.Errorf("beside what moves the approval is not told:\n%s", text)
	}
}

func TestStalePoolsAreNotCalledConverged(t *testing.T) {
	b := testBoard()
	b.Report(t.Context(), report("prod", pool("prod", "web"), pool("prod", "batch", failed("rollout-failed", "it went back"))))
	away := report("prod")
	away.Plan, away.Err = nil, errors.New("sts:AssumeRole: AccessDenied")
	b.Report(t.Context(), away)
	b.Report(t.Context(), report("edge", pool("edge", "cache")))
	for path, want := range map[string][]string{
		"/":                                 {"Pools 1 / 3 converged", "Instances 9 / 9 ready, 6 of them as last seen", "2 pools are not known now"},
		"/pools":                            {"Running stale", "not known", "Failed stale"},
		"/targets/prod/pools/default/web":   {"Running stale", "Converged not known", "As it was", "What is wrong with prod", "sts:AssumeRole: AccessDenied"},
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
	b.ShowConfiguration("interval: 1m\n")
	const want = "The configuration on the disk is refused, and the one before it holds. weir.yaml:3:1: intervall: unknown key"
	b.RefuseConfiguration("weir.yaml:3:1: intervall: unknown key")
	for _, path := range []string{"/", "/configuration"} {
		if text := words(get(t, b, path).Body.String()); !strings.Contains(text, want) {
			t.Errorf("%s does not say it:\n%s", path, text)
		}
	}
	if e := b.Events()[0]; e.Kind != "configuration-refused" || e.Text != "weir.yaml:3:1: intervall: unknown key" {
		t.Errorf("the event is %+v", e)
	}
	b.ShowConfiguration("interval: 2m\n")
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
		s := stepFor(c.verb, step.AutoScalingGroup, "default/web", "web")
		s.Disruptive, s.Instances = true, c.n
		b := testBoard()
		b.Report(t.Context(), with(report("prod", pool("prod", "web")), step.Held, s))
		page := get(t, b, "/targets/prod").Body.String()
		if !strings.Contains(words(page), c.want) {
			t.Errorf("%s of %d is not told as %q:\n%s", c.verb, c.n, c.want, words(page))
		}
	}
}

func TestInformationStaysOffTheOverview(t *testing.T) {
	b := testBoard()
	r := report("prod", pool("prod", "web"))
	r.Diagnostics = diag.List{{Severity: diag.Info, Code: "older-field", Summary: "it is the older way"}, {Severity: diag.Warning, Summary: "the default VPC is used"}}
	b.Report(t.Context(), r)
	if text := words(get(t, b, "/").Body.String()); strings.Contains(text, "older way") || !strings.Contains(text, "the default VPC is used") {
		t.Errorf("the overview says %s", text)
	}
	if text := words(get(t, b, "/targets/prod").Body.String()); !strings.Contains(text, "it is the older way") {
		t.Errorf("the target's page says %s", text)
	}
}

func TestSourceSaysWhenItChanged(t *testing.T) {
	b := testBoard()
	b.Configure([]Source{{Name: "fleet"}}, nil)
	b.Source(Source{Name: "fleet", Revision: shaNew, FetchedAt: noon.Add(-time.Hour)})
	b.Source(Source{Name: "fleet", Error: "away"})
	b.Source(Source{Name: "fleet", Revision: shaNew, FetchedAt: noon})
	if s := b.Sources()[0]; !s.ChangedAt.Equal(noon.Add(-time.Hour)) || !s.FetchedAt.Equal(noon) {
		t.Errorf("changed %s, fetched %s", s.ChangedAt, s.FetchedAt)
	}
}

func TestDriftNamesItsFields(t *testing.T) {
	s := stepFor(step.Update, step.AutoScalingGroup, "default/web", "web")
	s.Drift = &step.Drift{}
	s.Changes = []step.Change{{Field: "maxSize", From: 7, To: 20}, {Field: "tags", From: strings.Repeat("x", 100), To: "y"}, {Field: "minSize", To: 1}, {Field: "zones"}}
	_, events := tell(Told{}, with(report("prod", pool("prod", "web")), step.Done, s), noon, false)
	const want = "AWS differs although Git did not change: update auto scaling group web (maxSize 7 → 20, tags, minSize (none) → 1 and 1 more field)"
	if len(events) == 0 || events[0].Kind != "drift-found" || events[0].Text != want {
		t.Errorf("told %+v, want %s", events, want)
	}
}

func TestWhatEndedIsNamed(t *testing.T) {
	scale := stepFor(step.Update, step.ManagedNodegroup, "default/gpu", "gpu")
	scale.Changes = []step.Change{{Field: "scaling.maxSize", From: 2, To: 4}}
	began := with(report("prod", pool("prod", "gpu", managed)), step.Done, scale)
	began.Outcomes[0].Result.UpdateID = "u-1"
	told, _ := tell(Told{}, began, noon, false)
	_, events := tell(told, report("prod", pool("prod", "gpu", managed)), noon, false)
	if len(events) == 0 || events[0].Kind != "nodegroup-update-succeeded" || events[0].Text != "the change of scaling.maxSize succeeded" {
		t.Errorf("told %+v", events)
	}
	told, _ = tell(Told{}, report("prod", pool("prod", "web", rolling(10, 3))), noon, false)
	_, events = tell(told, report("prod", pool("prod", "web", rolling(60, 1))), noon, false)
	if len(events) == 0 || events[0].Text != "60 %, 1 instance left" {
		t.Errorf("told %+v", events)
	}
}
