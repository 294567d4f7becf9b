package coord_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// Who took a key and heard nothing of it does not know whom it took the key from: it waits as if somebody were forgotten, also where the engine has a
// release on record.
func TestATakingThatNobodyAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1)
		a := f.start("a")
		f.all(time.Minute)
		b := f.start("b")
		time.Sleep(10 * time.Second)
		b.wire.Arm(func(call string) coordtest.Fault { return coordtest.Fault{LoseAnswer: call == "Commit"} })
		a.stop()
		<-a.done
		var taken coord.Owner
		for taken.Member != "b" {
			time.Sleep(10 * time.Millisecond)
			owners, err := f.memory.Owners(t.Context())
			if err != nil || len(owners) != 1 {
				t.Fatal(owners, err)
			}
			taken = owners[0]
		}
		began := time.Now()
		time.Sleep(3 * time.Second) // longer than it tries
		b.wire.Mend()
		for f.at(taken.Key) != "b" {
			time.Sleep(10 * time.Millisecond)
		}
		within(t, "after a taking without an answer", time.Since(began), 13*time.Second, 17*time.Second)
	})
}

// renamed is an engine that has the data of another one, as a table that was restored.
type renamed struct{ coord.Store }

func (r renamed) Enter(ctx context.Context, random string, m coord.Member, ttl time.Duration) (coord.Entered, error) {
	e, err := r.Store.Enter(ctx, random, m, ttl)
	e.Engine = "another"
	return e, err
}

func (r renamed) Poll(ctx context.Context) (coord.Poll, error) {
	p, err := r.Store.Poll(ctx)
	p.Engine = "another"
	return p, err
}

// A release that another engine recorded is none: who took the key after the backup may be at work.
func TestAReleaseOfAnotherEngineCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1)
		a := f.start("a")
		f.all(time.Minute)
		a.stop()
		<-a.done
		for _, tc := range []struct {
			name        string
			store       coord.Store
			least, most time.Duration
		}{
			{"the same", f.memory, 0, 2 * time.Second},
			{"another one", renamed{f.memory}, 13 * time.Second, 15 * time.Second},
		} {
			engine := coord.New(tc.store, coord.Options{Clock: coordtest.NewClock()})
			began := make(chan time.Time, 1)
			k := coord.NewKeeper(coord.KeeperOptions{
				Engine: engine, Mirror: coord.NewMirror(engine), Member: coord.Member{Name: tc.name}, Scopes: func() []coord.Scope { return f.scopes },
				Run: func(l *coord.Lease) { began <- time.Now(); <-l.Context().Done() },
			})
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			start := time.Now()
			go func() { defer close(ended); k.Run(ctx) }()
			within(t, tc.name, (<-began).Sub(start), tc.least, tc.most)
			stop()
			<-ended
		}
	})
}

// Where the engine goes back to an earlier state beneath a member, which says of it just what it was, its leases end all the same: whoever works under
// one must learn that what people said since is gone.
func TestAnEngineThatGoesBackEndsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		a := f.start("a")
		f.all(time.Minute)
		time.Sleep(time.Minute)
		session := a.Session()
		restore := f.memory.Save()
		if _, err := session.Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: "suspended", If: coord.Any}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // it was read, and the lease is in force in the backup still
		restore()
		f.mu.Lock()
		f.took = nil
		f.mu.Unlock()
		time.Sleep(2 * time.Second)
		if n := len(f.of("")); n != 3 || a.Session() == session {
			t.Errorf("%d of 3 keys are worked on, and the session is the same: %t", 3-n, a.Session() == session)
		}
		f.all(time.Minute)
		if len(f.took) != 3 {
			t.Errorf("%d keys were taken anew", len(f.took))
		}
	})
}

// A clock that somebody sets shortens no successor's wait.
func TestASetClockShortensNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1)
		a := f.start("a")
		f.all(time.Minute)
		b := f.start("b")
		time.Sleep(10 * time.Second)
		s := a.Session()
		resume := a.clock.Stop()
		defer resume()
		b.wire.Arm(func(call string) coordtest.Fault { return coordtest.Fault{LoseRequest: call == "Commit"} }) // it cannot take the key at once
		for b.mirror.Snapshot().Lives(s.ID()) {
			time.Sleep(10 * time.Millisecond)
		}
		dead := time.Now()
		f.mu.Lock()
		clear(f.works["scope0"])
		f.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
		b.clock.SetWall(time.Hour)
		b.wire.Mend()
		for f.at("scope0") != "b" {
			time.Sleep(10 * time.Millisecond)
		}
		within(t, "past the end of the lease", time.Since(dead), 3*time.Second, 6*time.Second)
	})
}

// What placement gives to a member that does not take it, though it is alive and reads, is taken by another one after a grace.
func TestWhatItsMemberDoesNotTakeIsTakenByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30)
		a, b := f.start("a"), f.start("b")
		f.start("c")
		f.all(time.Minute)
		time.Sleep(2 * time.Minute)
		its := f.of("a")
		b.wire.Arm(func(call string) coordtest.Fault { return coordtest.Fault{LoseRequest: call == "Commit"} })
		session, stopped := b.Session(), time.Now()
		a.stop()
		<-a.done
		proposed := 0
		for _, key := range its {
			if b.View().Proposed[key] == "b" {
				proposed++
			}
		}
		if proposed == 0 {
			t.Error("placement gives it nothing")
		}
		f.all(time.Minute)
		within(t, "nobody's for a grace", time.Since(stopped), 5*time.Second, 10*time.Second)
		if b.Session() != session {
			t.Error("it lost its own lease, which is another reason")
		}
		for _, key := range its {
			if at := f.at(key); at != "c" {
				t.Errorf("%s is worked on by %q", key, at)
			}
		}
	})
}

// A release that nobody answered, however late it arrives, never has somebody work on what is another's by the engine, or nobody's: it does not happen
// once its owner goes on, and its owner does not go on once it has.
func TestAReleaseThatIsVeryLate(t *testing.T) {
	for name, tc := range map[string]struct {
		late time.Duration
		// blind: nobody else is there, and the owner itself reads nothing while the release arrives.
		blind bool
	}{
		"soon":                       {5 * time.Second, false},
		"as it waits":                {18 * time.Second, false},
		"as it works again":          {26 * time.Second, false},
		"much later":                 {40 * time.Second, false},
		"before it sees the release": {3 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 1)
				first := true
				a := f.start("a", func(a *node, l *coord.Lease) {
					if !first {
						progress(l)
						return
					}
					first = false
					time.Sleep(20 * time.Second)
					began := time.Now()
					a.wire.Arm(func(call string) coordtest.Fault {
						passed := time.Since(began)
						switch {
						case call == "Commit" && passed < 10500*time.Millisecond: // longer than it tries
							return coordtest.Fault{Late: tc.late}
						case call == "Poll" && tc.blind && passed > 2900*time.Millisecond && passed < 11600*time.Millisecond:
							return coordtest.Fault{LoseRequest: true}
						}
						return coordtest.Fault{}
					}) // and it gives the key up
				})
				f.all(time.Minute)
				if !tc.blind {
					f.start("b")
				}
				wrong := 0
				for start := time.Now(); time.Since(start) < 2*time.Minute; time.Sleep(10 * time.Millisecond) {
					owners, err := f.memory.Owners(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for _, n := range f.members {
						f.mu.Lock()
						works := f.works["scope0"][n.name]
						f.mu.Unlock()
						if l := n.Lease("scope0"); works && l != nil && l.Fence.MayBegin() == nil && !owners[0].Is(l.Owner) {
							wrong++
						}
					}
				}
				if wrong > 0 {
					t.Errorf("for %d0 ms somebody worked on what was another's, or nobody's", wrong)
				}
				f.all(time.Second)
				if a.Session() == nil {
					t.Error("the session is lost, which is another reason")
				}
			})
		})
	}
}

// An owner that joined while the records were read is not among the living that were read before it. That nobody owned the key then is no start of the wait
// for its end, however long nothing could be read meanwhile.
func TestAnOwnerThatWasNotSeenAlive(t *testing.T) {
	for name, tc := range map[string]struct {
		away   func(*node) (back func())
		within time.Duration
	}{
		"the engine cannot be reached": {func(n *node) func() { n.wire.Cut(); return n.wire.Mend }, 6 * time.Second},
		// It may see first that the owner's lease goes on, as was read before, and waits for a whole one then.
		"the process stands still": {func(n *node) func() { n.wire.Mend(); return n.clock.Stop() }, coord.TTL + 6*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { takesOverUnseen(t, tc.away, tc.within) })
		})
	}
}

func takesOverUnseen(t *testing.T, away func(*node) (back func()), most time.Duration) {
	f := newFleet(t, 1)
	raw := coord.New(f.memory, coord.Options{Clock: coordtest.NewClock()})
	join := func(name string) *coord.Session {
		s, err := raw.Join(t.Context(), coord.Member{Name: name}, coord.TTL)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	take := func(s *coord.Session, seen coord.Owner) coord.Owner {
		o, err := s.Take(t.Context(), "scope0", seen)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first := join("first")
	owned := take(first, coord.Owner{})
	b := f.start("b")
	time.Sleep(5 * time.Second)

	// Between a poll and the read that follows it the key goes from one to the other.
	polled := make(chan struct{})
	var once sync.Once
	b.wire.Arm(func(call string) coordtest.Fault {
		if call != "OwnersOf" {
			return coordtest.Fault{}
		}
		once.Do(func() { close(polled) })
		return coordtest.Fault{Slow: 300 * time.Millisecond}
	})
	if err := first.Release(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	owned.Released = true
	<-polled
	next := join("next")
	owned = take(next, owned)
	time.Sleep(400 * time.Millisecond)
	if now := b.mirror.Snapshot(); !now.Owner("scope0").Is(owned) || now.Lives(next.ID()) {
		t.Fatalf("%+v", now)
	}
	back := away(b)
	for range 20 {
		time.Sleep(2 * time.Second)
		if err := next.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(coord.TTL) // its end
	end := time.Now()
	back()
	for f.at("scope0") != "b" {
		time.Sleep(10 * time.Millisecond)
	}
	within(t, "past the end of the lease", time.Since(end), 3*time.Second, most)
}
