package commits

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestCrashLeavesNothingPending(t *testing.T) {
	for name, c := range map[string]struct {
		next  string // the revision that the next process comes to; "" for none
		shown map[string]string
	}{
		"the same commit continues": {statustest.ShaNew, map[string]string{
			"weir/apply": "success: prod: 1 pool created", "weir/apply/prod": "success: 1 pool created",
		}},
		"a newer commit supersedes": {statustest.ShaOld, map[string]string{
			"weir/apply": "error: superseded by 9c1f0d2", "weir/apply/prod": "error: superseded by 9c1f0d2",
		}},
		"the source is not read again": {"", map[string]string{
			"weir/apply": "error: " + Interrupted, "weir/apply/prod": "error: " + Interrupted,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, dir := statustest.NewForge(), t.TempDir()
				p := start(t, dir, f)
				p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
				p.Report(t.Context(), statustest.Created())
				statustest.WaitIdle()
				p.kill()
				if len(f.AnyPending()) != 2 {
					t.Fatalf("pending before the crash: %v", f.AnyPending())
				}
				p = start(t, dir, f)
				statustest.WaitIdle()
				if c.next != "" {
					p.Begin(Revision{Source: "fleet", SHA: c.next, Touched: []string{"prod"}})
					r := statustest.Report("prod", statustest.Pool("prod", "web"))
					r.Revision = c.next
					p.Report(t.Context(), r)
				}
				time.Sleep(2 * RecoveryGrace)
				statustest.WaitIdle()
				statustest.WantShown(t, f, statustest.ShaNew, c.shown)
				if pending := f.AnyPending(); pending != nil {
					t.Errorf("left pending: %v", pending)
				}
			})
		})
	}
}

// TestCrashAtEachWrite kills the process at each write, before and after its
// effect; the next process must leave no pending behind.
func TestCrashAtEachWrite(t *testing.T) {
	for n := range 5 {
		for _, effect := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, effect %v", n, effect), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, dir := statustest.NewForge(), t.TempDir()
					dead, count := false, 0
					f.FailWith(func(sha string, s forge.CommitStatus) error {
						if dead {
							return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "gone"}
						}
						if count++; count-1 == n {
							dead = true
							if effect {
								if f.Now[sha] == nil {
									f.Now[sha] = map[string]forge.CommitStatus{}
								}
								f.Now[sha][s.Context] = s
							}
							return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "answer lost"}
						}
						return nil
					})
					p := start(t, dir, f)
					p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
					statustest.WaitIdle()
					p.Report(t.Context(), statustest.Created())
					statustest.WaitIdle()
					p.kill()
					f.FailWith(nil)
					p = start(t, dir, f)
					p.Begin(Revision{Source: "fleet", SHA: statustest.ShaOld})
					statustest.WaitIdle()
					if pending := f.AnyPending(); pending != nil {
						t.Errorf("left pending: %v", pending)
					}
				})
			})
		}
	}
}

func TestStopLeavesNothingPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := statustest.NewForge(), t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		p.Report(t.Context(), statustest.Created())
		statustest.WaitIdle()
		if err := p.stop(t); err != nil {
			t.Fatal(err)
		}
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{"weir/apply": "error: " + Interrupted, "weir/apply/prod": "error: " + Interrupted})

		p = start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod", "dev"}})
		statustest.WaitIdle()
		if got := f.Shows(statustest.ShaNew)["weir/apply"]; !strings.HasPrefix(got, "pending: prod: 0 of 1 pool converged") {
			t.Errorf("after the restart: %q", got)
		}
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		statustest.WaitIdle()
		if err := p.stop(t); err != nil {
			t.Fatal(err)
		}
		writes := len(f.Log())
		p = start(t, dir, f) // finished: nothing to say
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod", "dev"}})
		statustest.WaitIdle()
		if err := p.stop(t); err != nil {
			t.Fatal(err)
		}
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{"weir/apply": "success: prod: 1 pool created", "weir/apply/prod": "success: 1 pool created"})
		if len(f.Log()) != writes {
			t.Errorf("a restart after the end wrote %v", f.Log()[writes:])
		}
	})
}

func TestStopWithForgeDownKeepsTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := statustest.NewForge(), t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		statustest.WaitIdle()
		f.FailWith(func(string, forge.CommitStatus) error {
			return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "down"}
		})
		if err := p.stop(t); err == nil || !strings.Contains(err.Error(), "2 left") {
			t.Errorf("error is %v, want the number of statuses that are left", err)
		}
		f.FailWith(nil)
		start(t, dir, f)
		statustest.WaitIdle()
		if pending := f.AnyPending(); pending != nil {
			t.Errorf("left pending: %v", pending)
		}
	})
}
