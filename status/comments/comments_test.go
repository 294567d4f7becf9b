package comments

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestPullIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryPulls()
		p := startPulls(t, t.TempDir(), f)
		see := func(sha, status string, leads ...string) {
			t.Helper()
			statustest.WaitIdle()
			statustest.WantShown(t, f.Forge, sha, map[string]string{"weir/plan": status})
			if diff := cmp.Diff(leads, f.leads()); diff != "" {
				t.Errorf("comments (-want +got):\n%s", diff)
			}
		}
		p.Begin("fleet", 12, statustest.ShaNew)
		see(statustest.ShaNew, "pending: planning")
		p.Show(small(report.PullWaiting, "it comes from a fork"))
		see(statustest.ShaNew, "pending: needs a maintainer: it comes from a fork")
		p.Show(small(report.PullUnaffected, ""))
		see(statustest.ShaNew, "success: no target affected")
		if f.took() == "" {
			t.Error("nobody looked for a comment")
		}
		p.Show(small(report.PullPlanned, ""))
		see(statustest.ShaNew, planStatus, planLead)
		f.took()
		written := len(f.Log())
		p.Show(small(report.PullPlanned, ""))
		see(statustest.ShaNew, planStatus, planLead)
		if got := f.took(); got != "" || len(f.Log()) != written {
			t.Errorf("an equal one: %s, %d statuses", got, len(f.Log())-written)
		}
		p.Show(small(report.PullFailing, "prod: pool.yaml:3: error: no"))
		see(statustest.ShaNew, "failure: prod: pool.yaml:3: error: no", "**This cannot be planned:** prod: pool.yaml:3: error: no.")
		p.Show(small(report.PullConflict, "update the branch: pool.yaml"))
		see(statustest.ShaNew, "failure: update the branch: pool.yaml", "**Update the branch:** pool.yaml.")
		p.Show(small(report.PullUnaffected, ""))
		see(statustest.ShaNew, "success: no target affected", "**Nothing to do:** no target is affected.")
		merged := small(report.PullMerged, "")
		merged.MergeSHA = statustest.ShaOld
		p.Show(merged)
		see(statustest.ShaNew, "success: no target affected", "**Merged as 9c1f0d2.**")
		merged.Differs = []string{"prod: another plan"}
		p.Show(merged)
		see(statustest.ShaNew, "success: no target affected", "**Merged as 9c1f0d2:** not everything is applied as reviewed.")
		merged.Differs, merged.Uncompared = nil, []string{"prod: planned with others"}
		p.Show(merged)
		see(statustest.ShaNew, "success: no target affected", "**Merged as 9c1f0d2:** weir could not compare everything with the review.")
		if n := p.Pending(); n != 0 {
			t.Errorf("%d left", n)
		}
		if err := p.stop(t); err != nil {
			t.Error(err)
		}
	})
}

func TestHeadsThatMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := newMemoryPulls(), t.TempDir()
		p := startPulls(t, dir, f)
		p.Begin("fleet", 12, statustest.ShaOld)
		statustest.WaitIdle()
		p.Begin("fleet", 12, statustest.ShaNew)
		statustest.WaitIdle()
		statustest.WantShown(t, f.Forge, statustest.ShaOld, map[string]string{"weir/plan": "error: superseded by 4be91a7"})
		statustest.WantShown(t, f.Forge, statustest.ShaNew, map[string]string{"weir/plan": "pending: planning"})
		p.kill() // as kill -9
		p = startPulls(t, dir, f)
		time.Sleep(commits.RecoveryGrace + time.Minute)
		statustest.WaitIdle()
		statustest.WantShown(t, f.Forge, statustest.ShaNew, map[string]string{"weir/plan": "error: " + commits.Interrupted})

		// A pull request that waits for a person waits until it is closed.
		p.Show(small(report.PullWaiting, "a draft"))
		statustest.WaitIdle()
		if err := p.stop(t); err != nil {
			t.Error(err)
		}
		p = startPulls(t, dir, f)
		time.Sleep(commits.RecoveryGrace + time.Minute)
		statustest.WaitIdle()
		statustest.WantShown(t, f.Forge, statustest.ShaNew, map[string]string{"weir/plan": "pending: needs a maintainer: a draft"})
		p.Show(small(report.PullClosed, ""))
		statustest.WaitIdle()
		statustest.WantShown(t, f.Forge, statustest.ShaNew, map[string]string{"weir/plan": "error: closed"})
		if got := f.leads(); got != nil {
			t.Errorf("comments: %v", got)
		}
	})
}

func TestAVerdictStaysWhileItIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := newMemoryPulls(), t.TempDir()
		p := startPulls(t, dir, f)
		p.Show(small(report.PullPlanned, ""))
		statustest.WaitIdle()
		if err := p.stop(t); err != nil {
			t.Error(err)
		}
		p = startPulls(t, dir, f)
		p.Begin("fleet", 12, statustest.ShaNew)
		statustest.WaitIdle()
		if err := p.stop(t); err != nil {
			t.Error(err)
		}
		p = startPulls(t, dir, f)
		p.Begin("fleet", 12, statustest.ShaNew)
		statustest.WaitIdle()
		p.Show(small(report.PullPlanned, ""))
		statustest.WaitIdle()
		if diff := cmp.Diff([]string{"4be91a7 weir/plan " + planStatus}, f.Log()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{planLead}, f.leads()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestKilledAtEveryCall kills the process at each call, before and after its effect:
// the next one leaves one comment, and nothing pending.
func TestKilledAtEveryCall(t *testing.T) {
	for at := 1; at <= 4; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(at, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, dir := newMemoryPulls(), t.TempDir()
					n, dead := 0, make(chan struct{})
					die := func(string, string) error {
						if n++; n == at {
							close(dead)
						}
						if n >= at {
							return errors.New("connection reset")
						}
						return nil
					}
					if after {
						f.forget = die
					} else {
						f.refuse = die
					}
					p := startPulls(t, dir, f)
					p.Begin("fleet", 12, statustest.ShaNew)
					p.Show(small(report.PullPlanned, ""))
					if at <= 3 {
						<-dead
					} else {
						statustest.WaitIdle()
					}
					p.kill()
					f.Mu.Lock()
					f.refuse, f.forget = nil, nil
					f.Mu.Unlock()
					p = startPulls(t, dir, f)
					p.Begin("fleet", 12, statustest.ShaNew)
					p.Show(small(report.PullPlanned, ""))
					statustest.WaitIdle()
					statustest.WantShown(t, f.Forge, statustest.ShaNew, map[string]string{"weir/plan": planStatus})
					if diff := cmp.Diff([]string{planLead}, f.leads()); diff != "" {
						t.Error(diff)
					}
				})
			})
		}
	}
}

func TestCommentsOfOthersAndOfCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryPulls()
		marker := report.PullMarker("weir", "fleet")
		f.comments = []forge.Comment{
			{ID: 1, Author: "someone", Body: marker + "\nspoofed"}, {ID: 2, Author: "weir", Body: "I quote " + marker}, {ID: 3, Author: "weir", Body: report.PullMarker("weir", "other") + "\nanother source"},
			{ID: 4, Author: "Weir", Body: marker + "\nmine"}, {ID: 5, Author: "weir", Body: marker + "\nmine again"}, {ID: 6, Author: "weir", Body: marker + "\nand again"},
		}
		p := startPulls(t, t.TempDir(), f)
		p.Show(small(report.PullPlanned, ""))
		statustest.WaitIdle()
		f.Mu.Lock()
		var ids []int64
		for _, c := range f.comments {
			ids = append(ids, c.ID)
		}
		if diff := cmp.Diff([]int64{1, 2, 3, 4}, ids); diff != "" || !strings.Contains(f.comments[3].Body, planLead) {
			t.Errorf("comments: %s\n%v", diff, f.comments)
		}
		// A person deletes it: it is made anew, once for each text.
		f.comments = f.comments[:3]
		f.calls = nil
		f.Mu.Unlock()
		p.Show(small(report.PullPlanned, ""))
		statustest.WaitIdle()
		if got := f.took(); got != "" && got != "login list create" {
			t.Errorf("the same text: %s", got)
		}
		p.Show(small(report.PullFailing, "no"))
		statustest.WaitIdle()
		if got := f.leads(); len(got) != 1 || got[0] != "**This cannot be planned:** no." {
			t.Errorf("comments: %v", got)
		}
	})
}

func TestCommentsThatAreRefused(t *testing.T) {
	big := small(report.PullPlanned, "")
	for i := range 300 {
		r := statustest.Report(fmt.Sprintf("target-%d", i))
		r.Plan.Steps = statustest.RolloutSteps()
		r.Plan.Summary.Rollout = 1
		big.Reports = append(big.Reports, r)
	}
	for name, tt := range map[string]struct {
		refuse func(n int, call, body string) error
		wait   time.Duration
		pull   report.Pull
		logged string
		made   bool
	}{
		"for a while": {func(n int, call, _ string) error {
			if n < 4 {
				return refusal(503, forgehttp.FaultBusy, "maintenance")
			}
			return nil
		}, 5 * time.Minute, small(report.PullPlanned, ""), "tried again", true},
		"by a limit": {func(n int, call, _ string) error {
			if n == 1 {
				return &forgehttp.Error{Forge: "memory", Status: 429, Fault: forgehttp.FaultBusy, After: 10 * time.Minute, Message: "slow down"}
			}
			return nil
		}, 11 * time.Minute, small(report.PullPlanned, ""), "slow down", true},
		"the token": {func(n int, call, _ string) error {
			if call == "create" && n < 12 {
				return refusal(403, forgehttp.FaultDenied, "it needs the scope write:issue")
			}
			return nil
		}, 3 * time.Hour, small(report.PullPlanned, ""), "write:issue", true},
		"for good": {func(_ int, call, _ string) error {
			if call == "create" {
				return refusal(403, forgehttp.FaultRefused, "the conversation is locked")
			}
			return nil
		}, time.Hour, small(report.PullPlanned, ""), "given up", false},
		"for their length": {func(_ int, call, body string) error {
			if len(body) > 9000 {
				return refusal(422, forgehttp.FaultRefused, "Body is too long")
			}
			return nil
		}, time.Minute, big, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newMemoryPulls()
				n := 0
				f.refuse = func(call, body string) error { n++; return tt.refuse(n, call, body) }
				var logged strings.Builder
				p := startPulls(t, t.TempDir(), f, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
				p.Show(tt.pull)
				time.Sleep(tt.wait)
				synctest.Wait()
				if got := f.leads(); (len(got) == 1) != tt.made {
					t.Errorf("comments: %v", got)
				}
				if !strings.Contains(logged.String(), tt.logged) || strings.Count(logged.String(), "level=ERROR") > 1 {
					t.Errorf("logged:\n%s", logged.String())
				}
				if n := p.Pending(); n != 0 {
					t.Errorf("%d left", n)
				}
			})
		})
	}
}

func TestNoSecretIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const canary = "hunter2-canary"
		f := newMemoryPulls()
		var logged strings.Builder
		p := startPulls(t, t.TempDir(), f, func(o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			o.Redact = func(s string) string { return strings.ReplaceAll(s, canary, "[redacted]") }
		})
		f.refuse = func(call, _ string) error {
			if call == "edit" {
				return refusal(422, forgehttp.FaultRefused, "echo "+canary)
			}
			return nil
		}
		pull := statustest.Planned()
		pull.Title, pull.Author, pull.Reason, pull.Stale, pull.Approved = canary, canary, canary, canary, canary
		r := pull.Reports[0]
		digest := r.Plan.Digest()
		s := &r.Plan.Steps[0]
		s.Reason, s.HeldReason, s.Held, s.Drift = canary, canary, step.HeldPaused, &step.Drift{Cause: canary}
		s.Changes = append(s.Changes, step.Change{Field: "x", From: canary, To: []any{map[string]any{"k": canary}}})
		s.Do = step.CreateLaunchTemplateVersion{Description: canary}
		r.Plan.Diagnostics[0].Detail, r.Plan.Diagnostics[1].Summary, r.Plan.Diagnostics[1].Related[0].Message = canary, canary, canary
		r.Err = errors.New(canary)
		for _, state := range []report.PullState{report.PullPlanned, report.PullFailing, report.PullWaiting, report.PullConflict, report.PullMerged, report.PullClosed} {
			pull.State, pull.Differs, pull.Uncompared = state, []string{canary}, []string{canary}
			p.Show(pull)
			statustest.WaitIdle()
		}
		text := fmt.Sprint(f.comments, f.Log(), logged.String())
		if strings.Contains(text, canary) {
			t.Errorf("told:\n%s", text)
		}
		if !strings.Contains(text, "[redacted]") {
			t.Error("nothing was redacted")
		}
		if shown := report.Redact(strings.ToUpper).Pull(report.Pull{Reports: []*plan.Report{statustest.Planned().Reports[0]}}); shown.Digests["prod-eu"] != digest || shown.Reports[0].Plan.Digest() != digest {
			t.Errorf("digest %s, want that of the plan as it is: %s", shown.Digests["prod-eu"], digest)
		}
		if report.RollOf(report.Redact(nil).Pull(statustest.Planned()).Reports[0], report.Redact(nil).Pull(statustest.Planned()).Reports[0].Plan.Steps[1]).Size != 1 {
			t.Error("batches are lost")
		}
	})
}
