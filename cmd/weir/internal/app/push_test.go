package app

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPushToFinalStatus pushes a commit that changes one pool in a repository of
// many targets, and logs the time until its final status is on the forge.
func TestPushToFinalStatus(t *testing.T) {
	targets := 50
	if !testing.Short() && testing.Verbose() {
		targets = 1000
	}
	o := quickAWS()
	o.Quotas = map[string]int{"auto-scaling-groups": 2 * targets}
	w := newWorld(t, o)
	files := map[string]string{}
	for i := range targets {
		name := fmt.Sprintf("pool-%04d", i)
		files["overlays/"+name+"/pool.yaml"] = pool(name, "m5.large", 3)
	}
	w.repo.Write(files)
	first := w.repo.Commit("first")
	w.extra = "- {name: '{1}', path: 'overlays/*', region: us-east-1}\n"
	c := w.config()
	c.Targets, c.Interval = c.Targets[1:], c.Interval*100
	a, stop := w.startConfig(c, nil)
	defer stop()
	began := time.Now()
	status := func(sha string) func() string {
		return func() string {
			if got := w.forge.states(sha, "fleet/apply"); !strings.HasSuffix(got, "success") {
				return fmt.Sprintf("%s, %d targets", got, len(a.board.Targets()))
			}
			return ""
		}
	}
	eventually(t, "the first status", status(first))
	t.Logf("%d targets made and converged in %s", targets, time.Since(began).Round(time.Millisecond))

	w.repo.Write(map[string]string{"overlays/pool-0007/pool.yaml": pool("pool-0007", "m5.large", 4)})
	began = time.Now()
	second := w.repo.Commit("second")
	eventually(t, "the second status", status(second))
	t.Logf("push to final status: %s", time.Since(began).Round(time.Millisecond))
	if got := w.forge.states(second, "fleet/apply/pool-0008"); got != "" {
		t.Errorf("an untouched target got statuses: %s", got)
	}
}
