package page

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/comments"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestBoardRedacts(t *testing.T) {
	b := current.New(current.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }, Now: func() time.Time { return statustest.Noon }})
	r := statustest.With(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Failed("x", "hunter2"), statustest.Rolling(1, 1))), step.Failed, step.Step{
		Verb: step.Update, Resource: step.LaunchTemplate, Pool: "default/web", Name: "web", Reason: "hunter2",
		Changes: []step.Change{{Field: "a", From: "hunter2", To: []any{map[string]any{"k": "hunter2"}, []string{"hunter2"}, map[string]string{"k": "hunter2"}}}},
	})
	r.Subject, r.Err = "hunter2", fmt.Errorf("hunter2: %w", &observed.Error{Kind: observed.Denied, Message: "hunter2"})
	r.Pools[0].Rollout.Message, r.Pools[0].Conditions[0].Message = "hunter2", "hunter2"
	r.Outcomes[0].Err.Message = "hunter2"
	d := statustest.UnknownField()
	d.Summary, d.Detail, d.Related[0].Message = "hunter2", "hunter2", "hunter2"
	r.Diagnostics = append(r.Diagnostics, d)
	b.Targets.Report(t.Context(), r)
	b.Sources.Update(current.Source{Name: "s", Error: "hunter2", Subject: "hunter2"})
	b.Activity.Add(events.Event{Kind: "k", Text: "hunter2"})
	for _, path := range []string{"/", "/targets/prod", "/api/v1/pools", "/api/v1/targets"} {
		if body := get(t, b, path).Body.String(); strings.Contains(body, "hunter2") || !strings.Contains(body, "***") {
			t.Errorf("%s shows a secret, or nothing at all", path)
		}
	}
	st, _ := b.Targets.Find("prod")
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
				b.Targets.Report(context.Background(), statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Done, statustest.RolloutSteps()...))
				b.Targets.SetDue("prod", statustest.Noon)
				b.Heartbeat.Beat(time.Minute)
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

// TestPeopleSeeWholeARNs: in the comment and on the page alike, as these are approved.
func TestPeopleSeeWholeARNs(t *testing.T) {
	p := statustest.Planned()
	role := "arn:aws:iam::123456789012:instance-profile/" + strings.Repeat("team-one/", 60)
	p.Reports[0].Plan.Steps[0].Changes = []step.Change{{Field: "awsLaunchTemplate.iamInstanceProfile", From: role + "reader", To: role + "admin"}}
	comment := comments.Text(p, comments.TextOptions{Instance: "production", Forge: forge.ProfileOf(forge.GitHub)})
	if !strings.Contains(comment, role+"reader") || !strings.Contains(comment, role+"admin") {
		t.Error("the comment cuts it")
	}
	b := testBoard()
	b.Targets.Report(t.Context(), p.Reports[0])
	page := get(t, b, "/targets/"+p.Reports[0].Target+"/plan").Body.String()
	if !strings.Contains(page, role+"reader") || !strings.Contains(page, role+"admin") {
		t.Errorf("the page cuts it:\n%s", page)
	}
}

// Pools that were seen before the process began have pages, though its first pass cannot
// tell how they are.
func TestPagesOfPoolsSeenBefore(t *testing.T) {
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	start := func() *current.State {
		return current.New(current.Options{Archive: history.New(db, history.Options{})})
	}
	b := start()
	b.Targets.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web", statustest.Sized(2, 3))))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Activity.Run(ended); err != nil {
		t.Fatal(err)
	}
	b = start()
	blind := statustest.Report("prod")
	blind.Plan, blind.Err = nil, errors.New("not valid YAML")
	b.Targets.Report(t.Context(), blind)
	for _, path := range []string{"/", "/pools", "/targets/prod", "/targets/prod/pools/default/web", "/api/v1/pools", "/api/v1/targets"} {
		if rec := get(t, b, path); rec.Code != 200 {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
}
