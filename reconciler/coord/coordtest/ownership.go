package coordtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

func comeAndGo(w *world) {
	a, b := w.join("a", long), w.join("b", long)
	if got := w.alive(a); !slices.Equal(got, []string{"a", "b"}) {
		w.Fatalf("alive are %v", got)
	}
	if a.ID() == b.ID() || a.Engine() != b.Engine() || a.Engine() == "" {
		w.Fatalf("sessions %s in %q and %s in %q", a.ID(), a.Engine(), b.ID(), b.Engine())
	}
	w.must(b.Announce(w.Context(), coord.Member{Name: "b", Draining: true}))
	alive, err := a.engine.Members(w.Context())
	w.must(err)
	for _, m := range alive {
		if m.Member.Draining != (m.Session == b.ID()) || m.Member.Clock.IsZero() {
			w.Errorf("%+v", m)
		}
	}
	w.must(a.Renew(w.Context()))
	w.must(b.Renew(w.Context()))
	w.must(b.Leave(w.Context()))
	if got := w.alive(a); !slices.Equal(got, []string{"a"}) {
		w.Fatalf("after one left %v", got)
	}
	w.wants(b.Renew(w.Context()), coord.ErrLost)
	w.must(b.Leave(w.Context()))
}

func oneOwner(w *world) {
	var members []*member
	for i := range 4 {
		members = append(members, w.join(fmt.Sprint("m", i), long))
	}
	won := make([]error, len(members))
	owners := make([]coord.Owner, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { owners[i], won[i] = m.Take(w.Context(), "scope", coord.Owner{}) })
	}
	all.Wait()
	winner := slices.Index(won, nil)
	for i, err := range won {
		if i == winner {
			continue
		}
		if !errors.Is(err, coord.ErrConflict) {
			w.Errorf("%d: %v", i, err)
		}
		_, err = members[i].Take(w.Context(), "scope", owners[winner])
		w.wants(err, coord.ErrHeld)
	}
	now := w.owner(members[0], "scope")
	if now.Session != members[winner].ID() || now.Member != fmt.Sprint("m", winner) || !now.Is(owners[winner]) || now.Since.IsZero() {
		w.Fatalf("the owner is %+v, member %d won", now, winner)
	}
	w.acquire(members[0], "another")
	if some, err := members[1].wire.OwnersOf(w.Context(), []string{"nobody's", "scope"}); err != nil || len(some) != 1 || !some[0].Is(now) {
		w.Fatal(some, err)
	}
	if owners, err := members[0].engine.Owners(w.Context()); err != nil || len(owners) != 2 || owners[0].Key != "another" {
		w.Fatal(owners, err)
	}
}

func handOver(w *world) {
	a, b := w.join("a", long), w.join("b", long)
	first := w.acquire(a, "scope")
	w.must(a.Release(w.Context(), first))
	if o := w.owner(b, "scope"); !o.Released || o.Epoch != first.Epoch {
		w.Fatalf("released: %+v", o)
	}
	w.wants(a.Release(w.Context(), first), coord.ErrLost)
	_, err := b.Take(w.Context(), "scope", first)
	w.wants(err, coord.ErrConflict)
	second := w.acquire(b, "scope")
	if second.Epoch.N <= first.Epoch.N || second.Epoch.Engine != first.Epoch.Engine {
		w.Fatalf("epoch %s follows %s", second.Epoch, first.Epoch)
	}
	w.must(b.Release(w.Context(), second))
	last := second.Epoch.N
	for range 5 {
		o := w.acquire(a, "scope")
		if o.Epoch.N <= last {
			w.Fatalf("epoch %s follows %d", o.Epoch, last)
		}
		last = o.Epoch.N
		w.must(a.Release(w.Context(), o))
	}
}

func expiry(w *world) {
	if w.back.Lease == 0 {
		w.Skip("sessions do not expire")
	}
	b := w.join("b", long)
	a := w.join("a", w.back.Lease)
	held := w.acquire(a, "scope")
	kept := w.acquire(b, "kept")
	w.until("the end of the lease", func() bool {
		left := a.Left()
		_, err := b.Take(w.Context(), "scope", held)
		if err != nil {
			w.wants(err, coord.ErrHeld)
			w.alive(b) // the observer sees that the session stands still
		} else if left > 0 {
			w.Fatalf("taken with %s of the lease left", left)
		}
		return err == nil
	})
	if got := w.alive(b); !slices.Equal(got, []string{"b"}) {
		w.Errorf("alive are %v", got)
	}
	_, err := a.Write(w.Context(), put("k", "v", 0, held))
	w.wants(err, coord.ErrLost)
	w.wants(a.Renew(w.Context()), coord.ErrLost)
	w.wantRecord(b, "k", "")
	w.must(b.Release(w.Context(), kept))
}

// staysDead tests a member whose clocks stood still: by its own clocks, its lease is still valid.
func staysDead(w *world) {
	if w.back.Lease == 0 {
		w.Skip("sessions do not expire")
	}
	a, b := w.join("a", w.back.Lease), w.join("b", long)
	held := w.acquire(a, "scope")
	start := time.Now()
	w.until("the end of the lease", func() bool { return !slices.Contains(w.alive(b), "a") })
	second := w.acquire(b, "scope")
	a.clock.Paused(time.Since(start) + time.Second)
	a.clock.SetWall(-time.Since(start) - time.Second)
	if a.Left() == 0 {
		w.Fatal("the clocks do not stand still")
	}
	_, err := a.Write(w.Context(), put("k", "of the dead", 0, held))
	w.wants(err, coord.ErrLost)
	_, err = a.Write(w.Context(), put("k", "of the dead", 0))
	w.wants(err, coord.ErrLost)
	_, err = a.Take(w.Context(), "other", coord.Owner{})
	w.wants(err, coord.ErrLost)
	w.wants(a.Renew(w.Context()), coord.ErrLost)
	if a.Left() != 0 {
		w.Error("the engine reported it as dead, and it continues")
	}
	w.wantRecord(b, "k", "")
	if !w.owner(b, "scope").Is(second) {
		w.Error("the owner changed")
	}
	w.alive(b)
	a.rejoin(w, "a", long)
	if got := w.alive(b); !slices.Equal(got, []string{"a", "b"}) {
		w.Errorf("alive are %v", got)
	}
}

func slots(w *world) {
	a := w.join("a", long)
	for i := range 5 {
		b := w.join("b", long)
		if slot := coord.SlotOf(b.ID()); slot != coord.SlotOf(a.ID())+1 {
			w.Fatalf("%d: slot %d beside %s", i, slot, a.ID())
		}
		w.put(b, "k", fmt.Sprint(i), coord.Any)
		w.must(b.Leave(w.Context()))
		w.wants(b.Renew(w.Context()), coord.ErrLost)
	}
	w.wantRecord(a, "k", "4")
}

func clocksApart(w *world) {
	if w.back.Lease == 0 {
		w.Skip("sessions do not expire")
	}
	ttl := max(4*w.back.Lease, 10*time.Second)
	for name, wrong := range map[string]func(c *Clock){
		"ahead":   func(c *Clock) { c.SetWall(time.Hour) },
		"behind":  func(c *Clock) { c.SetWall(-time.Hour) },
		"resumed": func(c *Clock) { c.Slept(time.Second) },
	} {
		a, b := w.join("a", ttl), w.join("b", ttl)
		held := w.acquire(a, name)
		// A wrong clock of the observer does not end another member's lease.
		w.alive(b)
		wrong(b.clock)
		for range 3 {
			if _, err := b.engine.Members(w.Context()); err != nil {
				w.Fatal(err)
			}
		}
		if got := w.alive(b); !slices.Contains(got, "a") {
			w.Errorf("%s: alive are %v", name, got)
		}
		if left := a.Left(); left > 0 {
			_, err := b.connectionTake(w, name, held)
			w.wants(err, coord.ErrHeld)
		}
		w.must(a.Leave(w.Context()))
		_ = b.Leave(w.Context()) // its lease may have ended by its own clock
	}
	a := w.join("a", ttl)
	a.clock.SetWall(time.Hour)
	if a.Left() != 0 {
		w.Errorf("%s are left by a clock that says that an hour has passed", a.Left())
	}
	w.wants(a.Renew(w.Context()), coord.ErrLost)
	a.rejoin(w, "a", ttl)
	a.clock.SetWall(-2 * time.Hour)
	if left := a.Left(); left > ttl {
		w.Errorf("%s are left of %s", left, ttl)
	}
	w.put(a, "k", "v", 0)
}

// connectionTake takes a key with a new session of the same observer, because its own session may have ended
// by its clock.
func (m *member) connectionTake(w *world, key string, seen coord.Owner) (coord.Owner, error) {
	m.rejoin(w, "again", long)
	return m.Take(w.Context(), key, seen)
}
