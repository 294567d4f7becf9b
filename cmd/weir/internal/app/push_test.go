package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestPushToFinalStatus pushes a commit that changes one pool in a repository of
// many targets: all groups and templates are listed once, and then what moves alone is
// looked at.
func TestPushToFinalStatus(t *testing.T) {
	t.Parallel()
	const targets = 120 // two pages of groups, one of templates
	w := newWorld(t, manyAWS(targets))
	w.repo.Write(manyPools(targets))
	first := w.repo.Commit("first")
	c := w.many(w.config)
	c.Interval = time.Hour
	a, stop := w.startConfig(c, nil)
	defer stop()
	started := time.Now()
	status := func(sha string) func() string {
		return func() string {
			if got := w.forge.states(sha, "fleet/apply"); !strings.HasSuffix(got, "success") {
				return fmt.Sprintf("%s, %d targets", got, len(a.current.Targets.All()))
			}
			return ""
		}
	}
	eventually(t, "the first status", status(first))
	t.Logf("%d targets made and converged in %s", targets, time.Since(started).Round(time.Millisecond))

	w.repo.Write(map[string]string{"overlays/pool-0007/pool.yaml": pool("pool-0007", "m5.large", 4)})
	w.aws.ResetCalls()
	began := time.Now()
	second := w.repo.Commit("second")
	eventually(t, "the second status", status(second))
	t.Logf("push to final status: %s", time.Since(began).Round(time.Millisecond))
	want := map[string]int{
		"autoscaling:DescribeAutoScalingGroups": 2 + 1, "autoscaling:CreateOrUpdateTags": 1, "autoscaling:UpdateAutoScalingGroup": 1, "ec2:DescribeLaunchTemplates": 1 + 1,
	}
	got := w.aws.CallCounts()
	if time.Since(started) > 25*time.Second { // what was read of networks is used for half a minute
		delete(got, "ec2:DescribeSecurityGroups")
		delete(got, "ec2:DescribeSubnets")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls of a push (-want +got):\n%s", diff)
	}
	if got := w.forge.states(second, "fleet/apply/pool-0008"); got != "" {
		t.Errorf("an untouched target got statuses: %s", got)
	}
}

// manyName is the name of a target and its pool.
func manyName(i int) string { return fmt.Sprintf("pool-%04d", i) }

// manyPools are targets of one pool each.
func manyPools(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files["overlays/"+manyName(i)+"/pool.yaml"] = pool(manyName(i), "m5.large", 3)
	}
	return files
}

// manyAWS takes n pools.
func manyAWS(n int) awsemu.Options {
	o := quickAWS()
	o.Quotas = map[string]int{"auto-scaling-groups": 2 * n}
	return o
}

// many is a configuration with a target for each directory, and a pass each minute
// where nothing moves.
func (w *world) many(of func() *config.Config) *config.Config {
	w.extra = "- {name: '{1}', path: 'overlays/*', region: us-east-1}\n"
	c := of()
	c.Targets, c.Interval = c.Targets[1:], time.Minute
	return c
}
