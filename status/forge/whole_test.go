package forge_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/statustest"
)

const sha = "4be91a7730c2d9f1e8a7b6c5d4e3f2a1908f7e6d"

// start runs what writes statuses, as a daemon does; stop is SIGTERM.
func start(t *testing.T, f commits.Forge) (c *commits.Commits, stop func()) {
	t.Helper()
	c, err := commits.New(commits.Options{
		Instance: "weir", PageURL: "https://weir.example.com/", Forges: map[string]commits.Forge{"fleet": f},
		Store: statustest.StoreIn(t, t.TempDir()), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return c, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

func until(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("it did not happen within a minute")
}

// report is a pass over prod.
func report(faults ...diag.Diagnostic) *plan.Report {
	r := &plan.Report{Target: "prod", Source: "fleet", Account: "111122223333", Region: "eu-central-1", Revision: sha, Diagnostics: faults}
	if len(faults) == 0 {
		r.Plan = &plan.Plan{Target: "prod", Revision: sha, Account: r.Account, Region: r.Region}
		r.Pools = []plan.PoolStatus{{Name: "web", Target: "prod", Cluster: "prod", Phase: plan.PhaseRunning, Converged: true}}
	}
	return r
}

// TestCommitsOverHTTP goes the whole way with the real clients.
func TestCommitsOverHTTP(t *testing.T) {
	for _, kind := range []string{"github", "gitea"} {
		t.Run(kind, func(t *testing.T) {
			server, open := forge.NewStatusServer(t) // the commit is not there yet
			c, stop := start(t, open(kind))
			c.Begin(commits.Revision{Source: "fleet", SHA: sha, Touched: []string{"prod"}})
			until(t, func() bool { n, _ := server.Counts(); return n > 0 })
			server.Push(sha)
			until(t, func() bool { return server.Newest(sha)["weir/apply"].State == forge.Pending })
			c.Report(t.Context(), report(
				diag.Diagnostic{Severity: diag.Error, Code: "unknown-field", Summary: "awsLaunchTemplate.instanceTyp: unknown field", Position: diag.Position{File: "pool.yaml", Line: 12, Column: 5}},
				diag.Diagnostic{Severity: diag.Error, Summary: strings.Repeat("ä", 300)},
			))
			until(t, func() bool { return c.Pending() == 0 })
			want := forge.CommitStatus{
				Context: "weir/apply/prod", State: forge.Failure, TargetURL: "https://weir.example.com/targets/prod",
				Description: "2 faults: awsLaunchTemplate.instanceTyp: unknown field (pool.yaml:12:5)",
			}
			if diff := cmp.Diff(want, server.Newest(sha)["weir/apply/prod"]); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			c.Report(t.Context(), report())
			until(t, func() bool { return c.Pending() == 0 })
			if got := server.Newest(sha)["weir/apply"]; got.State != forge.Success {
				t.Errorf("aggregate is %+v, want success once a later pass converges", got)
			}
			stop()
			// A lost journal: what the commit has is read, and only what differs is written.
			for _, want := range []int{1, 0} {
				_, before := server.Counts()
				c, stop = start(t, open(kind))
				c.Begin(commits.Revision{Source: "fleet", SHA: sha})
				until(t, func() bool { return c.Pending() == 0 })
				stop()
				if _, after := server.Counts(); after-before != want {
					t.Errorf("%d writes, want %d", after-before, want)
				}
			}
		})
	}
}

// TestCommitsOnGitLab lets a whole process write: each wish ends as it should.
func TestCommitsOnGitLab(t *testing.T) {
	server, g := forge.NewGitLabServer(t, "c1", "c2")
	c, stop := start(t, g)
	c.Begin(commits.Revision{Source: "fleet", SHA: "c1", Touched: []string{"prod"}})
	until(t, func() bool { return c.Pending() == 0 })
	c.Begin(commits.Revision{Source: "fleet", SHA: "c2"})
	until(t, func() bool { return c.Pending() == 0 })
	stop()
	got := map[string]string{}
	for _, j := range server.Jobs() {
		got[fmt.Sprint(j["sha"], " ", j["name"])] = fmt.Sprint(j["status"])
	}
	for name, state := range got {
		if want := map[bool]string{true: "canceled", false: "success"}[strings.HasPrefix(name, "c1")]; state != want {
			t.Errorf("%s is %s, want %s", name, state, want)
		}
	}
	if len(got) != 3 {
		t.Errorf("statuses: %v", got)
	}
}
