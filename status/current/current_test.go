package current

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

func kindsOfEvents(events []events.Event) (out []string) {
	for i := range events {
		out = append(out, events[len(events)-1-i].Kind)
	}
	return out
}

func TestStateFollowsATarget(t *testing.T) {
	b := testState("prod")
	ctx := t.Context()
	b.Targets.Report(ctx, statustest.Created())
	b.Targets.Report(ctx, statustest.Report("prod", statustest.Pool("prod", "web")))
	b.Targets.Report(ctx, statustest.Report("prod", statustest.Pool("prod", "web"))) // steady: no history
	drift := statustest.RolloutSteps()
	drift[0].Drift = &step.Drift{}
	b.Targets.Report(ctx, statustest.With(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Unconverged(plan.PhaseRunning))), step.Done, drift...))
	b.Targets.Report(ctx, statustest.Report("prod", statustest.Pool("prod", "web", statustest.Rolling(20, 3))))
	b.Targets.Report(ctx, statustest.Report("prod", statustest.Pool("prod", "web", statustest.Rolling(60, 1))))
	b.Targets.Report(ctx, statustest.Report("prod", statustest.Pool("prod", "web", statustest.Failed("rollout-failed", "unhealthy"))))
	want := []string{
		"template-created", "group-created", "pool-converged",
		"drift-found", "version-created", "refresh-started", "refresh-progress", "refresh-failed",
	}
	if diff := cmp.Diff(want, kindsOfEvents(b.Activity.Events())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	var phases []report.Phase
	for _, r := range b.Activity.Runs() {
		phases = append(phases, r.Phase)
	}
	if diff := cmp.Diff([]report.Phase{report.Moving, report.Converged, report.Moving}, phases); diff != "" {
		t.Errorf("runs, newest first (-want +got):\n%s", diff)
	}
	st, ok := b.Targets.Find("prod")
	if !ok || len(st.Applied.Outcomes) != 2 || st.Applied.Outcomes[1].Step.Verb != step.Rollout {
		t.Errorf("the last applied pass is %+v", st.Applied)
	}
	many := &plan.Report{Target: "prod", StartedAt: b.Now(), Outcomes: slices.Repeat(st.Applied.Outcomes, 100)}
	for i := range many.Outcomes {
		many.Outcomes[i].Status = step.Done
	}
	b.Targets.Report(t.Context(), many)
	if st, _ := b.Targets.Find("prod"); len(st.Applied.Outcomes) != AppliedOutcomes || cap(st.Applied.Outcomes) >= 200 || st.MoreApplied != 200-AppliedOutcomes {
		t.Errorf("of a pass of 200 steps are kept %d, and %d more", len(st.Applied.Outcomes), st.MoreApplied)
	}
}

// TestStateTellsOnce: a failure or hold that lasts for several passes is one event.
func TestStateTellsOnce(t *testing.T) {
	b := testState("prod", "dev")
	for range 5 {
		b.Targets.Report(t.Context(), statustest.With(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Unconverged(plan.PhaseRunning))), step.Failed, statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "prod-web")))
		b.Targets.Report(t.Context(), statustest.With(statustest.Report("dev", statustest.Pool("dev", "web", statustest.Unconverged(plan.PhaseRunning))), step.Held, statustest.HeldStep(step.HeldApproval)))
	}
	if len(b.Activity.Runs()) != 2 || len(b.Activity.Events()) != 2 {
		t.Errorf("%d runs and events %v, want one of each for each target", len(b.Activity.Runs()), kindsOfEvents(b.Activity.Events()))
	}
	b.Targets.Report(t.Context(), statustest.With(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Unconverged(plan.PhaseRunning))), step.Failed, statustest.StepFor(step.Update, step.LaunchTemplate, "default/web", "other")))
	if len(b.Activity.Runs()) != 3 || len(b.Activity.Events()) != 3 {
		t.Errorf("%d runs and events %v after another failure", len(b.Activity.Runs()), kindsOfEvents(b.Activity.Events()))
	}
}

func TestStateKeepsPoolsOfABrokenRender(t *testing.T) {
	b := testState("prod")
	first := statustest.Report("prod", statustest.Pool("prod", "web"))
	b.Targets.Report(t.Context(), first)
	broken := statustest.Report("prod")
	broken.Plan, broken.Err, broken.StartedAt = nil, errors.New("render: broken"), statustest.Noon
	b.Targets.Report(t.Context(), broken)
	st, _ := b.Targets.Find("prod")
	if st.Phase != report.Failing || len(b.Targets.Pools()) != 1 {
		t.Errorf("phase %s, %d pools; want failing with the pools of before", st.Phase, len(b.Targets.Pools()))
	}
	if want := first.StartedAt.Add(first.Duration); !st.PoolsAt.Equal(want) {
		t.Errorf("the pools are as of %s, want %s", st.PoolsAt, want)
	}
	b.Targets.Report(t.Context(), statustest.Report("prod")) // a whole render without pools
	if len(b.Targets.Pools()) != 0 {
		t.Errorf("pools that are gone are still shown: %v", b.Targets.Pools())
	}
}

func TestStateConvergedSince(t *testing.T) {
	b := testState("prod")
	at := func(r *plan.Report, d time.Duration) *plan.Report {
		r.StartedAt, r.Duration = statustest.Noon.Add(d), 0
		return r
	}
	since := func() time.Time { st, _ := b.Targets.Find("prod"); return st.ConvergedSince["default/web"] }
	b.Targets.Report(t.Context(), at(statustest.Report("prod", statustest.Pool("prod", "web")), 0))
	b.Targets.Report(t.Context(), at(statustest.Report("prod", statustest.Pool("prod", "web")), time.Minute))
	if !since().Equal(statustest.Noon) {
		t.Errorf("converged since %s, want %s", since(), statustest.Noon)
	}
	b.Targets.Report(t.Context(), at(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Rolling(1, 1))), 2*time.Minute))
	if !since().IsZero() {
		t.Errorf("converged since %s while rolling", since())
	}
	b.Targets.Report(t.Context(), at(statustest.Report("prod", statustest.Pool("prod", "web")), 3*time.Minute))
	if !since().Equal(statustest.Noon.Add(3 * time.Minute)) {
		t.Errorf("converged since %s, want when the rollout ended", since())
	}
}

func TestStateConfigure(t *testing.T) {
	b := testState("prod", "dev")
	b.Targets.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
	b.Sources.Update(Source{Name: "fleet", URL: "https://bot:hunter2@git.example.com/a/b", Ref: "branch main", Revision: statustest.ShaNew, FetchedAt: statustest.Noon})
	b.Sources.Update(Source{Name: "fleet", URL: "https://bot:hunter2@git.example.com/a/b", Ref: "branch main", Error: "connection refused"})
	b.Configure(b.Sources.All(), []Target{{Name: "prod", Source: "fleet"}, {Name: "edge"}})
	var names []string
	for _, st := range b.Targets.All() {
		names = append(names, st.Name+" "+string(st.Phase))
	}
	if diff := cmp.Diff([]string{"edge waiting", "prod converged"}, names); diff != "" {
		t.Errorf("targets after a reload (-want +got):\n%s", diff)
	}
	want := []Source{{Name: "fleet", URL: "https://git.example.com/a/b", Ref: "branch main", Revision: statustest.ShaNew, FetchedAt: statustest.Noon, ChangedAt: statustest.Noon, Error: "connection refused"}}
	if diff := cmp.Diff(want, b.Sources.All()); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	b.Targets.Remove("prod")
	b.Targets.SetDue("prod", statustest.Noon) // must not bring it back
	if _, ok := b.Targets.Find("prod"); ok {
		t.Error("a removed target is still there")
	}
}

func TestStateIsBounded(t *testing.T) {
	b := testState("prod")
	for i := range 3 * keptEvents {
		r := statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Done, statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", fmt.Sprint(i)))
		b.Targets.Report(t.Context(), r)
	}
	if len(b.Activity.Runs()) != keptRuns || len(b.Activity.Events()) != keptEvents {
		t.Errorf("%d runs and %d events are kept", len(b.Activity.Runs()), len(b.Activity.Events()))
	}
	if got := b.Activity.Runs()[0].Text; !strings.Contains(got, fmt.Sprint(3*keptEvents-1)) {
		t.Errorf("the newest run is %q", got)
	}
}

// The state shares what it can with the report of a pass, which is not changed any more,
// and copies what it redacts: the maker's report stays as it is.
func TestStateLeavesReportsAsTheyAre(t *testing.T) {
	b := New(Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }, Now: func() time.Time { return statustest.Noon }})
	b.Configure(nil, []Target{{Name: "prod"}})
	secret := func() *plan.Report {
		r := statustest.With(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Rolling(10, 3)), statustest.Pool("prod", "db")), step.Done, statustest.RolloutSteps()...)
		web := &r.Pools[0]
		web.FailureMessage, web.Conditions[0].Message, web.Rollout.Message = "hunter2", "hunter2", "hunter2"
		web.TemplateVersions = []plan.VersionNote{{Number: 4, Subject: "hunter2"}}
		r.Diagnostics = diag.List{{Summary: "none"}, {Summary: "hunter2", Detail: "hunter2", Related: []diag.Related{{Message: "hunter2"}}}}
		r.Plan.Diagnostics = r.Diagnostics
		return r
	}
	r := secret()
	b.Targets.Report(t.Context(), r)
	st, _ := b.Targets.Find("prod")
	text, err := json.Marshal([]any{st.Last.Pools, st.Last.Diagnostics, st.Last.Plan.Diagnostics})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "***"); n != 10 || strings.Contains(string(text), "hunter2") {
		t.Errorf("kept as %s", text)
	}
	if diff := cmp.Diff(secret().Pools, r.Pools); diff != "" {
		t.Errorf("the report's pools were changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(secret().Diagnostics, r.Diagnostics); diff != "" {
		t.Errorf("the report's diagnostics were changed (-want +got):\n%s", diff)
	}
	r = statustest.Report("prod", statustest.Pool("prod", "web"))
	b.Targets.Report(t.Context(), r)
	if st, _ := b.Targets.Find("prod"); &st.Last.Pools[0] != &r.Pools[0] {
		t.Error("the pools are kept twice, though nothing of them is redacted")
	}
}

func TestPlainURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://bot:hunter2@git.example.com/a/b.git?token=x#y": "https://git.example.com/a/b.git",
		"git@git.example.com:a/b.git":                           "git.example.com:a/b.git",
		"/srv/git/a@b":                                          "/srv/git/a@b",
		"./fleet":                                               "./fleet",
		"https://bot:hunt%zzer2@git.example.com/a":              "git.example.com/a",
		"file:///srv/git":                                       "file:///srv/git",
	} {
		if got := plainURL(in); got != want {
			t.Errorf("plainURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func BenchmarkTargetsReport(b *testing.B) {
	state := testState("prod")
	p := statustest.Pool("prod", "web")
	for range 20 {
		p.ProviderIDList = append(p.ProviderIDList, "aws:///eu-central-1a/i-0a1b2c3d4e5f60718")
	}
	r := statustest.Report("prod", p, p, p)
	b.ReportAllocs()
	for b.Loop() {
		state.Targets.Report(context.Background(), r)
	}
}

// TestASourcesTextsBeforeAndAfterASecretIsKnown has a registry learn a value late.
func TestASourcesTextsBeforeAndAfterASecretIsKnown(t *testing.T) {
	t.Parallel()
	known := false
	b := New(Options{Instance: "prod", Redact: func(s string) string {
		if known {
			return strings.ReplaceAll(s, "hunter2", "***")
		}
		return s
	}})
	b.Sources.Update(Source{Name: "fleet", Revision: "1", Error: "hunter2 is away"})
	b.Sources.SetSubject("fleet", "0", "of another commit")
	if s := b.Sources.All()[0]; s.Subject != "" {
		t.Errorf("the subject of another commit is shown: %q", s.Subject)
	}
	b.Sources.SetSubject("fleet", "1", "set hunter2")
	known = true
	b.Sources.Update(Source{Name: "fleet", Revision: "1", Error: b.Sources.All()[0].Error}) // keeps the subject
	if s := b.Sources.All()[0]; s.Subject != "set ***" || s.Error != "*** is away" {
		t.Errorf("shown: %q and %q", s.Subject, s.Error)
	}
	b.Sources.Update(Source{Name: "fleet", Revision: "2"})
	if s := b.Sources.All()[0]; s.Subject != "" {
		t.Errorf("a new commit has the subject of the one before: %q", s.Subject)
	}
}

func testState(targets ...string) *State {
	b := New(Options{Instance: "weir", Now: func() time.Time { return statustest.Noon }})
	var list []Target
	for _, name := range targets {
		list = append(list, Target{Name: name, Source: "fleet"})
	}
	b.Configure([]Source{{Name: "fleet", URL: "https://bot:hunter2@git.example.com/a/b", Ref: "branch main"}}, list)
	return b
}
