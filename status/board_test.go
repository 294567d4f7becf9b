package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

func testBoard(targets ...string) *Board {
	b := NewBoard(BoardOptions{Instance: "weir", Now: func() time.Time { return noon }})
	var list []Target
	for _, name := range targets {
		list = append(list, Target{Name: name, Source: "fleet"})
	}
	b.Configure([]Source{{Name: "fleet", URL: "https://bot:hunter2@git.example.com/a/b", Ref: "branch main"}}, list)
	return b
}

func kinds(events []Event) (out []string) {
	for i := range events {
		out = append(out, events[len(events)-1-i].Kind)
	}
	return out
}

func TestBoardFollowsATarget(t *testing.T) {
	b := testBoard("prod")
	ctx := t.Context()
	b.Report(ctx, created())
	b.Report(ctx, report("prod", pool("prod", "web")))
	b.Report(ctx, report("prod", pool("prod", "web"))) // steady: no history
	drift := rolloutSteps()
	drift[0].Drift = &step.Drift{}
	b.Report(ctx, with(report("prod", pool("prod", "web", unconverged(plan.PhaseRunning))), step.Done, drift...))
	b.Report(ctx, report("prod", pool("prod", "web", rolling(20, 3))))
	b.Report(ctx, report("prod", pool("prod", "web", rolling(60, 1))))
	b.Report(ctx, report("prod", pool("prod", "web", failed("rollout-failed", "unhealthy"))))
	want := []string{
		"template-created", "group-created", "pool-converged",
		"drift-found", "version-created", "refresh-started", "refresh-progress", "refresh-failed",
	}
	if diff := cmp.Diff(want, kinds(b.Events())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	var phases []TargetPhase
	for _, r := range b.Runs() {
		phases = append(phases, r.Phase)
	}
	if diff := cmp.Diff([]TargetPhase{TargetMoving, TargetConverged, TargetMoving}, phases); diff != "" {
		t.Errorf("runs, newest first (-want +got):\n%s", diff)
	}
	st, ok := b.Target("prod")
	if !ok || len(st.Applied.Outcomes) != 2 || st.Applied.Outcomes[1].Step.Verb != step.Rollout {
		t.Errorf("the last applied pass is %+v", st.Applied)
	}
}

// TestBoardTellsOnce: what fails or is held at each pass is told once.
func TestBoardTellsOnce(t *testing.T) {
	b := testBoard("prod", "dev")
	for range 5 {
		b.Report(t.Context(), with(report("prod", pool("prod", "web", unconverged(plan.PhaseRunning))), step.Failed, stepFor(step.Update, step.AutoScalingGroup, "default/web", "prod-web")))
		b.Report(t.Context(), with(report("dev", pool("dev", "web", unconverged(plan.PhaseRunning))), step.Held, heldStep(step.HeldApproval)))
	}
	if len(b.Runs()) != 2 || len(b.Events()) != 2 {
		t.Errorf("%d runs and events %v, want one of each for each target", len(b.Runs()), kinds(b.Events()))
	}
	b.Report(t.Context(), with(report("prod", pool("prod", "web", unconverged(plan.PhaseRunning))), step.Failed, stepFor(step.Update, step.LaunchTemplate, "default/web", "other")))
	if len(b.Runs()) != 3 || len(b.Events()) != 3 {
		t.Errorf("%d runs and events %v after another failure", len(b.Runs()), kinds(b.Events()))
	}
}

func TestBoardKeepsPoolsOfABrokenRender(t *testing.T) {
	b := testBoard("prod")
	first := report("prod", pool("prod", "web"))
	b.Report(t.Context(), first)
	broken := report("prod")
	broken.Plan, broken.Err, broken.StartedAt = nil, errors.New("render: broken"), noon
	b.Report(t.Context(), broken)
	st, _ := b.Target("prod")
	if st.Phase != TargetFailing || len(b.Pools()) != 1 {
		t.Errorf("phase %s, %d pools; want failing with the pools of before", st.Phase, len(b.Pools()))
	}
	if want := first.StartedAt.Add(first.Duration); !st.PoolsAt.Equal(want) {
		t.Errorf("the pools are as of %s, want %s", st.PoolsAt, want)
	}
	b.Report(t.Context(), report("prod")) // a whole render without pools
	if len(b.Pools()) != 0 {
		t.Errorf("pools that are gone are still shown: %v", b.Pools())
	}
}

func TestBoardConvergedSince(t *testing.T) {
	b := testBoard("prod")
	at := func(r *plan.Report, d time.Duration) *plan.Report {
		r.StartedAt, r.Duration = noon.Add(d), 0
		return r
	}
	since := func() time.Time { st, _ := b.Target("prod"); return st.ConvergedSince["default/web"] }
	b.Report(t.Context(), at(report("prod", pool("prod", "web")), 0))
	b.Report(t.Context(), at(report("prod", pool("prod", "web")), time.Minute))
	if !since().Equal(noon) {
		t.Errorf("converged since %s, want %s", since(), noon)
	}
	b.Report(t.Context(), at(report("prod", pool("prod", "web", rolling(1, 1))), 2*time.Minute))
	if !since().IsZero() {
		t.Errorf("converged since %s while rolling", since())
	}
	b.Report(t.Context(), at(report("prod", pool("prod", "web")), 3*time.Minute))
	if !since().Equal(noon.Add(3 * time.Minute)) {
		t.Errorf("converged since %s, want when the rollout ended", since())
	}
}

func TestBoardConfigure(t *testing.T) {
	b := testBoard("prod", "dev")
	b.Report(t.Context(), report("prod", pool("prod", "web")))
	b.Source(Source{Name: "fleet", URL: "https://bot:hunter2@git.example.com/a/b", Ref: "branch main", Revision: shaNew, FetchedAt: noon})
	b.Source(Source{Name: "fleet", URL: "https://bot:hunter2@git.example.com/a/b", Ref: "branch main", Error: "connection refused"})
	b.Configure(b.Sources(), []Target{{Name: "prod", Source: "fleet"}, {Name: "edge"}})
	var names []string
	for _, st := range b.Targets() {
		names = append(names, st.Name+" "+string(st.Phase))
	}
	if diff := cmp.Diff([]string{"edge waiting", "prod converged"}, names); diff != "" {
		t.Errorf("targets after a reload (-want +got):\n%s", diff)
	}
	want := []Source{{Name: "fleet", URL: "https://git.example.com/a/b", Ref: "branch main", Revision: shaNew, FetchedAt: noon, ChangedAt: noon, Error: "connection refused"}}
	if diff := cmp.Diff(want, b.Sources()); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	b.Remove("prod")
	b.Due("prod", noon) // must not bring it back
	if _, ok := b.Target("prod"); ok {
		t.Error("a removed target is still there")
	}
}

func TestBoardIsBounded(t *testing.T) {
	b := testBoard("prod")
	for i := range 3 * keptEvents {
		r := with(report("prod", pool("prod", "web")), step.Done, stepFor(step.Update, step.AutoScalingGroup, "default/web", fmt.Sprint(i)))
		b.Report(t.Context(), r)
	}
	if len(b.Runs()) != keptRuns || len(b.Events()) != keptEvents {
		t.Errorf("%d runs and %d events are kept", len(b.Runs()), len(b.Events()))
	}
	if got := b.Runs()[0].Text; !strings.Contains(got, fmt.Sprint(3*keptEvents-1)) {
		t.Errorf("the newest run is %q", got)
	}
}

// TestBoardCopies proves that the board neither changes a report nor notices
// when its maker changes it later.
func TestBoardCopies(t *testing.T) {
	b := testBoard("prod")
	r := with(report("prod", pool("prod", "web", rolling(10, 3))), step.Done, rolloutSteps()...)
	b.Report(t.Context(), r)
	before := fmt.Sprint(b.Pools())
	r.Pools[0].Rollout.Percentage = 99
	r.Pools[0].ProviderIDList[0] = "changed"
	r.Plan.Steps[0].Changes[0].Origin.Line = 1
	if after := fmt.Sprint(b.Pools()); before != after {
		t.Errorf("the board changed with the report:\n%s\n%s", before, after)
	}
	if st, _ := b.Target("prod"); st.Last.Plan.Steps[0].Changes[0].Origin.Line != 9 {
		t.Error("an origin changed with the report")
	}
}

func TestBoardRedacts(t *testing.T) {
	b := NewBoard(BoardOptions{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }, Now: func() time.Time { return noon }})
	r := with(report("prod", pool("prod", "web", failed("x", "hunter2"), rolling(1, 1))), step.Failed, step.Step{
		Verb: step.Update, Resource: step.LaunchTemplate, Pool: "default/web", Name: "web", Reason: "hunter2",
		Changes: []step.Change{{Field: "a", From: "hunter2", To: []any{map[string]any{"k": "hunter2"}, []string{"hunter2"}, map[string]string{"k": "hunter2"}}}},
	})
	r.Subject, r.Err = "hunter2", fmt.Errorf("hunter2: %w", &observed.Error{Kind: observed.Denied, Message: "hunter2"})
	r.Pools[0].Rollout.Message, r.Pools[0].Conditions[0].Message = "hunter2", "hunter2"
	r.Outcomes[0].Err.Message = "hunter2"
	d := unknownField()
	d.Summary, d.Detail, d.Related[0].Message = "hunter2", "hunter2", "hunter2"
	r.Diagnostics = append(r.Diagnostics, d)
	b.Report(t.Context(), r)
	b.Source(Source{Name: "s", Error: "hunter2", Subject: "hunter2"})
	b.Event(Event{Kind: "k", Text: "hunter2"})
	for _, path := range []string{"/", "/targets/prod", "/api/v1/pools", "/api/v1/targets"} {
		if body := get(t, b, path).Body.String(); strings.Contains(body, "hunter2") || !strings.Contains(body, "***") {
			t.Errorf("%s shows a secret, or nothing at all", path)
		}
	}
	st, _ := b.Target("prod")
	var call *observed.Error
	if !errors.As(st.Last.Err, &call) || call.Kind != observed.Denied {
		t.Error("the kind of the failed call is lost")
	}
}

func TestBoardConcurrently(t *testing.T) {
	b := testBoard("prod", "dev")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				b.Report(context.Background(), with(report("prod", pool("prod", "web")), step.Done, rolloutSteps()...))
				b.Due("prod", noon)
				b.Beat(time.Minute)
			}
		})
		wg.Go(func() {
			for range 5 {
				for _, path := range []string{"/", "/targets/prod", "/api/v1/targets", "/readyz"} {
					get(t, b, path)
				}
			}
		})
	}
	wg.Wait()
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

func BenchmarkBoardReport(b *testing.B) {
	board := testBoard("prod")
	p := pool("prod", "web")
	for range 20 {
		p.ProviderIDList = append(p.ProviderIDList, "aws:///eu-central-1a/i-0a1b2c3d4e5f60718")
	}
	r := report("prod", p, p, p)
	b.ReportAllocs()
	for b.Loop() {
		board.Report(context.Background(), r)
	}
}

// TestASourcesTextsBeforeAndAfterASecretIsKnown has a registry learn a value late.
func TestASourcesTextsBeforeAndAfterASecretIsKnown(t *testing.T) {
	t.Parallel()
	known := false
	b := NewBoard(BoardOptions{Instance: "prod", Redact: func(s string) string {
		if known {
			return strings.ReplaceAll(s, "hunter2", "***")
		}
		return s
	}})
	b.Source(Source{Name: "fleet", Revision: "1", Error: "hunter2 is away"})
	b.Subject("fleet", "0", "of another commit")
	if s := b.Sources()[0]; s.Subject != "" {
		t.Errorf("the subject of another commit is shown: %q", s.Subject)
	}
	b.Subject("fleet", "1", "set hunter2")
	known = true
	b.Source(Source{Name: "fleet", Revision: "1", Error: b.Sources()[0].Error}) // keeps the subject
	if s := b.Sources()[0]; s.Subject != "set ***" || s.Error != "*** is away" {
		t.Errorf("shown: %q and %q", s.Subject, s.Error)
	}
	b.Source(Source{Name: "fleet", Revision: "2"})
	if s := b.Sources()[0]; s.Subject != "" {
		t.Errorf("a new commit has the subject of the one before: %q", s.Subject)
	}
}
