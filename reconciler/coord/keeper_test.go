package coord_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// fleet are members over one engine in memory.
type fleet struct {
	t      *testing.T
	memory *coordtest.Memory
	scopes []coord.Scope

	mu      sync.Mutex
	members []*node
	// works says which members work on a key now.
	works map[string]map[string]bool
	took  []took
}

type took struct {
	at            time.Time
	key, by, from string
	released      bool
}

type node struct {
	*coord.Keeper
	f      *fleet
	name   string
	clock  *coordtest.Clock
	wire   *coordtest.Wire
	mirror *coord.Mirror
	stop   context.CancelFunc
	done   chan struct{}
	// suffers is until when something happens to it.
	suffers time.Time
	work    func(*node, *coord.Lease)

	mu     sync.Mutex
	events []coord.Event
}

func newFleet(t *testing.T, scopes int) *fleet {
	f := &fleet{t: t, memory: coordtest.NewMemory(), works: map[string]map[string]bool{}}
	for _, key := range names("scope", scopes) {
		f.scopes = append(f.scopes, coord.Scope{Key: key, Weight: 1})
	}
	t.Cleanup(func() {
		for _, n := range f.members {
			n.stop()
		}
		for _, n := range f.members {
			<-n.done
		}
	})
	return f
}

// start starts a member whose work is to hold the key until its context ends.
func (f *fleet) start(name string, work ...func(*node, *coord.Lease)) *node {
	n := &node{f: f, name: name, clock: coordtest.NewClock(), done: make(chan struct{})}
	n.work = func(_ *node, l *coord.Lease) { progress(l) }
	if len(work) > 0 {
		n.work = work[0]
	}
	n.wire = coordtest.NewWire(f.memory)
	n.wire.Machine = n.clock
	engine := coord.New(n.wire, coord.Options{Clock: n.clock})
	n.mirror = coord.NewMirror(engine)
	n.Keeper = coord.NewKeeper(coord.KeeperOptions{
		Engine: engine, Mirror: n.mirror, Member: coord.Member{Name: name}, Scopes: func() []coord.Scope { return f.scopes },
		Run: n.run, Tell: n.tell,
	})
	ctx, stop := context.WithCancel(f.t.Context())
	n.stop = stop
	go func() {
		defer close(n.done)
		n.Run(ctx)
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = append(f.members, n)
	return n
}

// progress is work that goes on.
func progress(l *coord.Lease) {
	for l.Context().Err() == nil {
		l.Progress()
		select {
		case <-time.After(10 * time.Second):
		case <-l.Context().Done():
		}
	}
}

func (n *node) run(l *coord.Lease) {
	key := l.Owner.Key
	n.f.mu.Lock()
	if n.f.works[key] == nil {
		n.f.works[key] = map[string]bool{}
	}
	n.f.works[key][n.name] = true
	n.f.mu.Unlock()
	n.work(n, l)
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	delete(n.f.works[key], n.name)
}

func (n *node) tell(e coord.Event) {
	n.mu.Lock()
	n.events = append(n.events, e)
	n.mu.Unlock()
	if e.Kind == coord.Took {
		n.f.mu.Lock()
		defer n.f.mu.Unlock()
		n.f.took = append(n.f.took, took{time.Now(), e.Key, n.name, e.Before.Member, e.Before.Released})
	}
}

// at says who works on a key, "" if nobody does.
func (f *fleet) at(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var by []string
	for name := range f.works[key] {
		by = append(by, name)
	}
	slices.Sort(by)
	if len(by) > 1 {
		f.t.Errorf("%v work on %s", by, key)
	}
	if len(by) == 0 {
		return ""
	}
	return by[0]
}

func (f *fleet) of(name string) (keys []string) {
	for _, s := range f.scopes {
		if f.at(s.Key) == name {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// all waits until each key is worked on.
func (f *fleet) all(within time.Duration) time.Duration {
	f.t.Helper()
	start := time.Now()
	for time.Since(start) <= within {
		if len(f.of("")) == 0 {
			return time.Since(start)
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatalf("nobody works on %v after %s", f.of(""), within)
	return 0
}

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

func TestDrainAndTakeByHand(t *testing.T) {
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
		if err := a.TakeByHand(t.Context(), key); err != nil {
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
		_ = b
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

// TestCut: a member that does not reach the engine goes on until its lease ends, and then
// does nothing; nobody else begins before.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10)
		a := f.start("a")
		f.start("b")
		f.all(time.Minute)
		time.Sleep(time.Minute)
		synctest.Wait() // for a renewal of this very moment
		keys := f.of("a")
		l := a.Lease(keys[0])
		ctx, cancel, err := l.Fence.Attempt(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		if until := time.Until(l.Fence.Until()); until > coord.TTL-coord.FenceCut || until < coord.TTL-coord.FenceCut-coord.RenewEvery-time.Second {
			t.Errorf("cut in %s", until)
		}
		left := a.Session().Left()
		a.wire.Cut()
		start := time.Now()
		<-ctx.Done()
		if cut := time.Since(start); cut > left-coord.FenceCut || cut < left-coord.FenceCut-time.Second {
			t.Errorf("cut after %s of %s", cut, left)
		}
		if err := l.Fence.MayBegin(); !errors.Is(err, coord.ErrLost) {
			t.Errorf("it may begin: %v", err)
		}
		if !errors.Is(context.Cause(ctx), coord.ErrLost) {
			t.Errorf("cut because of %v", context.Cause(ctx))
		}
		time.Sleep(20 * time.Second)
		if n := len(f.of("b")); n != 10 {
			t.Errorf("b has %d", n)
		}
		if age, _ := a.mirror.Age(); age < 20*time.Second || a.mirror.Err() == nil {
			t.Errorf("its mirror is %s old: %v", age, a.mirror.Err())
		}
		short, cancelShort := context.WithTimeout(t.Context(), time.Second)
		defer cancelShort()
		if _, err := a.mirror.Within(short, coord.InputsWithin); err == nil {
			t.Error("it reads what it cannot")
		}
		a.wire.Mend()
		time.Sleep(2 * time.Minute)
		if len(f.of("a")) == 0 {
			t.Error("a has nothing")
		}
	})
}

// TestWiped: who works when the engine loses its data stops, and waits as if somebody were
// forgotten.
func TestWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10)
		f.start("a")
		f.start("b")
		f.all(time.Minute)
		time.Sleep(time.Minute)
		f.memory.Wipe()
		wiped := time.Now()
		f.mu.Lock()
		f.took = nil
		f.mu.Unlock()
		time.Sleep(2500 * time.Millisecond)
		if n := len(f.of("")); n != 10 {
			t.Errorf("%d keys are worked on without a lease", 10-n)
		}
		time.Sleep(time.Minute)
		f.all(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, took := range f.took {
			if took.at.Sub(wiped) < coord.TTL+coord.Quiet {
				t.Errorf("%+v, %s behind the loss", took, took.at.Sub(wiped))
			}
		}
	})
}

// TestReleaseLost: a release that nobody answers leaves no key that is owned and not worked
// on.
func TestReleaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4)
		once := true
		f.start("a", func(a *node, l *coord.Lease) {
			if l.Owner.Key == "scope1" && once {
				once = false
				a.wire.Arm(func(call string) coordtest.Fault {
					return coordtest.Fault{LoseRequest: call == "Commit"}
				})
				time.AfterFunc(9*time.Second, a.wire.Mend)
				return
			}
			progress(l)
		})
		time.Sleep(coord.TTL + coord.Quiet + 2*time.Minute)
		f.all(time.Second)
	})
}

// TestMirrorSeesWholeWrites has two keys that are only ever written together.
func TestMirrorSeesWholeWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		join := func(name string) (*coord.Engine, *coord.Session) {
			wire := coordtest.NewWire(memory)
			r := rand.New(rand.NewPCG(1, uint64(len(name)))) //nolint:gosec // it is to be repeated
			wire.Arm(func(string) coordtest.Fault {
				return coordtest.Fault{Slow: time.Duration(r.IntN(30)) * time.Millisecond}
			})
			e := coord.New(wire, coord.Options{Clock: coordtest.NewClock()})
			s, err := e.Join(t.Context(), coord.Member{Name: name}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return e, s
		}
		_, a := join("a")
		_, b := join("bb")
		e, _ := join("ccc")
		m := coord.NewMirror(e)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var all sync.WaitGroup
		number := func(r coord.Record) (n int) {
			fmt.Sscan(string(r.Value), &n)
			return n
		}
		for w, s := range []*coord.Session{a, b} {
			all.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					value := []byte(fmt.Sprint(s.ID(), i))
					ops := []coord.Op{{Key: "x", Value: value, If: coord.Any}, {Key: "y", Value: value, If: coord.Any}, {Key: fmt.Sprint("z", i%7), Value: value, If: coord.Any}}
					for j := range ops {
						ops[j].Delete = i%5 == 0
					}
					ops = append(ops, coord.Op{Key: fmt.Sprint("n", w), Value: []byte(fmt.Sprint(i)), If: coord.Any})
					_, _ = s.Write(ctx, coord.Write{Ops: ops}) // the last one is ended
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		seen := map[string]bool{}
		for ctx.Err() == nil {
			before, err := e.Get(t.Context(), "n0")
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Sync(ctx); err != nil {
				break
			}
			s := m.Snapshot()
			x, y := s.Get("x"), s.Get("y")
			if x.Version != y.Version || string(x.Value) != string(y.Value) {
				t.Fatalf("%+v beside %+v", x, y)
			}
			if number(s.Get("n0")) < number(before) {
				t.Fatalf("%s was read before, %s is there", before.Value, s.Get("n0").Value)
			}
			for _, r := range s.List("z") {
				if s.Get(r.Key).Version != r.Version {
					t.Fatal(r)
				}
			}
			seen[string(x.Value)] = true
		}
		all.Wait()
		if len(seen) < 50 {
			t.Errorf("%d states were seen", len(seen))
		}
		cancel()
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := m.Snapshot()
		if err := m.Sync(t.Context()); err != nil || m.Snapshot() != before {
			t.Errorf("nothing changed, and the snapshot is another: %v", err)
		}
	})
}

// TestMirrorSkips has more of what is skipped than fits on a page, and records behind it.
func TestMirrorSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := coord.New(coordtest.NewMemory(), coord.Options{Clock: coordtest.NewClock()})
		s, err := e.Join(t.Context(), coord.Member{Name: "a"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		put := func(key string) {
			if _, err := s.Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: key, If: coord.Any}}}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 35 {
			put(fmt.Sprint("log/", i))
			put(fmt.Sprint("a/", i))
			put(fmt.Sprint("z/", i))
		}
		m := coord.NewMirror(e, "log/")
		for range 2 {
			if err := m.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			now := m.Snapshot()
			if n, a, z := len(now.List("log/")), len(now.List("a/")), len(now.List("z/")); n != 0 || a != 35 || z != 35 || len(now.List("")) != 70 {
				t.Fatalf("%d %d %d", n, a, z)
			}
			put("log/new")
			put("z/0")
		}
	})
}

// TestWhoCannotReadOwnsNothing: a member that is alive and cannot read the records may write
// nothing to AWS, so it must not keep others from it.
func TestWhoCannotReadOwnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 12)
		a, b := f.start("a"), f.start("b")
		f.all(time.Minute)
		time.Sleep(2 * time.Minute)
		if len(f.of("a")) == 0 || len(f.of("b")) == 0 {
			t.Fatal("one has nothing")
		}
		a.wire.Arm(func(call string) coordtest.Fault {
			return coordtest.Fault{LoseRequest: call != "Renew" && call != "Commit"}
		})
		time.Sleep(time.Minute)
		if n := len(f.of("b")); n != 12 {
			t.Errorf("the one that reads has %d of 12 keys, the other keeps %v", n, f.of("a"))
		}
		a.wire.Mend()
		time.Sleep(3 * time.Minute)
		if f.all(time.Second); len(f.of("a")) == 0 || b.Session() == nil {
			t.Error("it got nothing when it could read again")
		}
	})
}
