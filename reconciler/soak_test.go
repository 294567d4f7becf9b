package reconciler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/intent"
)

// hundred is a fleet of a hundred pools of all sorts; step makes of it another one,
// of which some have gone and some are new.
func hundred(step int) reconciler.Desired {
	var pools []intent.Pool
	for i := range 100 {
		if i%10 == step%10 && step > 0 {
			continue
		}
		p := groupPool(fmt.Sprintf("p%03d", i), "m5.large", int32((i+step)%3))
		if i%2 == 0 {
			p.LaunchTemplate.Data.KeyName = fmt.Sprintf("key-%d", step)
		}
		p.KeepVersions = 2
		switch i % 5 {
		case 1:
			everything(&p)
			p.Group.LifecycleHooks = []intent.LifecycleHook{drainHook(int32(60 + step))}
		case 2:
			p.Group.MixedInstancesPolicy = mixed(int32(10 * (step%4 + 1)))
		case 3:
			p.Drain = true
			p.Group.Options.HealthCheckType = []string{"EC2", "ELB"}[step%2]
		}
		p.Group.Tags = map[string]string{"Name": p.Key.Name, "step": fmt.Sprint(step)}
		pools = append(pools, p)
	}
	d := target("blue", pools...)
	d.Policy.Prune.Count = 100
	return d
}

// A hundred pools change ten times while one call of twenty goes wrong, in any of
// the ways, and processes are stopped in the midst: each time they end as Git says,
// with nothing doubled and nothing left.
func TestSoakAHundredPoolsWithFaults(t *testing.T) {
	soaks(t, "tens of thousands of calls")
	const seed = 20260102
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's own
	kinds := []awsemu.Fault{{Kind: awsemu.FailBefore, Code: "InternalFailure", Status: 500}, {Kind: awsemu.CutBefore}, {Kind: awsemu.LoseAnswer}, {Kind: awsemu.Throttled}}
	w := newWorld(t)
	for step := range 10 {
		blue := hundred(step)
		for range 25 {
			for range random.IntN(12) {
				f := kinds[random.IntN(len(kinds))]
				f.After, f.WritesOnly = random.IntN(200), random.IntN(3) > 0
				w.srv.Faults().Add(f)
			}
			if random.IntN(4) == 0 { // stopped for good, somewhere
				w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.CutBefore, After: random.IntN(300), Times: -1})
			}
			_, _ = w.pass(reconciler.Apply, blue) // may fail: that is the point
			w.srv.Faults().Clear()
			if random.IntN(3) == 0 {
				w.restart()
			}
			w.clock.Advance(time.Duration(random.IntN(8000)) * time.Millisecond)
		}
		if _, trouble := w.settled(blue); trouble != "" {
			t.Fatalf("step %d: %s", step, trouble)
		}
		w.clock.Advance(11 * time.Minute)
		w.restart()
		w.silent(blue)
		var want []string
		for i := range blue.Set.Pools {
			p := &blue.Set.Pools[i]
			want = append(want, fmt.Sprintf("group %s of %d", p.Key.Name, p.Replicas.Value), "template "+p.Key.Name)
			if n := len(w.numbers(p.Key.Name)); n > 5 {
				t.Errorf("step %d: %s has %d versions", step, p.Key.Name, n)
			}
		}
		slices.Sort(want)
		if d := cmp.Diff(want, w.held()); d != "" {
			t.Fatalf("step %d (-want +got):\n%s", step, d)
		}
	}
}
