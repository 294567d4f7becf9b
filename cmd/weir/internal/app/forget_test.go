package app

import (
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
)

// Accounts, regions and targets that come and go with the configuration are forgotten.
func TestADaemonForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	files := overlay(map[string]string{"web": pool("web", "m5.large", 1)})
	for i := range 4 {
		files[fmt.Sprintf("overlays/t%d/pool.yaml", i)] = pool(fmt.Sprint("t", i), "m5.large", 1)
	}
	w.repo.Write(files)
	first := w.repo.Commit("first")
	next := w.config()
	a, stop := w.startWith(func() (*config.Config, error) { return next, nil })
	defer stop()
	converged(t, a, first, 1)
	count := func() map[string]int {
		a.reporter.log.mu.Lock()
		defer a.reporter.log.mu.Unlock()
		a.passes.mu.Lock()
		defer a.passes.mu.Unlock()
		return map[string]int{
			"loops": len(a.passes.loops.of), "running": len(a.passes.loops.run), "reports": len(a.passes.memory.before.Reports), "standings": len(a.passes.memory.before.Standings),
			"said": len(a.reporter.log.said), "batches": len(a.passes.memory.batches), "conditions": len(a.passes.memory.conditions),
		}
	}
	become := func(want int) {
		t.Helper()
		eventually(t, "the daemon's memory", func() string {
			if got := count(); !alike(got, want) {
				return fmt.Sprint(got)
			}
			return ""
		})
	}
	become(1)
	for range 2 {
		w.extra = ""
		for i, region := range []string{"us-east-1", "us-east-2", "us-west-1", "us-west-2"} {
			w.extra += fmt.Sprintf("- {name: t%d, path: overlays/t%d, region: %s}\n", i, i, region)
		}
		next = w.config()
		a.reloadDue.send()
		become(5)
		w.extra = ""
		next = w.config()
		a.reloadDue.send()
		become(1)
	}
	// Each was opened each time it was wanted, and at no other time.
	if n := w.aws.CallCounts()["sts:GetCallerIdentity"]; n != 1+2*4 {
		t.Errorf("accounts were opened %d times", n)
	}
}

// alike reports whether all counts are one number.
func alike(counts map[string]int, n int) bool {
	for _, have := range counts {
		if have != n {
			return false
		}
	}
	return true
}
