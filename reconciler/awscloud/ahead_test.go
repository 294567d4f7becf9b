package awscloud_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// What is read ahead is taken once, by who asks for the same, and costs no call more. Where
// it fails, or is for another owner, it does no harm.
func TestReadAhead(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx   context.Context
		owner string
		late  bool
		calls int // of each kind, until all was observed
	}{
		"taken":         {t.Context(), query().Owner, false, 1},
		"another owner": {t.Context(), "somebody", false, 2},
		"failed":        {gone, query().Owner, false, 2},
		"too late":      {t.Context(), query().Owner, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t)
			res := e.do(step.CreateLaunchTemplate{Name: "pool", Description: "d", Data: e.data(), Tags: tags("pool")})
			e.do(step.CreateGroup{Group: observed.Group{Name: "pool", MaxSize: 3, SubnetIDs: e.subnets(), Template: res.Template, Tags: groupTags("pool")}})
			if tt.late {
				e.observe(query())
			}
			var s observed.State
			both := func(n int) map[string]int {
				return map[string]int{"autoscaling:DescribeAutoScalingGroups": n, "ec2:DescribeLaunchTemplates": n}
			}
			calls := e.counted(func() {
				e.cloud.Ahead(tt.ctx, tt.owner)
				s = e.observe(query())
			})
			if d := cmp.Diff(both(tt.calls), calls); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
			if len(s.Groups) != 1 || len(s.Templates) != 1 {
				t.Errorf("observed %d groups and %d templates", len(s.Groups), len(s.Templates))
			}
			if d := cmp.Diff(both(1), e.counted(func() { e.observe(query()) })); d != "" {
				t.Errorf("calls of the next pass (-want +got):\n%s", d)
			}
		})
	}
}
