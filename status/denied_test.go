package status

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
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
				f, dir := newMemoryForge(), t.TempDir()
				p := start(t, dir, f)
				p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
				settle()
				if n := len(f.anyPending()); n != 2 {
					t.Fatalf("%d contexts are pending", n)
				}
				f.failWith(denied)
				last := ""
				for i := range commits {
					last = fmt.Sprintf("%040x", i+1)
					p.Begin(Revision{Source: "fleet", SHA: last, Touched: []string{"prod"}})
					time.Sleep(time.Minute)
				}
				synctest.Wait()
				p.mu.Lock()
				kept, known := len(p.tracks["fleet"]), len(p.queues["fleet"].known)
				p.mu.Unlock()
				if kept > maxSuperseded+2 || known > kept {
					t.Errorf("%d commits and the statuses of %d are held after %d", kept, known, commits)
				}
				if restart {
					p.kill()
				}
				journal, err := os.Stat(filepath.Join(dir, "commit-statuses.json"))
				if err != nil || journal.Size() > 64<<10 {
					t.Errorf("journal: %v, %d bytes", err, journal.Size())
				}
				f.failWith(nil)
				if restart {
					p = start(t, dir, f)
					p.Begin(Revision{Source: "fleet", SHA: last, Touched: []string{"prod"}})
				}
				r := report("prod", pool("prod", "web"))
				r.Revision = last
				p.Report(t.Context(), r)
				time.Sleep(2 * slowDelay)
				synctest.Wait()
				closed := map[string]string{"weir/apply": "error: superseded by 0000000", "weir/apply/prod": "error: superseded by 0000000"}
				wantShown(t, f, shaNew, closed)
				wantShown(t, f, last, map[string]string{
					"weir/apply": "success: prod: nothing to change in AWS", "weir/apply/prod": "success: nothing to change in AWS",
				})
				if pending := f.anyPending(); pending != nil || p.Pending() != 0 {
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
		f := newMemoryForge()
		f.failWith(denied)
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew})
		time.Sleep(2 * time.Hour)
		f.failWith(nil)
		settle()
		if got := f.shows(shaNew); len(got) != 0 {
			t.Fatalf("the wait is shorter than the test expects: %v", got)
		}
		p.Retry()
		settle()
		wantShown(t, f, shaNew, map[string]string{"weir/apply": "success: no target affected"})
		// The next refusal starts anew.
		f.failWith(denied)
		p.Begin(Revision{Source: "fleet", SHA: shaOld})
		settle()
		f.failWith(nil)
		time.Sleep(2 * firstDenied)
		settle()
		wantShown(t, f, shaOld, map[string]string{"weir/apply": "success: no target affected"})
	})
}

// TestStopDoesNotWaitForAToken: shutdown has other things to do.
func TestStopDoesNotWaitForAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryForge()
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
		settle()
		f.failWith(denied)
		p.Report(t.Context(), created())
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
				f := newMemoryForge()
				answers := 0
				f.loseWith(func(string, forge.CommitStatus) error {
					if answers++; answers%2 == 1 {
						return lost
					}
					return nil
				})
				p := start(t, t.TempDir(), f)
				p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
				time.Sleep(time.Minute)
				p.Report(t.Context(), report("prod", pool("prod", "web")))
				time.Sleep(time.Minute)
				synctest.Wait()
				want := []string{
					"4be91a7 weir/apply pending: prod: planning",
					"4be91a7 weir/apply/prod pending: planning",
					"4be91a7 weir/apply success: prod: nothing to change in AWS",
					"4be91a7 weir/apply/prod success: nothing to change in AWS",
				}
				if diff := cmp.Diff(want, f.log()); diff != "" {
					t.Errorf("posted (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestAPendingWithALostAnswerIsClosed: nobody knows whether the forge shows it.
func TestAPendingWithALostAnswerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := newMemoryForge(), t.TempDir()
		f.loseWith(denyAfter(&forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "connection reset"}, f))
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
		settle()
		for i := range 3 * maxSuperseded {
			p.Begin(Revision{Source: "fleet", SHA: fmt.Sprintf("%040x", i+1)})
			time.Sleep(time.Minute)
		}
		f.failWith(nil)
		time.Sleep(2 * slowDelay)
		synctest.Wait()
		if got := f.shows(shaNew)["weir/apply"]; got != "error: superseded by 0000000" {
			t.Errorf("the commit shows %q", got)
		}
	})
}

// denyAfter loses one answer; every later write is refused.
func denyAfter(lost error, f *memoryForge) func(string, forge.CommitStatus) error {
	return func(string, forge.CommitStatus) error {
		f.fail, f.lose = denied, nil // SetStatus holds the lock
		return lost
	}
}

// TestABranchThatIsMovedBackClosesWhatItLeft: the commit's new verdict is about
// other targets than the one that was cut short.
func TestABranchThatIsMovedBackClosesWhatItLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryForge()
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod", "dev"}})
		settle()
		f.failWith(denied)
		p.Begin(Revision{Source: "fleet", SHA: shaOld})
		settle()
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
		p.Report(t.Context(), report("prod", pool("prod", "web")))
		settle()
		f.failWith(nil)
		time.Sleep(slowDelay)
		synctest.Wait()
		wantShown(t, f, shaNew, map[string]string{
			"weir/apply":      "success: prod: nothing to change in AWS",
			"weir/apply/prod": "success: nothing to change in AWS",
			"weir/apply/dev":  "error: superseded by 9c1f0d2",
		})
	})
}

// TestASourceWithoutItsForgeKeepsItsCommits until it has the forge again.
func TestASourceWithoutItsForgeKeepsItsCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := newMemoryForge(), t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
		settle()
		p.kill()
		p = start(t, dir, newMemoryForge(), func(o *CommitsOptions) { o.Forges = map[string]Forge{"other": o.Forges["fleet"]} })
		p.Begin(Revision{Source: "other", SHA: shaOld, Touched: []string{"prod"}})
		settle()
		if err := p.stop(t); err != nil {
			t.Fatal(err)
		}
		start(t, dir, f)
		time.Sleep(2 * recoveryGrace)
		settle()
		if pending := f.anyPending(); pending != nil {
			t.Errorf("left pending: %v", pending)
		}
	})
}

// TestCommitTakesATargetAway: what becomes of its pools is said.
func TestCommitTakesATargetAway(t *testing.T) {
	const kept = "success: the commit takes this target away; what it has in AWS stays, and is reported"
	synctest.Test(t, func(t *testing.T) {
		f, dir := newMemoryForge(), t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: shaOld, Removed: []string{"dev"}})
		settle()
		wantShown(t, f, shaOld, map[string]string{
			"weir/apply": "success: dev: the commit takes this target away; what it has in AWS stays, and is reported", "weir/apply/dev": kept,
		})
		p.kill()
		p = start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}, Removed: []string{"dev", "test"}})
		p.Forget("dev") // whose reports end here
		settle()
		if got := f.shows(shaNew)["weir/apply"]; got != "pending: 2 of 3 targets converged" {
			t.Errorf("before the pass: %q", got)
		}
		p.Report(t.Context(), report("prod", pool("prod", "web")))
		settle()
		wantShown(t, f, shaNew, map[string]string{
			"weir/apply":      "success: 1 target: nothing to change in AWS; 2 targets taken away, what they have in AWS stays",
			"weir/apply/prod": "success: nothing to change in AWS", "weir/apply/dev": kept, "weir/apply/test": kept,
		})
	})
}
