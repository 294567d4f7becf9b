package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// A commit whose many new pools AWS takes slowly does not hold up the next commit.
func TestANewerCommitOvertakesManyPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	const n = 60
	pools := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("many-%02d", i)
		pools[name] = pool(name, "m5.large", 1)
	}
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)

	w.aws.ResetCalls()
	w.aws.Faults().Add(awsemu.Fault{Kind: awsemu.Slow, Operation: "CreateAutoScalingGroup", Delay: 3 * time.Second, Times: -1})
	made := func() (many int, urgent bool) {
		for _, c := range w.aws.Calls() {
			if c.Operation == "CreateAutoScalingGroup" {
				if strings.Contains(c.Body, "urgent") {
					return many, true
				}
				many++
			}
		}
		return many, false
	}
	pools["web"] = pool("web", "m5.large", 3)
	w.repo.Write(overlay(pools))
	w.repo.Commit("many")
	eventually(t, "the first of the many", func() string {
		if many, _ := made(); many == 0 {
			return "none"
		}
		return ""
	})
	pools["urgent"] = pool("urgent", "m5.large", 1)
	w.repo.Write(overlay(pools))
	last := w.repo.Commit("urgent")
	eventually(t, "the urgent one", func() string {
		if many, urgent := made(); !urgent {
			return fmt.Sprintf("%d others", many)
		}
		return ""
	})
	if before, _ := made(); before >= n-10 {
		t.Errorf("%d of the %d pools of the earlier commit were made before that of the newer one", before, n)
	}
	w.aws.Faults().Clear()
	converged(t, a, last, n+2)
}
