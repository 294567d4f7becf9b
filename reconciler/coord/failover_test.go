package coord_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// judge looks at all attempts to write, as AWS would.
type judge struct {
	t      *testing.T
	memory *coordtest.Memory

	mu       sync.Mutex
	under    map[string]map[string]int // by key and member: attempts under way
	attempts int
	overlaps int
	strays   int // attempts begun by who is not the owner by the engine
}

// attempt is one write to AWS: it goes on for its time unless the member cuts it. A process that stands still cuts nothing: AWS has its attempt
// within the time that Quiet is for.
func (j *judge) attempt(ctx context.Context, l *coord.Lease, n *node, takes time.Duration) {
	key, member := l.Owner.Key, n.name
	owners, err := j.memory.OwnersOf(ctx, []string{key})
	j.mu.Lock()
	j.attempts++
	if err != nil || len(owners) == 0 || !owners[0].Is(l.Owner) {
		j.strays++
		j.t.Errorf("%s writes in %s, which is owned by %+v", member, key, owners)
	}
	if j.under[key] == nil {
		j.under[key] = map[string]int{}
	}
	j.under[key][member]++
	if len(j.under[key]) > 1 {
		j.overlaps++
		j.t.Errorf("%v write in %s", j.under[key], key)
	}
	j.mu.Unlock()
	const alone = coord.FenceBegin + coord.Quiet - time.Millisecond
	select {
	case <-time.After(min(takes, alone)):
		if takes > alone && !n.clock.Stopped() {
			select {
			case <-time.After(takes - alone):
			case <-ctx.Done():
			}
		}
	case <-ctx.Done():
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.under[key][member]--; j.under[key][member] == 0 {
		delete(j.under[key], member)
	}
}

// work writes now and then. Between asking the fence and sending there is no gap here:
// what that gap may be is bounded by Quiet, and not excluded.
func (j *judge) work(r *rand.Rand) func(*node, *coord.Lease) {
	var mu sync.Mutex
	between := func(from, to time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return from + time.Duration(r.Int64N(int64(to-from)))
	}
	return func(n *node, l *coord.Lease) {
		for first := true; ; first = false {
			l.Progress()
			wait := between(500*time.Millisecond, 20*time.Second)
			if first {
				wait /= 100
			}
			select {
			case <-l.Context().Done():
				return
			case <-time.After(wait):
			}
			n.clock.Runs()
			ctx, cancel, err := l.Fence.Attempt(l.Context())
			if err != nil {
				if !errors.Is(err, coord.ErrLost) {
					j.t.Error(err)
				}
				continue
			}
			takes := between(10*time.Millisecond, 300*time.Millisecond)
			if between(0, 5) == 0 {
				takes = between(time.Second, 15*time.Second)
			}
			j.attempt(ctx, l, n, takes)
			cancel()
		}
	}
}

// failovers lets members stand still, lose the engine, have their clocks set, drain and come
// back, until so many keys were taken over.
func failovers(t *testing.T, seed uint64, members, scopes, want int) *judge {
	var j *judge
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it is to be repeated
		f := newFleet(t, scopes)
		j = &judge{t: t, memory: f.memory, under: map[string]map[string]int{}}
		for i := range members {
			f.start(fmt.Sprint("m", i), j.work(rand.New(rand.NewPCG(seed, uint64(i)+2)))) //nolint:gosec // it is to be repeated
		}
		time.Sleep(time.Minute)
		for {
			f.mu.Lock()
			n := len(f.took)
			f.mu.Unlock()
			if n >= want {
				break
			}
			// Half of them at once, at most: somebody is left.
			for _, i := range r.Perm(members)[:1+r.IntN(max(1, members/2))] {
				f.members[i].suffer(r)
			}
			time.Sleep(time.Duration(20+r.IntN(40)) * time.Second)
		}
		for _, m := range f.members {
			m.wire.Mend()
		}
		time.Sleep(10 * time.Minute)
		f.mu.Lock()
		n := len(f.took)
		f.mu.Unlock()
		f.all(time.Second)
		for i := range f.members {
			if got := len(f.of(fmt.Sprint("m", i))); got < scopes/members/2 {
				t.Errorf("m%d has %d of %d keys at the end", i, got, scopes)
			}
		}
		time.Sleep(5 * time.Minute)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.took) != n {
			t.Errorf("%d keys moved at rest", len(f.took)-n)
		}
	})
	return j
}

// suffer has one thing happen to a member. One at a time: where a virtual machine stands
// still, so that its wall clock alone shows it, and somebody sets just that back within the
// same lease, no clock shows anything, and nothing here could.
func (n *node) suffer(r *rand.Rand) {
	d := time.Duration(r.IntN(45_000)) * time.Millisecond
	if time.Now().Before(n.suffers) {
		return
	}
	n.suffers = time.Now().Add(d + coord.TTL + 6*time.Second)
	switch r.IntN(9) {
	case 0, 1: // the process stands still
		resume := n.clock.Stop()
		time.AfterFunc(d, resume)
	case 2: // the machine sleeps, which one clock shows
		resume := n.clock.Stop()
		time.AfterFunc(d, func() { n.clock.Slept(d); resume() })
	case 3: // so does a virtual machine, whose wall clock is put right
		resume := n.clock.Stop()
		time.AfterFunc(d, func() { n.clock.Paused(d); resume() })
	case 4: // the engine cannot be reached
		n.wire.Cut()
		time.AfterFunc(d, n.wire.Mend)
	case 5: // or answers are lost and late
		hash := r.Uint64()
		n.wire.Arm(func(call string) coordtest.Fault {
			hash = hash*6364136223846793005 + 1442695040888963407
			switch hash >> 60 {
			case 0, 1, 2:
				return coordtest.Fault{LoseAnswer: true}
			case 3, 4, 5:
				return coordtest.Fault{LoseRequest: true, Hang: true}
			case 6, 7:
				return coordtest.Fault{Late: time.Duration(hash>>40%40000) * time.Millisecond}
			case 8, 9:
				return coordtest.Fault{Slow: time.Duration(hash>>40%1500) * time.Millisecond}
			}
			return coordtest.Fault{}
		})
		time.AfterFunc(d, n.wire.Mend)
	case 6, 7: // first the one, then the other: attempts begin with little of the lease left
		n.wire.Cut()
		time.AfterFunc(time.Duration(2000+r.IntN(4000))*time.Millisecond, func() {
			resume := n.clock.Stop()
			time.AfterFunc(d, func() { n.wire.Mend(); resume() })
		})
	case 8: // somebody sets the clock
		n.clock.SetWall(time.Duration(r.IntN(7200)-3600) * time.Second)
	}
}

// TestFailovers counts 2,000, or as many as WEIR_FAILOVERS says; 400 in a short run, as under
// the race detector each takes ten times as long.
func TestFailovers(t *testing.T) {
	want := 2000
	if testing.Short() {
		want = 400
	}
	if n, err := strconv.Atoi(os.Getenv("WEIR_FAILOVERS")); err == nil {
		want = n
	}
	seeds := 4
	if want > 20_000 {
		seeds = 20
	}
	var all judge
	for seed := range seeds {
		j := failovers(t, uint64(seed), 3+seed%8, 60+seed%3*40, want/seeds)
		all.attempts += j.attempts
		all.overlaps += j.overlaps
		all.strays += j.strays
	}
	t.Logf("%d failovers, %d attempts to write, %d of them by others than the owner, %d overlaps", want, all.attempts, all.strays, all.overlaps)
	if all.attempts < want {
		t.Error("hardly anything was written")
	}
}
