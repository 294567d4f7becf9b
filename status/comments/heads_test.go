package comments

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

// Anybody may open a pull request of a commit that is the head of another one.
func TestOneHeadOfSeveralPulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryPulls()
		p := startPulls(t, t.TempDir(), f)
		see := func(sha, status string) {
			t.Helper()
			statustest.WaitIdle()
			statustest.WantShown(t, f.Forge, sha, map[string]string{"weir/plan": status})
		}
		show := func(number int64, state report.PullState, reason string, change ...func(*report.Pull)) {
			pull := small(state, reason)
			pull.Number = number
			for _, c := range change {
				c(&pull)
			}
			p.Show(pull)
		}
		fork, moved := func(p *report.Pull) { p.Fork = true }, func(p *report.Pull) { p.HeadSHA = statustest.ShaOld }
		const waits = "pending: needs a maintainer: a draft"
		show(13, report.PullWaiting, "a draft", fork)
		see(statustest.ShaNew, waits)
		show(12, report.PullPlanned, "")
		see(statustest.ShaNew, planStatus)
		before := len(f.Log())
		show(13, report.PullWaiting, "another draft", fork)
		show(13, report.PullFailing, "prod: no", fork)
		p.Begin("fleet", 14, statustest.ShaNew)
		show(13, report.PullClosed, "", fork)
		show(14, report.PullClosed, "")
		see(statustest.ShaNew, planStatus)
		if got := f.Log()[before:]; len(got) != 0 {
			t.Errorf("written: %v", got)
		}
		// Of two that count, the gravest; and back, once that one is elsewhere.
		show(13, report.PullFailing, "prod: no")
		see(statustest.ShaNew, "failure: prod: no")
		show(13, report.PullWaiting, "a draft", moved)
		see(statustest.ShaNew, planStatus)
		see(statustest.ShaOld, waits)
		// And what waits, once nothing else is left, though the commit was forgotten.
		show(13, report.PullWaiting, "a draft")
		see(statustest.ShaOld, "error: superseded by 4be91a7")
		show(15, report.PullPlanned, "", moved)
		see(statustest.ShaNew, planStatus)
		show(12, report.PullMerged, "")
		see(statustest.ShaNew, waits)
		show(13, report.PullClosed, "")
		see(statustest.ShaNew, "error: closed")
		if err := p.stop(t); err != nil {
			t.Error(err)
		}
	})
}

// Pull requests that ended are forgotten, also where the forge takes no comments.
func TestEndedPullsAreForgotten(t *testing.T) {
	for name, tc := range map[string]struct {
		fault forgehttp.Fault
		most  int
	}{"a token that may not comment": {forgehttp.FaultDenied, mostEnded}, "locked conversations": {forgehttp.FaultRefused, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newMemoryPulls()
				f.refuse = func(call, _ string) error {
					if call == "create" || call == "edit" {
						return refusal(403, tc.fault, "no")
					}
					return nil
				}
				f.comments = []forge.Comment{{ID: 1, Author: "weir", Body: report.PullMarker("weir", "fleet") + "\nan old one"}}
				p := startPulls(t, t.TempDir(), f)
				for n := range int64(2 * mostEnded) {
					pull := small(report.PullPlanned, "")
					pull.Number = n + 1
					p.Show(pull)
					pull.State, pull.MergeSHA = report.PullMerged, statustest.ShaOld
					p.Show(pull)
					time.Sleep(time.Minute)
				}
				statustest.WaitIdle()
				d := p.writers["fleet"]
				d.mu.Lock()
				kept, newest := len(d.pulls), d.pulls[2*mostEnded]
				d.mu.Unlock()
				if kept != tc.most || (newest == nil) != (tc.most == 0) {
					t.Errorf("%d are kept, want %d; the newest: %+v", kept, tc.most, newest)
				}
				p.kill()
			})
		})
	}
}
