package comments

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

// A process that is killed while a head is planned leaves its "pending" to the next one,
// for which the head has moved on.
func TestAKilledProcessLeavesNoHeadPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := newMemoryPulls(), t.TempDir()
		p := startPulls(t, dir, f)
		p.Begin("fleet", 12, statustest.ShaNew)
		statustest.WaitIdle()
		statustest.WantShown(t, f.Forge, statustest.ShaNew, map[string]string{"weir/plan": "pending: planning"})
		p.kill()
		p = startPulls(t, dir, f)
		moved := small(report.PullPlanned, "")
		moved.HeadSHA = statustest.ShaOld
		p.Show(moved)
		statustest.WaitIdle()
		statustest.WantShown(t, f.Forge, statustest.ShaNew, map[string]string{"weir/plan": "error: superseded by 9c1f0d2"})
	})
}

// A verdict that was being made again when the process was killed stays: nothing else was
// shown meanwhile.
func TestAKilledProcessLeavesAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := newMemoryPulls(), t.TempDir()
		p := startPulls(t, dir, f)
		p.Show(small(report.PullPlanned, ""))
		statustest.WaitIdle()
		p.Begin("fleet", 12, statustest.ShaNew)
		statustest.WaitIdle()
		p.kill()
		p = startPulls(t, dir, f)
		moved := small(report.PullPlanned, "")
		moved.HeadSHA = statustest.ShaOld
		p.Show(moved)
		statustest.WaitIdle()
		if diff := cmp.Diff([]string{"4be91a7 weir/plan " + planStatus, "9c1f0d2 weir/plan " + planStatus}, f.Log()); diff != "" {
			t.Error(diff)
		}
	})
}

// An edit whose answer is lost may have taken effect, and what was there before may be
// wanted again.
func TestACommentThatGoesBackAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryPulls()
		p := startPulls(t, t.TempDir(), f)
		p.Show(small(report.PullPlanned, ""))
		statustest.WaitIdle()
		f.Mu.Lock()
		f.forget = func(call, _ string) error {
			f.forget = nil
			return refusal(502, forgehttp.FaultBusy, "bad gateway")
		}
		f.Mu.Unlock()
		p.Show(small(report.PullFailing, "prod: no"))
		synctest.Wait()
		p.Show(small(report.PullPlanned, ""))
		time.Sleep(time.Minute)
		statustest.WaitIdle()
		if diff := cmp.Diff([]string{planLead}, f.leads()); diff != "" {
			t.Error(diff)
		}
	})
}

// A pull request that is opened again while its last comment is still being written is
// not forgotten with that one.
func TestAPullThatIsOpenedAgainMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryPulls()
		p := startPulls(t, t.TempDir(), f)
		p.Show(small(report.PullPlanned, ""))
		statustest.WaitIdle()
		f.Mu.Lock()
		f.refuse = func(string, string) error {
			f.refuse = nil
			time.Sleep(10 * time.Second)
			return nil
		}
		f.Mu.Unlock()
		p.Show(small(report.PullClosed, ""))
		synctest.Wait() // it is being written
		for n := range int64(mostEnded) {
			other := small(report.PullClosed, "")
			other.Number = 100 + n
			p.Show(other)
		}
		p.Show(small(report.PullPlanned, ""))
		time.Sleep(time.Minute)
		statustest.WaitIdle()
		if diff := cmp.Diff([]string{planLead}, f.leads()); diff != "" {
			t.Error(diff)
		}
	})
}

// The last word of whoever spoke for the source before has no plan. It takes none away from a comment that says the end already, and replaces one
// that does not.
func TestALastWordLeavesThePlan(t *testing.T) {
	merged := small(report.PullPlanned, "")
	merged.State, merged.MergeSHA, merged.Compared = report.PullMerged, statustest.ShaNew, true
	for name, tc := range map[string]struct {
		before report.Pull
		edited bool
	}{"it says the end": {merged, false}, "it does not": {small(report.PullPlanned, ""), true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, dir := newMemoryPulls(), t.TempDir()
				p := startPulls(t, dir, f)
				p.Show(small(report.PullPlanned, ""))
				statustest.WaitIdle()
				p.Show(tc.before)
				statustest.WaitIdle()
				if p.Owes("fleet", 12) {
					t.Error("it is owed though the forge has it")
				}
				p.kill()
				before := f.comments[0].Body
				p = startPulls(t, dir, f)
				p.Show(merged.Last())
				if !p.Owes("fleet", 12) {
					t.Error("it is not owed though the forge was not asked")
				}
				statustest.WaitIdle()
				if edited := f.comments[0].Body != before; len(f.comments) != 1 || edited != tc.edited || !strings.Contains(f.comments[0].Body, "**Merged as") || p.Owes("fleet", 12) {
					t.Errorf("edited: %v, %v", edited, f.comments)
				}
			})
		})
	}
}
