package commits

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/statustest"
)

func denied(string, forge.CommitStatus) error {
	return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultDenied, Status: 401, Message: "the token is not accepted"}
}

// TestATokenThatExpiresLosesNothing: what stood pending when the token expired
// is closed once there is a better one, in this process or in a later one,
// however many commits came in between.
func TestATokenThatExpiresLosesNothing(t *testing.T) {
	const commits = 200
	for name, restart := range map[string]bool{"in this process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, dir := statustest.NewForge(), t.TempDir()
				p := start(t, dir, f)
				p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
				statustest.WaitIdle()
				if n := len(f.AnyPending()); n != 2 {
					t.Fatalf("%d contexts are pending", n)
				}
				f.FailWith(denied)
				last := ""
				for i := range commits {
					last = fmt.Sprintf("%040x", i+1)
					p.Begin(Revision{Source: "fleet", SHA: last, Touched: []string{"prod"}})
					time.Sleep(time.Minute)
				}
				synctest.Wait()
				kept, known := len(p.journal.statuses["fleet"].tracks), len(p.posters["fleet"].known)
				if kept > maxSuperseded+2 || known > kept {
					t.Errorf("%d commits and the statuses of %d are held after %d", kept, known, commits)
				}
				if restart {
					p.kill()
				}
				size := 0
				for _, value := range journalOf(t, statustest.StoreIn(t, dir)) {
					size += len(value)
				}
				if size > 64<<10 {
					t.Errorf("the journal has %d bytes", size)
				}
				f.FailWith(nil)
				if restart {
					p = start(t, dir, f)
					p.Begin(Revision{Source: "fleet", SHA: last, Touched: []string{"prod"}})
				}
				r := statustest.Report("prod", statustest.Pool("prod", "web"))
				r.Revision = last
				p.Report(t.Context(), r)
				time.Sleep(2 * forgeDelays.Slow)
				synctest.Wait()
				closed := map[string]string{"weir/apply": "error: superseded by 0000000", "weir/apply/prod": "error: superseded by 0000000"}
				statustest.WantShown(t, f, statustest.ShaNew, closed)
				statustest.WantShown(t, f, last, map[string]string{
					"weir/apply": "success: prod: nothing to change in AWS", "weir/apply/prod": "success: nothing to change in AWS",
				})
				if pending := f.AnyPending(); pending != nil || p.Pending() != 0 {
					t.Errorf("left pending: %v, %d", pending, p.Pending())
				}
			})
		})
	}
}

// TestANewTokenIsTriedAtOnce: the wait is for the unknown time at which somebody
// mends the token; a reload says that they did.
func TestANewTokenIsTriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		f.FailWith(denied)
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew})
		time.Sleep(2 * time.Hour)
		f.FailWith(nil)
		statustest.WaitIdle()
		if got := f.Shows(statustest.ShaNew); len(got) != 0 {
			t.Fatalf("the wait is shorter than the test expects: %v", got)
		}
		p.Retry()
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{"weir/apply": "success: no target affected"})
		// The next refusal starts anew.
		f.FailWith(denied)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaOld})
		statustest.WaitIdle()
		f.FailWith(nil)
		time.Sleep(2 * 2 * time.Second)
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaOld, map[string]string{"weir/apply": "success: no target affected"})
	})
}

// TestStopDoesNotWaitForAToken: shutdown has other things to do.
func TestStopDoesNotWaitForAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		statustest.WaitIdle()
		f.FailWith(denied)
		p.Report(t.Context(), statustest.Created())
		time.Sleep(time.Hour)
		begun := time.Now()
		if err := p.stop(t); err == nil {
			t.Error("nobody is told that statuses are left")
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("stopping took %s", took)
		}
	})
}

// TestALostAnswerIsNotWrittenTwice: the write took effect and its answer did not
// come, as with a connection that breaks or a proxy that gives up.
func TestALostAnswerIsNotWrittenTwice(t *testing.T) {
	for name, lost := range map[string]error{
		"no answer":       &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "connection reset"},
		"a bad gateway":   &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Status: 502, Message: "bad gateway"},
		"a server fault":  &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultMissing, Status: 500, Message: "deadlock"},
		"an unread body":  &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Status: 201, Message: "unexpected EOF"},
		"no forge's word": errors.New("context deadline exceeded"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := statustest.NewForge()
				answers := 0
				f.LoseWith(func(string, forge.CommitStatus) error {
					if answers++; answers%2 == 1 {
						return lost
					}
					return nil
				})
				p := start(t, t.TempDir(), f)
				p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
				time.Sleep(time.Minute)
				p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
				time.Sleep(time.Minute)
				synctest.Wait()
				want := []string{
					"4be91a7 weir/apply pending: prod: planning",
					"4be91a7 weir/apply/prod pending: planning",
					"4be91a7 weir/apply success: prod: nothing to change in AWS",
					"4be91a7 weir/apply/prod success: nothing to change in AWS",
				}
				if diff := cmp.Diff(want, f.Log()); diff != "" {
					t.Errorf("posted (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestAPendingWithALostAnswerIsClosed: nobody knows whether the forge shows it.
func TestAPendingWithALostAnswerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := statustest.NewForge(), t.TempDir()
		f.LoseWith(denyAfter(&forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "connection reset"}, f))
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		statustest.WaitIdle()
		for i := range 3 * maxSuperseded {
			p.Begin(Revision{Source: "fleet", SHA: fmt.Sprintf("%040x", i+1)})
			time.Sleep(time.Minute)
		}
		f.FailWith(nil)
		time.Sleep(2 * forgeDelays.Slow)
		synctest.Wait()
		if got := f.Shows(statustest.ShaNew)["weir/apply"]; got != "error: superseded by 0000000" {
			t.Errorf("the commit shows %q", got)
		}
	})
}

// denyAfter loses one answer; every later write is refused.
func denyAfter(lost error, f *statustest.Forge) func(string, forge.CommitStatus) error {
	return func(string, forge.CommitStatus) error {
		f.Fail, f.Lose = denied, nil // SetStatus holds the lock
		return lost
	}
}

// TestABranchThatIsMovedBackClosesWhatItLeft: the commit's new verdict is about
// other targets than the one that was cut short.
func TestABranchThatIsMovedBackClosesWhatItLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod", "dev"}})
		statustest.WaitIdle()
		f.FailWith(denied)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaOld})
		statustest.WaitIdle()
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		statustest.WaitIdle()
		f.FailWith(nil)
		time.Sleep(forgeDelays.Slow)
		synctest.Wait()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{
			"weir/apply":      "success: prod: nothing to change in AWS",
			"weir/apply/prod": "success: nothing to change in AWS",
			"weir/apply/dev":  "error: superseded by 9c1f0d2",
		})
	})
}

// TestASourceWithoutItsForgeKeepsItsCommits until it has the forge again.
func TestASourceWithoutItsForgeKeepsItsCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := statustest.NewForge(), t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		statustest.WaitIdle()
		p.kill()
		p = start(t, dir, statustest.NewForge(), func(o *Options) { o.Forges = map[string]Forge{"other": o.Forges["fleet"]} })
		p.Begin(Revision{Source: "other", SHA: statustest.ShaOld, Touched: []string{"prod"}})
		statustest.WaitIdle()
		if err := p.stop(t); err != nil {
			t.Fatal(err)
		}
		start(t, dir, f)
		time.Sleep(2 * RecoveryGrace)
		statustest.WaitIdle()
		if pending := f.AnyPending(); pending != nil {
			t.Errorf("left pending: %v", pending)
		}
	})
}

// TestCommitTakesATargetAway: what becomes of its pools is said.
func TestCommitTakesATargetAway(t *testing.T) {
	const kept = "success: the commit removes this target; its resources in AWS stay, and weir reports them"
	synctest.Test(t, func(t *testing.T) {
		f, dir := statustest.NewForge(), t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaOld, Removed: []string{"dev"}})
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaOld, map[string]string{
			"weir/apply": "success: dev: the commit removes this target; its resources in AWS stay, and weir reports them", "weir/apply/dev": kept,
		})
		p.kill()
		p = start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}, Removed: []string{"dev", "test"}})
		p.Forget("dev") // whose reports end here
		statustest.WaitIdle()
		if got := f.Shows(statustest.ShaNew)["weir/apply"]; got != "pending: 2 of 3 targets converged" {
			t.Errorf("before the pass: %q", got)
		}
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{
			"weir/apply":      "success: 1 target: nothing to change in AWS; 2 targets removed, their resources in AWS stay",
			"weir/apply/prod": "success: nothing to change in AWS", "weir/apply/dev": kept, "weir/apply/test": kept,
		})
	})
}
