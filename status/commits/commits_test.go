package commits

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCommitFromPushToSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod", "dev"}})
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{
			"weir/apply":      "pending: 0 of 2 targets converged",
			"weir/apply/prod": "pending: planning",
			"weir/apply/dev":  "pending: planning",
		})
		p.Report(t.Context(), statustest.Created())
		p.Report(t.Context(), statustest.Report("dev", statustest.Pool("dev", "web")))
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{
			"weir/apply":      "pending: 1 of 2 targets converged",
			"weir/apply/prod": "pending: 0 of 1 pool converged; default/web is Provisioning",
			"weir/apply/dev":  "success: nothing to change in AWS",
		})
		// Figures that move with every pass are no news.
		before := len(f.Log())
		for percent := range int32(90) {
			p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web", statustest.Sized(3, 3), statustest.Rolling(percent, 3))))
			statustest.WaitIdle()
		}
		if n := len(f.Log()) - before; n > 1 {
			t.Errorf("%d writes while the rollout moved, want at most 1: %v", n, f.Log()[before:])
		}
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{
			"weir/apply":      "success: 2 targets: 1 pool created",
			"weir/apply/prod": "success: 1 pool created",
			"weir/apply/dev":  "success: nothing to change in AWS",
		})
		if got := f.Now[statustest.ShaNew]["weir/apply/prod"].TargetURL; got != "https://weir.example.com/targets/prod" {
			t.Errorf("target URL is %q", got)
		}
		// Drift is not the commit's fault, and a steady state writes nothing.
		before = len(f.Log())
		for i := range 1000 {
			r := statustest.Report("prod", statustest.Pool("prod", "web"))
			if i%10 == 0 {
				r = statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Failed, statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "prod-web"))
			}
			p.Report(t.Context(), r)
		}
		statustest.WaitIdle()
		if len(f.Log()) != before || f.Reads != 1 {
			t.Errorf("a steady state wrote %v and read %d times", f.Log()[before:], f.Reads)
		}
	})
}

func TestCommitTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew})
		p.Begin(Revision{Source: "elsewhere", SHA: statustest.ShaNew, Touched: []string{"x"}}) // has no forge
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{"weir/apply": "success: no target affected"})
	})
}

func TestCommitThatCannotRender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		p := start(t, t.TempDir(), f, func(o *Options) {
			o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
		})
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Err: errors.New("read tree: object hunter2 is missing")})
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{"weir/apply": "failure: read tree: object *** is missing"})
	})
}

func TestNewerCommitSupersedes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		dir := t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaOld, Touched: []string{"prod", "dev"}})
		statustest.WaitIdle()
		r := statustest.Report("dev", statustest.Pool("dev", "web"))
		r.Revision = statustest.ShaOld
		p.Report(t.Context(), r)
		r = statustest.Created()
		r.Revision = statustest.ShaOld
		p.Report(t.Context(), r)
		statustest.WaitIdle()
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaOld, map[string]string{
			"weir/apply":      "error: superseded by 4be91a7",
			"weir/apply/prod": "error: superseded by 4be91a7",
			"weir/apply/dev":  "success: nothing to change in AWS",
		})
		// A late report of the old commit says nothing about the new one, and
		// the new one answers for what the old one left unfinished.
		p.Report(t.Context(), r)
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web", statustest.Unconverged(plan.PhaseProvisioning))))
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{
			"weir/apply":      "pending: prod: 0 of 1 pool converged; default/web is Provisioning",
			"weir/apply/prod": "pending: 0 of 1 pool converged; default/web is Provisioning",
		})
		// A branch that is moved back gets a new verdict.
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaOld, Touched: []string{"prod"}})
		r = statustest.Report("prod", statustest.Pool("prod", "web"))
		r.Revision = statustest.ShaOld
		p.Report(t.Context(), r)
		statustest.WaitIdle()
		if got := f.Shows(statustest.ShaOld)["weir/apply"]; got != "success: prod: 1 pool created" {
			t.Errorf("moved back: %q", got)
		}
		if pending := f.AnyPending(); pending != nil {
			t.Errorf("left pending: %v", pending)
		}
		if len(p.journal.statuses["fleet"].tracks) != 1 {
			t.Errorf("%d commits are kept, want the current one", len(p.journal.statuses["fleet"].tracks))
		}
	})
}

// What a commit left unfinished on a target is answered for by the next commit that touches
// the target, however many others lie between and whichever process sees them; and by none
// once it has come to its end.
func TestUnfinishedPoolsPassOtherCommits(t *testing.T) {
	for name, c := range map[string]struct {
		restart, ended bool
		want           string
	}{
		"at once":         {false, false, "pending: prod: 0 of 1 pool converged; default/web is Provisioning"},
		"after a restart": {true, false, "pending: prod: 0 of 1 pool converged; default/web is Provisioning"},
		"once it is done": {false, true, "success: prod: nothing to change in AWS"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, dir := statustest.NewForge(), t.TempDir()
				p := start(t, dir, f)
				begin := func(sha string, touched ...string) {
					p.Begin(Revision{Source: "fleet", SHA: sha, Touched: touched})
					statustest.WaitIdle()
				}
				see := func(sha string, pool ...statustest.PoolOption) {
					r := statustest.Report("prod", statustest.Pool("prod", "web", pool...))
					r.Revision = sha
					p.Report(t.Context(), r)
					statustest.WaitIdle()
				}
				begin(statustest.ShaOld, "prod")
				r := statustest.Created()
				r.Revision = statustest.ShaOld
				p.Report(t.Context(), r)
				for _, between := range []string{strings.Repeat("a", 40), strings.Repeat("b", 40)} {
					begin(between, "dev")
					see(between, statustest.Unconverged(plan.PhaseProvisioning))
				}
				if c.ended {
					see(strings.Repeat("b", 40))
				}
				if c.restart {
					p.stop(t)
					p = start(t, dir, f)
				}
				begin(statustest.ShaNew, "prod")
				see(statustest.ShaNew, statustest.Unconverged(plan.PhaseProvisioning)) // without a step
				if got := f.Shows(statustest.ShaNew)["weir/apply"]; got != c.want {
					t.Errorf("it shows %q, want %q", got, c.want)
				}
			})
		})
	}
}

// A pass that began at an older commit, and took long, changes a pool once the newer commit
// has begun: that one answers for it.
func TestAPassOfAnOlderCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		p := start(t, t.TempDir(), f)
		for _, sha := range []string{statustest.ShaOld, statustest.ShaNew} {
			p.Begin(Revision{Source: "fleet", SHA: sha, Touched: []string{"prod"}})
		}
		late := statustest.Created()
		late.Revision = statustest.ShaOld
		p.Report(t.Context(), late)
		statustest.WaitIdle()
		if got := f.Shows(statustest.ShaNew)["weir/apply"]; got != "pending: prod: planning" {
			t.Errorf("after a report of the commit before: %q", got)
		}
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web", statustest.Unconverged(plan.PhaseProvisioning))))
		statustest.WaitIdle()
		if got := f.Shows(statustest.ShaNew)["weir/apply"]; got != "pending: prod: 0 of 1 pool converged; default/web is Provisioning" {
			t.Errorf("while its pool is made: %q", got)
		}
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		statustest.WaitIdle()
		if got := f.Shows(statustest.ShaNew)["weir/apply"]; got != "success: prod: 1 pool created" {
			t.Errorf("once it is there: %q", got)
		}
	})
}

func TestForgetTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod", "dev"}})
		p.Report(t.Context(), statustest.Report("dev", statustest.Pool("dev", "web")))
		statustest.WaitIdle()
		p.Forget("prod")
		p.Forget("dev")
		p.Forget("unknown")
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{
			"weir/apply":      "success: dev: nothing to change in AWS",
			"weir/apply/dev":  "success: nothing to change in AWS",
			"weir/apply/prod": "error: the target is no longer configured",
		})
	})
}

// A failure on a target that is taken out of the configuration is not the commit's any
// more, also where that happens while weir is stopped.
func TestForgetTargetThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := statustest.NewForge(), t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod", "dev", "qa"}})
		p.Report(t.Context(), statustest.Report("dev", statustest.Pool("dev", "web")))
		broken := statustest.Report("prod")
		broken.Err = errors.New("no such file")
		p.Report(t.Context(), broken)
		statustest.WaitIdle()
		p.kill()
		p = start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod", "dev"}})
		left := p.Unfinished()
		slices.Sort(left)
		if !slices.Equal(left, []string{"prod", "qa"}) {
			t.Errorf("unfinished: %v", left)
		}
		for _, name := range left {
			p.Forget(name)
		}
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{
			"weir/apply":      "success: dev: nothing to change in AWS",
			"weir/apply/dev":  "success: nothing to change in AWS",
			"weir/apply/prod": "failure: no such file",
			"weir/apply/qa":   "error: the target is no longer configured",
		})
	})
}

// A commit that was refused and is applied after all, by another process, is followed on
// its targets; it does not say of itself that it is superseded.
func TestARefusedCommitIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := statustest.NewForge(), t.TempDir()
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Err: errors.New("not applied: it is not signed")})
		statustest.WaitIdle()
		p.kill()
		p = start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		statustest.WaitIdle()
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		p.Report(t.Context(), statustest.Created())
		statustest.WaitIdle()
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		statustest.WaitIdle()
		wanted := []string{"failure: not applied", "pending: ", "pending: ", "pending: ", "pending: ", "success: ", "success: "}
		for i, want := range wanted {
			if log := f.Log(); len(log) != len(wanted) || !strings.Contains(log[i], want) {
				t.Fatalf("written: %q", log)
			}
		}
	})
}
