package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func created() *plan.Report {
	return with(report("prod", pool("prod", "web", unconverged(plan.PhaseProvisioning), sized(0, 3))), step.Done,
		stepFor(step.Create, step.LaunchTemplate, "default/web", "prod-web"), stepFor(step.Create, step.AutoScalingGroup, "default/web", "prod-web"))
}

func TestCommitFromPushToSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryForge()
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod", "dev"}})
		settle()
		wantShown(t, f, shaNew, map[string]string{
			"weir/apply":      "pending: 0 of 2 targets converged",
			"weir/apply/prod": "pending: planning",
			"weir/apply/dev":  "pending: planning",
		})
		p.Report(t.Context(), created())
		p.Report(t.Context(), report("dev", pool("dev", "web")))
		settle()
		wantShown(t, f, shaNew, map[string]string{
			"weir/apply":      "pending: 1 of 2 targets converged",
			"weir/apply/prod": "pending: 0 of 1 pool converged; default/web is Provisioning",
			"weir/apply/dev":  "success: nothing to change in AWS",
		})
		// Figures that move with every pass are no news.
		before := len(f.log())
		for percent := range int32(90) {
			p.Report(t.Context(), report("prod", pool("prod", "web", sized(3, 3), rolling(percent, 3))))
			settle()
		}
		if n := len(f.log()) - before; n > 1 {
			t.Errorf("%d writes while the rollout moved, want at most 1: %v", n, f.log()[before:])
		}
		p.Report(t.Context(), report("prod", pool("prod", "web")))
		settle()
		wantShown(t, f, shaNew, map[string]string{
			"weir/apply":      "success: 2 targets: 1 pool created",
			"weir/apply/prod": "success: 1 pool created",
			"weir/apply/dev":  "success: nothing to change in AWS",
		})
		if got := f.now[shaNew]["weir/apply/prod"].TargetURL; got != "https://weir.example.com/targets/prod" {
			t.Errorf("target URL is %q", got)
		}
		// Drift is not the commit's fault, and a steady state writes nothing.
		before = len(f.log())
		for i := range 1000 {
			r := report("prod", pool("prod", "web"))
			if i%10 == 0 {
				r = with(report("prod", pool("prod", "web")), step.Failed, stepFor(step.Update, step.AutoScalingGroup, "default/web", "prod-web"))
			}
			p.Report(t.Context(), r)
		}
		settle()
		if len(f.log()) != before || f.reads != 1 {
			t.Errorf("a steady state wrote %v and read %d times", f.log()[before:], f.reads)
		}
	})
}

func TestCommitTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryForge()
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew})
		p.Begin(Revision{Source: "elsewhere", SHA: shaNew, Touched: []string{"x"}}) // has no forge
		settle()
		wantShown(t, f, shaNew, map[string]string{"weir/apply": "success: no target affected"})
	})
}

func TestCommitThatCannotRender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryForge()
		p := start(t, t.TempDir(), f, func(o *CommitsOptions) {
			o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
		})
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Err: errors.New("read tree: object hunter2 is missing")})
		settle()
		wantShown(t, f, shaNew, map[string]string{"weir/apply": "failure: read tree: object *** is missing"})
	})
}

func TestNewerCommitSupersedes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryForge()
		dir := t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: shaOld, Touched: []string{"prod", "dev"}})
		settle()
		r := report("dev", pool("dev", "web"))
		r.Revision = shaOld
		p.Report(t.Context(), r)
		r = created()
		r.Revision = shaOld
		p.Report(t.Context(), r)
		settle()
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
		settle()
		wantShown(t, f, shaOld, map[string]string{
			"weir/apply":      "error: superseded by 4be91a7",
			"weir/apply/prod": "error: superseded by 4be91a7",
			"weir/apply/dev":  "success: nothing to change in AWS",
		})
		// A late report of the old commit says nothing about the new one, and
		// the new one answers for what the old one left unfinished.
		p.Report(t.Context(), r)
		p.Report(t.Context(), report("prod", pool("prod", "web", unconverged(plan.PhaseProvisioning))))
		settle()
		wantShown(t, f, shaNew, map[string]string{
			"weir/apply":      "pending: prod: 0 of 1 pool converged; default/web is Provisioning",
			"weir/apply/prod": "pending: 0 of 1 pool converged; default/web is Provisioning",
		})
		// A branch that is moved back gets a new verdict.
		p.Begin(Revision{Source: "fleet", SHA: shaOld, Touched: []string{"prod"}})
		r = report("prod", pool("prod", "web"))
		r.Revision = shaOld
		p.Report(t.Context(), r)
		settle()
		if got := f.shows(shaOld)["weir/apply"]; got != "success: prod: 1 pool created" {
			t.Errorf("moved back: %q", got)
		}
		if pending := f.anyPending(); pending != nil {
			t.Errorf("left pending: %v", pending)
		}
		if len(p.tracks["fleet"]) != 1 {
			t.Errorf("%d commits are kept, want the current one", len(p.tracks["fleet"]))
		}
	})
}

func TestCrashLeavesNothingPending(t *testing.T) {
	for name, c := range map[string]struct {
		next  string // the revision that the next process comes to; "" for none
		shown map[string]string
	}{
		"the same commit continues": {shaNew, map[string]string{
			"weir/apply": "success: prod: 1 pool created", "weir/apply/prod": "success: 1 pool created",
		}},
		"a newer commit supersedes": {shaOld, map[string]string{
			"weir/apply": "error: superseded by 9c1f0d2", "weir/apply/prod": "error: superseded by 9c1f0d2",
		}},
		"the source is not read again": {"", map[string]string{
			"weir/apply": "error: " + interrupted, "weir/apply/prod": "error: " + interrupted,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, dir := newMemoryForge(), t.TempDir()
				p := start(t, dir, f)
				p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
				p.Report(t.Context(), created())
				settle()
				p.kill()
				if len(f.anyPending()) != 2 {
					t.Fatalf("pending before the crash: %v", f.anyPending())
				}
				p = start(t, dir, f)
				settle()
				if c.next != "" {
					p.Begin(Revision{Source: "fleet", SHA: c.next, Touched: []string{"prod"}})
					r := report("prod", pool("prod", "web"))
					r.Revision = c.next
					p.Report(t.Context(), r)
				}
				time.Sleep(2 * recoveryGrace)
				settle()
				wantShown(t, f, shaNew, c.shown)
				if pending := f.anyPending(); pending != nil {
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
					f, dir := newMemoryForge(), t.TempDir()
					dead, count := false, 0
					f.failWith(func(sha string, s forge.CommitStatus) error {
						if dead {
							return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "gone"}
						}
						if count++; count-1 == n {
							dead = true
							if effect {
								if f.now[sha] == nil {
									f.now[sha] = map[string]forge.CommitStatus{}
								}
								f.now[sha][s.Context] = s
							}
							return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "answer lost"}
						}
						return nil
					})
					p := start(t, dir, f)
					p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
					settle()
					p.Report(t.Context(), created())
					settle()
					p.kill()
					f.failWith(nil)
					p = start(t, dir, f)
					p.Begin(Revision{Source: "fleet", SHA: shaOld})
					settle()
					if pending := f.anyPending(); pending != nil {
						t.Errorf("left pending: %v", pending)
					}
				})
			})
		}
	}
}

func TestStopLeavesNothingPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := newMemoryForge(), t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
		p.Report(t.Context(), created())
		settle()
		if err := p.stop(t); err != nil {
			t.Fatal(err)
		}
		wantShown(t, f, shaNew, map[string]string{"weir/apply": "error: " + interrupted, "weir/apply/prod": "error: " + interrupted})

		p = start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod", "dev"}})
		settle()
		if got := f.shows(shaNew)["weir/apply"]; !strings.HasPrefix(got, "pending: prod: 0 of 1 pool converged") {
			t.Errorf("after the restart: %q", got)
		}
		p.Report(t.Context(), report("prod", pool("prod", "web")))
		settle()
		if err := p.stop(t); err != nil {
			t.Fatal(err)
		}
		writes := len(f.log())
		p = start(t, dir, f) // finished: nothing to say
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod", "dev"}})
		settle()
		if err := p.stop(t); err != nil {
			t.Fatal(err)
		}
		wantShown(t, f, shaNew, map[string]string{"weir/apply": "success: prod: 1 pool created", "weir/apply/prod": "success: 1 pool created"})
		if len(f.log()) != writes {
			t.Errorf("a restart after the end wrote %v", f.log()[writes:])
		}
	})
}

func TestStopWithForgeDownKeepsTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := newMemoryForge(), t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod"}})
		settle()
		f.failWith(func(string, forge.CommitStatus) error {
			return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "down"}
		})
		if err := p.stop(t); err == nil || !strings.Contains(err.Error(), "2 left") {
			t.Errorf("error is %v, want the number of statuses that are left", err)
		}
		f.failWith(nil)
		start(t, dir, f)
		settle()
		if pending := f.anyPending(); pending != nil {
			t.Errorf("left pending: %v", pending)
		}
	})
}

func TestForgetTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryForge()
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: shaNew, Touched: []string{"prod", "dev"}})
		p.Report(t.Context(), report("dev", pool("dev", "web")))
		settle()
		p.Forget("prod")
		p.Forget("dev")
		p.Forget("unknown")
		settle()
		wantShown(t, f, shaNew, map[string]string{
			"weir/apply":      "success: dev: nothing to change in AWS",
			"weir/apply/dev":  "success: nothing to change in AWS",
			"weir/apply/prod": "error: the target is no longer configured",
		})
	})
}

func until(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("it did not happen within 10 s")
}
