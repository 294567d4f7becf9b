package coord_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// TestFirstMemberWaits: an engine that knows of nobody may have forgotten somebody.
func TestFirstMemberWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5)
		f.start("a")
		if took := f.all(time.Minute); took < coord.TTL+coord.Quiet || took > coord.TTL+coord.Quiet+3*time.Second {
			t.Errorf("it began after %s", took)
		}
	})
}

func TestMembersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 40)
		f.start("a")
		f.all(time.Minute)
		f.start("b")
		f.start("c")
		time.Sleep(2 * time.Minute)
		f.all(time.Second)
		for _, name := range []string{"a", "b", "c"} {
			if n := len(f.of(name)); n < 9 || n > 17 {
				t.Errorf("%s has %d of 40", name, n)
			}
		}
		f.mu.Lock()
		before := len(f.took)
		f.mu.Unlock()
		time.Sleep(30 * time.Minute)
		if f.all(time.Second); len(f.took) != before {
			t.Errorf("%d keys moved for nothing", len(f.took)-before)
		}
		for _, m := range f.members {
			m.mu.Lock()
			for _, e := range m.events {
				if e.Err != nil {
					t.Errorf("%s: %s %s: %v", m.name, e.Kind, e.Key, e.Err)
				}
			}
			m.mu.Unlock()
		}
	})
}

// TestTakeover: what a killed member had is worked on elsewhere, not before Quiet past its
// lease, and within 15 s.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30)
		a := f.start("a")
		f.start("b")
		f.start("c")
		f.all(time.Minute)
		time.Sleep(2 * time.Minute)
		keys := f.of("a")
		left := a.Session().Left()
		resume := a.clock.Stop()
		died := time.Now()
		f.mu.Lock()
		f.took = nil
		for _, key := range keys {
			delete(f.works[key], "a")
		}
		f.mu.Unlock()
		if took := f.all(15 * time.Second); took < left+coord.Quiet {
			t.Errorf("taken over after %s, with %s of the lease left when it died", took, left)
		}
		f.mu.Lock()
		for _, took := range f.took {
			if took.released || took.from != "a" || took.at.Sub(died) < left+coord.Quiet {
				t.Errorf("%+v", took)
			}
		}
		if len(f.took) != len(keys) || len(keys) == 0 {
			t.Errorf("%d keys moved, it had %d", len(f.took), len(keys))
		}
		f.mu.Unlock()
		resume() // it finds itself lost, joins anew and gets its share
		time.Sleep(3 * time.Minute)
		f.all(time.Second)
		if n := len(f.of("a")); n == 0 {
			t.Error("it has nothing")
		}
	})
}

// TestStopHandsOver: a member that is told to stop leaves no key without an owner for more
// than a second.
func TestStopHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30)
		a := f.start("a")
		f.start("b")
		f.all(time.Minute)
		time.Sleep(2 * time.Minute)
		had := f.of("a")
		if len(had) == 0 {
			t.Fatal("a has nothing")
		}
		a.stop()
		gap := map[string]time.Duration{}
		for range 500 {
			for _, key := range f.of("") {
				gap[key] += 10 * time.Millisecond
			}
			time.Sleep(10 * time.Millisecond)
		}
		<-a.done
		if n := len(f.of("b")); n != 30 {
			t.Errorf("b has %d", n)
		}
		for key, d := range gap {
			if d > time.Second {
				t.Errorf("nobody worked on %s for %s", key, d)
			}
		}
		alive := f.members[1].mirror.Snapshot().Alive
		if len(alive) != 1 {
			t.Errorf("alive are %v", alive)
		}
	})
}

func TestDrainAndPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 12)
		a, b := f.start("a"), f.start("b")
		f.all(time.Minute)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := a.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := len(f.of("b")); n != 12 {
			t.Errorf("b has %d of what a gave up", n)
		}
		if err := a.Undrain(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if n := len(f.of("a")); n < 3 {
			t.Errorf("a has %d again", n)
		}
		key := f.of("b")[0]
		op, err := coord.Pin(key, "a", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Session().Write(t.Context(), coord.Write{Ops: []coord.Op{op}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if at := f.at(key); at != "a" {
			t.Errorf("%s is worked on by %q", key, at)
		}
		time.Sleep(5 * time.Minute)
		if at := f.at(key); at != "a" {
			t.Errorf("then by %q", at)
		}
	})
}

// TestADrainIsCalledOff: what is asked no more, and has not begun yet, hands nothing over and does not go on for good.
func TestADrainIsCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 12)
		a := f.start("a")
		f.start("b")
		f.all(time.Minute)
		time.Sleep(time.Minute)
		before := f.of("a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Drain(ctx); err == nil {
			t.Error("it is drained, though nobody waits for that")
		}
		synctest.Wait()
		if now := f.of("a"); len(before) == 0 || !slices.Equal(now, before) {
			t.Errorf("a has %q, and had %q", now, before)
		}
		if err := a.Undrain(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if now := f.of("a"); !slices.Equal(now, before) {
			t.Errorf("later a has %q, and had %q", now, before)
		}
	})
}

// TestStuck: work without progress is taken away, and what hangs can begin nothing.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 6)
		hang := make(chan struct{})
		var fence *coord.Fence
		f.start("a", func(_ *node, l *coord.Lease) {
			for l.Owner.Key == "scope3" && l.Context().Err() == nil {
				f.mu.Lock()
				fence = l.Fence
				f.mu.Unlock()
				<-hang
			}
			progress(l)
		})
		f.all(time.Minute)
		f.start("b")
		time.Sleep(coord.StuckAfter - 20*time.Second)
		f.mu.Lock()
		hangs := fence
		f.mu.Unlock()
		if err := hangs.MayBegin(); err != nil {
			t.Error("too early:", err)
		}
		time.Sleep(coord.StopWithin + coord.Quiet + time.Minute)
		f.mu.Lock()
		if at := f.works["scope3"]; !at["b"] {
			t.Errorf("%v work on what hangs", at)
		}
		f.mu.Unlock()
		var fenced *coord.FencedError
		if err := hangs.MayBegin(); !errors.As(err, &fenced) {
			t.Errorf("what hangs may begin: %v", err)
		}
		close(hang)
		time.Sleep(10 * time.Minute)
		f.all(time.Second)
	})
}

// TestStuckEverywhere: what no member makes progress with goes round once, not all the time. Once one that may do better comes, that one gets it.
func TestStuckEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 6)
		taken := map[string]int{}
		hangs := func(n *node, l *coord.Lease) {
			if l.Owner.Key == "scope3" {
				f.mu.Lock()
				taken[l.Owner.Member]++
				f.mu.Unlock()
				<-l.Context().Done()
				return
			}
			progress(l)
		}
		f.start("a", hangs)
		f.start("b", hangs)
		f.start("c", hangs)
		time.Sleep(13 * time.Minute)
		f.mu.Lock()
		if n := taken["a"] + taken["b"] + taken["c"]; n > 4 || len(taken) != 3 {
			t.Errorf("taken %v in 13 minutes", taken)
		}
		f.mu.Unlock()
		f.start("d", func(n *node, l *coord.Lease) {
			if l.Owner.Key == "scope3" {
				f.mu.Lock()
				taken["d"]++
				f.mu.Unlock()
			}
			progress(l)
		})
		time.Sleep(4 * (coord.StuckAfter + time.Minute)) // each of the others may try once more before
		f.mu.Lock()
		defer f.mu.Unlock()
		if taken["d"] == 0 {
			t.Errorf("the one who can never had it: %v", taken)
		}
	})
}
