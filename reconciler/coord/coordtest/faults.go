package coordtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

func lostAnswers(w *world) {
	a, b := w.join("a", long), w.join("b", long)
	mark := w.changes(b, coord.Mark{}).Mark
	for i, f := range []Fault{{LoseRequest: true}, {LoseAnswer: true}, {LoseAnswer: true, Hang: true}} {
		key := fmt.Sprint("k", i)
		a.wire.Once("Commit", f)
		v := w.put(a, key, "v", 0)
		if got := w.wantRecord(b, key, "v"); got != v {
			w.Errorf("%d: version %d, told %d", i, got, v)
		}
		c := w.changes(b, mark)
		if mark = c.Mark; len(c.Records) != 1 {
			w.Errorf("%d: %+v", i, c)
		}
		f.Hang = false // once is enough
		a.wire.Once("Commit", f)
		o, err := a.Take(w.Context(), key, coord.Owner{})
		w.must(err)
		a.wire.Once("Commit", f)
		w.must(a.Release(w.Context(), o))
		// A refused write stays refused, however often it was sent.
		a.wire.Once("Commit", f)
		_, err = a.Write(w.Context(), put(key, "other", 0))
		w.wants(err, coord.ErrConflict)
		mark = w.changes(b, mark).Mark
	}
	// A lost answer to a renewal neither renews nor loses the lease.
	a.wire.Once("Renew", Fault{LoseAnswer: true})
	left := a.Left()
	if err := a.Renew(w.Context()); err == nil || errors.Is(err, coord.ErrLost) || a.Left() > left {
		w.Errorf("renewed: %v, %s left of %s", err, a.Left(), left)
	}
	w.must(a.Renew(w.Context()))
	// Without any answer the write may have been done, and the next write finds out.
	for _, f := range []Fault{{LoseRequest: true}, {LoseAnswer: true}} {
		ctx, cancel := context.WithTimeout(w.Context(), 300*time.Millisecond)
		a.wire.Arm(func(call string) Fault { return f })
		_, err := a.Write(ctx, put("doubt", fmt.Sprint(f), coord.Any))
		cancel()
		w.wants(err, coord.ErrUnknown)
		a.wire.Mend()
		w.put(a, "after", "v", coord.Any)
		r, err := b.engine.Get(w.Context(), "doubt")
		w.must(err)
		if (string(r.Value) == fmt.Sprint(f)) != f.LoseAnswer {
			w.Errorf("%+v: %s", f, r.Value)
		}
	}
}

// lateRequests checks that requests have no effect if they arrive after their member has continued.
func lateRequests(w *world) {
	a, b := w.join("a", long), w.join("b", long)
	late := Fault{Late: 400 * time.Millisecond}
	// A write that was given up arrives after the next one.
	ctx, cancel := context.WithTimeout(w.Context(), 20*time.Millisecond)
	a.wire.Once("Commit", late)
	_, err := a.Write(ctx, put("k", "late", coord.Any))
	cancel()
	w.wants(err, coord.ErrUnknown)
	w.put(a, "k", "next", coord.Any)
	time.Sleep(2 * late.Late)
	w.wantRecord(b, "k", "next")
	// Fault.Late returns an error at once and delivers the request later. Write then tries again by itself. A
	// write that was refused at its second attempt arrives when it would be accepted.
	v := w.put(b, "there", "v", 0)
	a.wire.Once("Commit", late)
	_, err = a.Write(w.Context(), put("there", "late", 0))
	w.wants(err, coord.ErrConflict)
	_, err = b.Write(w.Context(), coord.Write{Ops: []coord.Op{{Key: "there", Delete: true, If: v}}})
	w.must(err)
	time.Sleep(2 * late.Late)
	w.wantRecord(b, "there", "")
	// The same holds for taking a key that another member had.
	held := w.acquire(b, "scope")
	a.wire.Once("Commit", late)
	_, err = a.Take(w.Context(), "scope", held)
	w.wants(err, coord.ErrHeld)
	w.must(b.Leave(w.Context()))
	time.Sleep(2 * late.Late)
	if o := w.owner(a, "scope"); !o.Is(held) {
		w.Errorf("%+v", o)
	}
	// A write that arrives before the next one is sent was done.
	ctx, cancel = context.WithTimeout(w.Context(), 20*time.Millisecond)
	a.wire.Once("Commit", late)
	_, err = a.Write(ctx, put("k", "done", coord.Any))
	cancel()
	w.wants(err, coord.ErrUnknown)
	w.until("what was late", func() bool {
		r, err := a.engine.Get(w.Context(), "k")
		w.must(err)
		return string(r.Value) == "done"
	})
	w.put(a, "other", "v", 0)
	w.wantRecord(a, "k", "done")
}

// counting makes members write the same record concurrently.
func counting(w *world) {
	const members, each = 4, 10
	var all sync.WaitGroup
	first := w.join("m0", long)
	w.put(first, "count", "0", 0)
	for i := range members {
		m := first
		if i > 0 {
			m = w.join(fmt.Sprint("m", i), long)
		}
		all.Go(func() {
			for done := 0; done < each; {
				r, err := m.engine.Get(w.Context(), "count")
				if err != nil {
					w.Error(err)
					return
				}
				n, err := strconv.Atoi(string(r.Value))
				if err != nil {
					w.Error(err)
					return
				}
				_, err = m.Write(w.Context(), put("count", fmt.Sprint(n+1), r.Version))
				switch {
				case err == nil:
					done++
				case !errors.Is(err, coord.ErrConflict):
					w.Error(err)
					return
				default:
					time.Sleep(rand.N(10 * time.Millisecond))
				}
			}
		})
	}
	all.Wait()
	w.wantRecord(first, "count", fmt.Sprint(members*each))
}

func wiped(w *world) {
	if w.data.Wipe == nil {
		w.Skip("it cannot be wiped in a test")
	}
	a := w.join("a", long)
	held := w.acquire(a, "scope")
	w.put(a, "k", "v", 0)
	mark := w.changes(a, coord.Mark{}).Mark
	w.data.Wipe()
	if c := w.changes(a, mark); !c.Replaced || !c.All {
		w.Fatalf("%+v", c)
	}
	_, err := a.Write(w.Context(), put("k", "of before", 0, held))
	w.wants(err, coord.ErrLost)
	a.rejoin(w, "a", long)
	if c := w.changes(a, mark); !c.Replaced {
		w.Fatalf("%+v", c)
	}
	w.wantRecord(a, "k", "")
	if again := w.acquire(a, "scope"); again.Epoch.Engine == held.Epoch.Engine {
		w.Errorf("epochs %s and %s", held.Epoch, again.Epoch)
	}
}

func restored(w *world) {
	if w.data.Save == nil {
		w.Skip("it cannot be restored in a test")
	}
	a := w.join("a", long)
	v := w.put(a, "k", "old", 0)
	first := w.acquire(a, "scope")
	restore := w.data.Save()
	newer := w.put(a, "k", "new", v)
	w.must(a.Release(w.Context(), first))
	second := w.acquire(a, "scope")
	mark := w.changes(a, coord.Mark{}).Mark
	restore()
	if c := w.changes(a, mark); !c.Replaced || !c.All {
		w.Fatalf("%+v", c)
	}
	_, err := a.Write(w.Context(), put("k", "of before", coord.Any, second))
	w.wants(err, coord.ErrLost)
	if a.Left() > 0 {
		w.Error("the session goes on")
	}
	a.rejoin(w, "a", long)
	w.until("the end of the session that came back", func() bool {
		third, err := a.Take(w.Context(), "scope", w.owner(a, "scope"))
		if err != nil {
			w.wants(err, coord.ErrHeld) // by a session that the backup says is alive
			w.must(a.wire.End(w.Context(), w.owner(a, "scope").Session))
			return false
		}
		if third.Epoch == second.Epoch || third.Epoch == first.Epoch || third.Epoch.N <= second.Epoch.N {
			w.Errorf("epoch %s after %s and %s", third.Epoch, first.Epoch, second.Epoch)
		}
		return true
	})
	if again := w.put(a, "k", "other", v); again == newer {
		w.Errorf("version %d is used again", again)
	}
}
