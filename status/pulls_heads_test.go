package status

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// Anybody may open a pull request of a commit that is the head of another one.
func TestOneHeadOfSeveralPulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryPulls()
		p := startPulls(t, t.TempDir(), f)
		see := func(sha, status string) {
			t.Helper()
			settle()
			wantShown(t, f.memoryForge, sha, map[string]string{"weir/plan": status})
		}
		show := func(number int64, state PullState, reason string, change ...func(*Pull)) {
			pull := small(state, reason)
			pull.Number = number
			for _, c := range change {
				c(&pull)
			}
			p.Show(pull)
		}
		fork, moved := func(p *Pull) { p.Fork = true }, func(p *Pull) { p.HeadSHA = shaOld }
		const waits = "pending: needs a maintainer: a draft"
		show(13, PullWaiting, "a draft", fork)
		see(shaNew, waits)
		show(12, PullPlanned, "")
		see(shaNew, planStatus)
		before := len(f.log())
		show(13, PullWaiting, "another draft", fork)
		show(13, PullFailing, "prod: no", fork)
		p.Begin("fleet", 14, shaNew)
		show(13, PullClosed, "", fork)
		show(14, PullClosed, "")
		see(shaNew, planStatus)
		if got := f.log()[before:]; len(got) != 0 {
			t.Errorf("written: %v", got)
		}
		// Of two that count, the gravest; and back, once that one is elsewhere.
		show(13, PullFailing, "prod: no")
		see(shaNew, "failure: prod: no")
		show(13, PullWaiting, "a draft", moved)
		see(shaNew, planStatus)
		see(shaOld, waits)
		// And what waits, once nothing else is left, though the commit was forgotten.
		show(13, PullWaiting, "a draft")
		see(shaOld, "error: superseded by 4be91a7")
		show(15, PullPlanned, "", moved)
		see(shaNew, planStatus)
		show(12, PullMerged, "")
		see(shaNew, waits)
		show(13, PullClosed, "")
		see(shaNew, "error: closed")
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
				f.comments = []forge.Comment{{ID: 1, Author: "weir", Body: PullMarker("weir", "fleet") + "\nan old one"}}
				p := startPulls(t, t.TempDir(), f)
				for n := range int64(2 * mostEnded) {
					pull := small(PullPlanned, "")
					pull.Number = n + 1
					p.Show(pull)
					pull.State, pull.MergeSHA = PullMerged, shaOld
					p.Show(pull)
					time.Sleep(time.Minute)
				}
				settle()
				d := p.desks["fleet"]
				d.mu.Lock()
				kept, newest := len(d.told), d.told[2*mostEnded]
				d.mu.Unlock()
				if kept != tc.most || (newest == nil) != (tc.most == 0) {
					t.Errorf("%d are kept, want %d; the newest: %+v", kept, tc.most, newest)
				}
				p.kill()
			})
		})
	}
}
