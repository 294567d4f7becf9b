package coord_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

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
