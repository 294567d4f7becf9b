package page

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// The figure of instances counts ready ones. So does its note about the part that an earlier pass saw.
func TestStaleInstancesAreReadyOnes(t *testing.T) {
	c := countFleet([]poolItem{
		{pool: &plan.PoolStatus{DesiredReplicas: 4, ReadyReplicas: 4, Converged: true}},
		{pool: &plan.PoolStatus{DesiredReplicas: 5, ReadyReplicas: 2}, stale: true},
	}, nil, nil)
	got := c.figures()[2]
	if want := (figure{"Instances", "6 / 9", "ready, 2 of them as of an earlier pass"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
