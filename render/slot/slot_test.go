package slot_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/render/slot"
)

// order enters callers one after the other while q is full, then lets each run in turn,
// and returns the sources in the order in which they got the slot.
func order(t *testing.T, o slot.Options, first slot.Caller, callers ...slot.Caller) (got []string) {
	t.Helper()
	q := slot.New(o)
	_, running, err := q.Enter(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range callers {
		go func() {
			_, s, err := q.Enter(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			got = append(got, c.Source) // one at a time
			s.Leave()
		}()
		synctest.Wait()
	}
	running.Leave()
	synctest.Wait()
	if q.Running() != 0 || q.Waiting() != 0 {
		t.Errorf("%d run, %d wait", q.Running(), q.Waiting())
	}
	return got
}

// A source with much work does not delay another one by more than what runs.
func TestSourcesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := slot.Caller{Source: "a"}, slot.Caller{Source: "b"}, slot.Caller{Source: "c"}
		got := order(t, slot.Options{Slots: 1}, a, a, a, a, b, b, c)
		if want := []string{"b", "c", "a", "b", "a", "a"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Followed work comes before the search for earlier commits, and that before proposals,
// whichever source they are of.
func TestClassesComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(name string, c slot.Class) slot.Caller { return slot.Caller{Source: name, Class: c} }
		got := order(t, slot.Options{Slots: 1}, at("x", slot.Followed),
			at("proposed", slot.Proposed), at("earlier", slot.Earlier), at("followed", slot.Followed))
		if want := []string{"followed", "earlier", "proposed"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// However many proposals there are, followed work finds a slot that none of them has.
func TestProposalsLeaveTheReservedSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := slot.New(slot.Options{Slots: 2, Reserved: 1})
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() {
				if _, s, err := q.Enter(ctx, slot.Caller{Source: "a", Class: slot.Proposed}); err == nil {
					<-ctx.Done()
					s.Leave()
				}
			}()
		}
		synctest.Wait()
		if q.Running() != 1 || q.Waiting() != 2 {
			t.Fatalf("%d proposals run, %d wait", q.Running(), q.Waiting())
		}
		began := time.Now()
		_, s, err := q.Enter(ctx, slot.Caller{Source: "a"})
		if err != nil || time.Since(began) > 0 {
			t.Fatalf("followed work waited for %s: %v", time.Since(began), err)
		}
		s.Leave()
		cancel()
		synctest.Wait()
		if q.Running() != 0 || q.Waiting() != 0 {
			t.Errorf("%d run, %d wait", q.Running(), q.Waiting())
		}
	})
}

// A proposal loses its slot to followed work, and is told why.
func TestFollowedWorkPreemptsProposals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := slot.New(slot.Options{Slots: 1, Preempt: true})
		var events []string
		go func() {
			ctx, s, err := q.Enter(t.Context(), slot.Caller{Source: "a", Class: slot.Proposed})
			if err != nil {
				t.Error(err)
				return
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), slot.ErrPreempted) {
				t.Errorf("ended: %v", context.Cause(ctx))
			}
			events = append(events, "preempted")
			s.Leave()
		}()
		synctest.Wait()
		ctx, s, err := q.Enter(t.Context(), slot.Caller{Source: "b"})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, "followed")
		// Other followed work waits: it preempts none of its kind.
		go func() {
			_, s, err := q.Enter(t.Context(), slot.Caller{Source: "c"})
			if err == nil {
				events = append(events, "second")
				s.Leave()
			}
		}()
		synctest.Wait()
		if ctx.Err() != nil {
			t.Errorf("followed work was preempted: %v", context.Cause(ctx))
		}
		s.Leave()
		synctest.Wait()
		if want := []string{"preempted", "followed", "second"}; !slices.Equal(events, want) {
			t.Errorf("got %v, want %v", events, want)
		}
	})
}

// A source has no more slots than it may have, and others have the rest.
func TestSourcesLeaveSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := slot.New(slot.Options{Slots: 3, PerSource: 2})
		a, b := slot.Caller{Source: "a"}, slot.Caller{Source: "b"}
		var held []*slot.Slot
		for range 2 {
			_, s := q.TryEnter(t.Context(), a)
			held = append(held, s)
		}
		if _, s := q.TryEnter(t.Context(), a); s != nil {
			t.Error("a source got all slots")
		}
		_, s := q.TryEnter(t.Context(), b)
		if s == nil {
			t.Fatal("another source got none")
		}
		s.Leave()
		s.Leave() // once is enough
		for _, s := range held {
			s.Leave()
		}
		if q.Running() != 0 {
			t.Errorf("%d run", q.Running())
		}
	})
}

// A caller that gives up keeps no place, though its slot is given at that very moment.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := slot.New(slot.Options{Slots: 1})
		_, s, err := q.Enter(t.Context(), slot.Caller{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if _, _, err := q.Enter(ctx, slot.Caller{}); !errors.Is(err, context.Canceled) {
				t.Errorf("gave up with %v", err)
			}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		s.Leave()
		if q.Running() != 0 || q.Waiting() != 0 {
			t.Errorf("%d run, %d wait", q.Running(), q.Waiting())
		}
	})
}
