package reconciler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render/intent"
)

// A nodegroup is rolled as a whole, once it may be; what is under way when the change is
// stopped is named with what it will still replace, and nothing else begins.
func TestAGovernedNodegroup(t *testing.T) {
	replaced := func() intent.Pool {
		p := nodegroupPool("ng", 3)
		p.AllowReplace, p.Nodegroup.CapacityType = true, "SPOT"
		return p
	}
	for name, tt := range map[string]struct {
		next  intent.Pool
		write string
	}{"updated": {keyed(nodegroupPool("ng", 3)), "eks:UpdateNodegroupVersion"}, "replaced": {replaced(), "eks:CreateNodegroup"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(target("blue", nodegroupPool("ng", 3)))
			ng := target("blue", tt.next)
			ng.Set.Rollouts = []intent.FleetRollout{{Key: intent.Key{Namespace: "fleet", Name: "waves"}, Waves: []intent.Wave{{Pools: 1, Shares: []int32{25, 100}}}}}
			w.srv.ResetCalls()
			first := permitted(ng, permitOf("ng", "", 0))
			w.passesOver(first, 3)
			p := w.governed(first)
			if p.Hash == "" || !p.Whole || !p.Pending || p.Machines != 3 || p.Moving != nil {
				t.Fatalf("the report: %+v", p)
			}
			r := w.passesOver(permitted(ng, permitOf("ng", p.Hash, 50)), 5)
			if n := w.srv.CallCounts()[tt.write]; n != 0 || r.Plan.Runnable() > 0 || !hasCode(r, "nodegroup-too-large") || hasCode(r, "drift") {
				t.Fatalf("%d writes with a permit for a half: %v", n, r.Diagnostics)
			}
			all := permitted(ng, permitOf("ng", p.Hash, 100))
			w.passesOver(all, 1)
			stop := permitOf("ng", p.Hash, 0)
			stop.Stopped, stop.Wait, stop.Back = true, "was stopped by fleet/waves", p.Earlier
			r = w.must(reconciler.Apply, permitted(ng, stop))[0]
			if q := r.Governed[0]; name == "updated" && (q.Moving == nil || q.Moving.Left != 3 || !strings.Contains(fmt.Sprint(r.Diagnostics), "it will still replace up to 3 machines")) {
				t.Errorf("under way: %+v, %v", q, r.Diagnostics)
			}
			w.passesOver(permitted(ng, stop), 30)
			if n := w.srv.CallCounts(); n[tt.write] != 1 || n["eks:DeleteNodegroup"] != 0 {
				t.Errorf("it wrote %v", n)
			}
			w.settle(all)
			if q := w.governed(all); q.Pending || q.New == 0 || q.Hash != p.Hash {
				t.Errorf("at the end: %+v", q)
			}
			if n := w.srv.CallCounts()[tt.write]; n != 1 {
				t.Errorf("%d writes", n)
			}
			// Labels and sizes are no rollout.
			other := tt.next
			settings := *other.Nodegroup
			settings.Labels, other.Nodegroup = map[string]string{"a": "b"}, &settings
			w.settle(permitted(target("blue", other), permitOf("ng", p.Hash, 0)))
		})
	}
}
