package terminal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
)

func TestOfManyUnsettledPoolsTheFirstAreNamed(t *testing.T) {
	for n, ends := range map[int]string{0: "", 1: "default/pool-00 Pending 0/0", 10: "default/pool-09 Pending 0/0", 11: "default/pool-09 Pending 0/0, and 1 more", 500: "default/pool-09 Pending 0/0, and 490 more"} {
		r := &plan.Report{}
		for i := range n {
			r.Pools = append(r.Pools, plan.PoolStatus{Namespace: "default", Name: fmt.Sprintf("pool-%02d", i), Phase: "Pending"})
		}
		r.Pools = append(r.Pools, plan.PoolStatus{Namespace: "default", Name: "whole", Converged: true})
		if got := unsettled(r); !strings.HasSuffix(got, ends) || strings.Contains(got, "whole") || n == 0 && got != "" {
			t.Errorf("%d pools: %s", n, got)
		}
	}
}
