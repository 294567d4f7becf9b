package reconciler_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render/intent"
)

// pages is how many pages a list of n has, an empty list being one.
func pages(n, size int) int { return max(1, (n+size-1)/size) }

// silent makes one pass at rest and returns its calls by operation; a write fails
// the test.
func (w *world) silent(targets ...reconciler.Desired) map[string]int {
	w.t.Helper()
	w.srv.ResetCalls()
	if r := w.must(reconciler.Apply, targets...); !converged(r) {
		w.t.Fatalf("not converged: %v", r[0].Diagnostics)
	}
	if wrote := w.wrote(); len(wrote) > 0 {
		w.t.Errorf("writes at rest: %v", wrote)
	}
	return w.srv.CallCounts()
}

// A pass at rest reads a page for each 100 groups and each 200 templates, at least
// one of both, and nothing for a pool.
func TestReadsOfAPassAtRest(t *testing.T) {
	t.Parallel()
	sizes := []int{0, 1, 100, 101, 500}
	if os.Getenv("WEIR_SOAK") != "" {
		sizes = append(sizes, 10000)
	} else if testing.Short() {
		sizes = sizes[:4]
	}
	w := newWorld(t)
	for _, n := range sizes {
		blue := fleet(n)
		w.settle(blue)
		want := map[string]int{"autoscaling:DescribeAutoScalingGroups": pages(n, 100), "ec2:DescribeLaunchTemplates": pages(n, 200)}
		if d := cmp.Diff(want, w.silent(blue)); d != "" {
			t.Errorf("%d groups (-want +got):\n%s", n, d)
		}
	}
}

// Nodegroups add a page for each 100 of a cluster, and a description of each that
// is due; the groups behind them count as groups.
func TestReadsOfAPassAtRestWithNodegroups(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, map[string]int{"nodegroups-per-cluster": 200})
	for _, n := range []struct{ groups, nodegroups int }{{0, 1}, {1, 1}, {40, 30}, {40, 101}} {
		blue := fleet(n.groups)
		for i := range n.nodegroups {
			blue.Set.Pools = append(blue.Set.Pools, nodegroupPool(fmt.Sprintf("ng%03d", i), 1))
		}
		blue.Set.Sort()
		w.scope.Round = 0
		w.settle(blue)
		all := n.groups + n.nodegroups
		want := map[string]int{
			"autoscaling:DescribeAutoScalingGroups": pages(all, 100), "ec2:DescribeLaunchTemplates": pages(all, 200),
			"eks:ListNodegroups": pages(n.nodegroups, 100), "eks:DescribeNodegroup": n.nodegroups,
		}
		if d := cmp.Diff(want, w.silent(blue)); d != "" {
			t.Errorf("%+v (-want +got):\n%s", n, d)
		}
		// In a round each nodegroup is described once, however many passes there are.
		for _, passes := range []int{5, 60} {
			w.scope.Round = 5 * time.Minute
			total := map[string]int{}
			for range passes {
				w.clock.Advance(w.scope.Round / time.Duration(passes))
				for op, n := range w.silent(blue) {
					total[op] += n
				}
			}
			for op := range total {
				if strings.HasPrefix(op, "ec2:DescribeS") || op == "ec2:DescribeVpcs" || op == "eks:DescribeCluster" || op == "ssm:GetParameters" {
					delete(total, op) // lookups
				}
			}
			all := map[string]int{"eks:DescribeNodegroup": n.nodegroups}
			for op, pages := range want {
				if op != "eks:DescribeNodegroup" {
					all[op] = pages * passes
				}
			}
			if d := cmp.Diff(all, total); d != "" {
				t.Errorf("%+v, in %d passes (-want +got):\n%s", n, passes, d)
			}
		}
	}
}

// Over a fleet of 130 groups, weir counts each of these reads by itself.
func TestReadsThatAreCountedApart(t *testing.T) {
	const n = 130
	w := newWorld(t)
	blue := fleet(n)
	w.settle(blue)
	steady := map[string]int{"autoscaling:DescribeAutoScalingGroups": 2, "ec2:DescribeLaunchTemplates": 1}
	expect := func(what string, got, more map[string]int) {
		t.Helper()
		want := map[string]int{}
		for _, m := range []map[string]int{steady, more} {
			for op, n := range m {
				want[op] += n
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	expect("at rest", w.silent(blue), nil)

	// The network's answers last five minutes, images that move ten, and that
	// nothing has the cluster's tag half a minute: one batch each, whatever the
	// number of pools.
	w.clock.Advance(6 * time.Minute)
	expect("expired network", w.silent(blue), map[string]int{"ec2:DescribeSecurityGroups": 2, "ec2:DescribeSubnets": 2, "ec2:DescribeVpcs": 1})
	w.clock.Advance(4 * time.Minute)
	expect("expired images", w.silent(blue), map[string]int{"ssm:GetParameters": 1, "ec2:DescribeSecurityGroups": 1, "ec2:DescribeSubnets": 1})

	// A cold process reads the newest versions of all templates of the account.
	w.restart()
	cold := w.silent(blue)
	for op := range cold {
		if op != "ec2:DescribeLaunchTemplateVersions" && steady[op] == 0 {
			delete(cold, op) // lookups, as above
		}
	}
	expect("cold process", cold, map[string]int{"ec2:DescribeLaunchTemplateVersions": 1})

	// The newest refresh of the groups that begin to roll, and of no other; while they
	// do, their machines tell how far they are.
	moving := fleet(n)
	for i := range 7 {
		moving.Set.Pools[i].LaunchTemplate.Data.KeyName = "another"
	}
	w.srv.ResetCalls()
	w.must(reconciler.Apply, moving)
	if got := w.srv.CallCounts()[polls]; got != 7 {
		t.Errorf("%d questions about refreshes before seven rollouts", got)
	}
	w.must(reconciler.Apply, moving) // reads the versions that were made
	w.srv.ResetCalls()
	w.must(reconciler.Apply, moving)
	expect("refreshes under way", w.srv.CallCounts(), nil)
	w.settle(moving)

	// Names in conflict are read in one batch, since the owner's reads lack them.
	foreign := owned(target("elsewhere", groupPool("theirs", "m5.large", 1)), "next")
	other := newScope(w)
	for range 3 {
		if _, err := other.Pass(t.Context(), []reconciler.Desired{foreign}, reconciler.Apply); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Second)
	}
	clash := target("blue", append(fleet(n).Set.Pools, groupPool("theirs", "m5.large", 1))...)
	for i := range 7 {
		clash.Set.Pools[i].LaunchTemplate.Data.KeyName = "another"
	}
	w.must(reconciler.Apply, clash)
	w.srv.ResetCalls()
	if r := w.must(reconciler.Apply, clash)[0]; !hasCode(r, "conflict") {
		t.Errorf("no conflict: %v", r.Diagnostics)
	}
	expect("names in conflict", w.srv.CallCounts(), map[string]int{"autoscaling:DescribeAutoScalingGroups": 1, "ec2:DescribeLaunchTemplates": 1})
}

// A new pool takes two writes, and one more for each of what AWS takes in a call
// of its own; reads are those of the batches, whatever the number of pools.
func TestWritesOfNewPools(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*intent.Pool)
		writes int
		reads  map[string]int // for each pool
	}{
		"plain": {func(*intent.Pool) {}, 2, nil},
		"suspended processes": {func(p *intent.Pool) {
			p.Group.SuspendedProcesses = []intent.Process{{Name: "AZRebalance", Suspended: true}}
		}, 3, nil},
		"declared as running": {func(p *intent.Pool) { p.Group.SuspendedProcesses = []intent.Process{{Name: "AZRebalance"}} }, 2, nil},
		"warm pool":           {func(p *intent.Pool) { p.Group.Options.WarmPool = &intent.WarmPool{PoolState: "Stopped"} }, 3, nil},
		"metrics": {func(p *intent.Pool) {
			p.Group.Options.MetricsCollection = &intent.MetricsCollection{Granularity: "1Minute", Metrics: []string{"GroupMinSize"}}
		}, 3, nil},
		"mixed instances":       {func(p *intent.Pool) { p.Group.MixedInstancesPolicy = mixed(50) }, 2, nil},
		"target groups":         {func(p *intent.Pool) { p.Group.Options.TargetGroupARNs = []string{fmt.Sprintf(targetGroup, "a")} }, 2, nil},
		"with hooks, all of it": {everything, 5, map[string]int{"autoscaling:DescribeLifecycleHooks": 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reads := map[int]map[string]int{}
			for _, n := range []int{1, 50} {
				w := newWorld(t)
				w.settle(target("blue", groupPool("first", "m5.large", 1)))
				pools := []intent.Pool{groupPool("first", "m5.large", 1)}
				for i := range n {
					p := groupPool(fmt.Sprintf("p%02d", i), "m5.large", 1)
					tt.change(&p)
					pools = append(pools, p)
				}
				w.srv.ResetCalls()
				w.settle(target("blue", pools...))
				if _, writes := w.calls(); writes != tt.writes*n {
					t.Errorf("%d pools: %d writes, want %d: %v", n, writes, tt.writes*n, w.srv.CallCounts())
				}
				reads[n] = map[string]int{}
				for _, c := range w.srv.Calls() {
					if key := c.Service + ":" + c.Operation; !c.Write {
						reads[n][key]++
					}
				}
				for op, each := range tt.reads {
					if reads[n][op] != each*n {
						t.Errorf("%d pools: %d of %s, want %d", n, reads[n][op], op, each*n)
					}
					delete(reads[n], op)
				}
			}
			if d := cmp.Diff(reads[1], reads[50]); d != "" {
				t.Errorf("reads (-one pool +fifty):\n%s", d)
			}
		})
	}
}

// everything is a pool with all that takes a write of its own, and hooks.
func everything(p *intent.Pool) {
	p.Group.SuspendedProcesses = []intent.Process{{Name: "AZRebalance", Suspended: true}}
	p.Group.Options.WarmPool = &intent.WarmPool{PoolState: "Stopped"}
	p.Group.Options.MetricsCollection = &intent.MetricsCollection{Granularity: "1Minute", Metrics: []string{"GroupMinSize"}}
	p.Group.Options.TargetGroupARNs = []string{fmt.Sprintf(targetGroup, "a")}
	p.Group.LifecycleHooks = []intent.LifecycleHook{drainHook(60)}
}
