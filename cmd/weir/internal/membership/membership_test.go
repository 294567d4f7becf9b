package membership

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// joined returns a running member that owns a key, and its connection to the engine.
// joined starts a member. keys are separated by spaces.
func joined(t *testing.T, store coord.Store, name, keys string) (*Member, *coordtest.Wire) {
	t.Helper()
	return joinedAs(t, store, name, keys, func(*Options) {})
}

func joinedAs(t *testing.T, store coord.Store, name, keys string, with func(*Options)) (*Member, *coordtest.Wire) {
	t.Helper()
	wire := coordtest.NewWire(store)
	o := Options{
		Engine: coord.New(wire, coord.Options{Clock: coordtest.NewClock()}), Member: coord.Member{Name: name}, Logger: slog.New(slog.DiscardHandler),
		Scopes: func() (scopes []coord.Scope) {
			for _, key := range strings.Fields(keys) {
				scopes = append(scopes, coord.Scope{Key: key, Weight: 1})
			}
			return scopes
		},
		Work: func(l *coord.Lease) {
			for l.Context().Err() == nil {
				l.Progress()
				select {
				case <-l.Context().Done():
				case <-time.After(5 * time.Second):
				}
			}
		},
		Tell: func(coord.Event) {},
	}
	with(&o)
	c, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return c, wire
}

// A report of a change reaches the other members even if the engine could not be reached at first, because no later report shows the change.
func TestAReportOutlastsAnEngineThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		a, wire := joined(t, memory, "a", "scope/k")
		b, _ := joined(t, memory, "b", "")
		time.Sleep(30 * time.Second)
		l := a.Leases.Get("scope/k")
		if l == nil {
			t.Fatal("it owns nothing")
		}
		report := func(did bool, text string) {
			a.Reports.Publish(l, "prod", did, []byte(text), func() ([]byte, error) { return []byte(text), nil })
		}
		report(false, "nothing to do")
		time.Sleep(5 * time.Second)
		wire.Arm(func(call string) coordtest.Fault { return coordtest.Fault{LoseRequest: call == "Commit"} })
		report(true, "made the group")
		time.Sleep(8 * time.Second)
		report(false, "nothing to do at last")
		wire.Mend()
		time.Sleep(10 * time.Second)
		var got []string
		b.Reports.Read(func(_ string, data []byte) { got = append(got, string(data)) })
		if text := strings.Join(got, ", "); text != "made the group, nothing to do at last" {
			t.Errorf("the other knows: %s", text)
		}
	})
}

// A report that is too large for the engine is sent once, and not every second. The next report is sent.
func TestAReportThatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		a, _ := joined(t, memory, "a", "scope/k")
		b, _ := joined(t, memory, "b", "")
		time.Sleep(30 * time.Second)
		l := a.Leases.Get("scope/k")
		if l == nil {
			t.Fatal("it owns nothing")
		}
		var tried atomic.Int64
		publish := func(same string, size int) {
			a.Reports.Publish(l, "prod", true, []byte(same), func() ([]byte, error) { tried.Add(1); return make([]byte, size), nil })
			time.Sleep(20 * time.Second)
		}
		publish("large", 2<<20)
		if n := tried.Load(); n != 1 {
			t.Errorf("it was tried %d times", n)
		}
		largest := mostBytes - 1024
		publish("less", largest)
		var got []int
		b.Reports.Read(func(_ string, data []byte) { got = append(got, len(data)) })
		if len(got) != 1 || got[0] != largest {
			t.Errorf("the other has reports of %v bytes", got)
		}
	})
}

// If another member changes or removes the record of a target, the owner's next report restores it, even if the report itself has not changed. A member
// removes the record when it no longer has the target, and may write its last report late.
func TestARecordThatAnotherMemberChangedIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		a, _ := joined(t, memory, "a", "scope/k")
		b, _ := joined(t, memory, "b", "scope/other")
		time.Sleep(30 * time.Second)
		publish := func(c *Member, key, text string) {
			t.Helper()
			l := c.Leases.Get(key)
			if l == nil {
				t.Fatalf("%s is not owned", key)
			}
			c.Reports.Publish(l, "prod", false, []byte(text), func() ([]byte, error) { return []byte(text), nil })
			time.Sleep(5 * time.Second)
		}
		shown := func(c *Member) (last string) {
			for _, r := range recordedReports(c.Mirror.Snapshot(), "prod") {
				last = string(r.data)
			}
			return last
		}
		publish(a, "scope/k", "converged")
		version := b.Mirror.Snapshot().Get(reportKey("prod") + "0").Version
		publish(a, "scope/k", "converged")
		if now := b.Mirror.Snapshot().Get(reportKey("prod") + "0").Version; now != version {
			t.Error("what is no news is written")
		}
		publish(b, "scope/other", "was in another region")
		publish(a, "scope/k", "converged")
		if got := shown(b); got != "converged" {
			t.Errorf("after a late report of another member the record says %q", got)
		}
		b.Reports.remove(t.Context(), "prod")
		time.Sleep(5 * time.Second)
		if got := shown(a); got != "" {
			t.Fatalf("the record is there: %q", got)
		}
		publish(a, "scope/k", "converged")
		if got := shown(b); got != "converged" {
			t.Errorf("after another member dropped the record it says %q", got)
		}
	})
}

// A write that has started continues while the key is handed over, as long as the lease lasts. No new write starts.
func TestAnAttemptUnderWayIsNotCutByAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := joined(t, coordtest.NewMemory(), "a", "scope/k")
		time.Sleep(30 * time.Second)
		_, done := a.Leases.Use("scope/k")
		fence := Fence{Member: a, Key: func() string { return "scope/k" }}
		if err := fence.MayBegin(); err != nil {
			t.Fatal(err)
		}
		handed := make(chan struct{})
		go func() { defer close(handed); _ = a.Keeper.Drain(t.Context()) }()
		for range 6 {
			time.Sleep(time.Second)
			if left := time.Until(fence.Until()); left < coord.TTL-coord.RenewEvery-coord.FenceCut-time.Second {
				t.Errorf("it is cut in %s", left)
			}
			if fence.MayBegin() == nil {
				t.Error("a key that is handed over is written to")
			}
			if l, _ := a.Leases.Use("scope/k"); l != nil {
				t.Error("a key that is handed over is used")
			}
		}
		done()
		<-handed
		if until := fence.Until(); !until.Before(time.Now()) {
			t.Errorf("who owns it no more goes on for %s", time.Until(until))
		}
	})
}

// While waits until the work on a key is prepared.
func TestWhatRunsWaitsUntilItIsPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prepared := false
		a, _ := joinedAs(t, coordtest.NewMemory(), "a", "source/k", func(o *Options) {
			o.Begin = func(*coord.Lease) {
				time.Sleep(3 * time.Second)
				prepared = true
			}
		})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		ran := false
		a.Leases.While(ctx, "source/k", func(context.Context, *coord.Lease) error {
			ran = true
			if !prepared {
				t.Error("it began before")
			}
			return nil
		})
		if !ran {
			t.Error("it never ran")
		}
	})
}

// Work that fails restarts under the same lease.
func TestWorkThatFailsBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := joined(t, coordtest.NewMemory(), "a", "source/k")
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var leases []*coord.Lease
		a.Leases.While(ctx, "source/k", func(ctx context.Context, l *coord.Lease) error {
			if leases = append(leases, l); len(leases) < 3 {
				return errors.New("an answer was lost")
			}
			<-ctx.Done()
			return nil
		})
		if len(leases) != 3 || leases[0] != leases[2] {
			t.Errorf("it began %d times", len(leases))
		}
	})
}

// A slow engine holds no write as long as the last read is recent enough.
func TestASlowEngineKeepsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, wire := joined(t, coordtest.NewMemory(), "a", "scope/k")
		time.Sleep(30 * time.Second)
		fence := Fence{Member: a, Key: func() string { return "scope/k" }}
		wire.Arm(func(string) coordtest.Fault { return coordtest.Fault{Slow: 1600 * time.Millisecond} })
		for range 30 {
			time.Sleep(700 * time.Millisecond)
			if err := fence.MayBegin(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An owner starts no write if its last read is more than two seconds old.
func TestTheAgeOfWhatWasReadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, wire := joined(t, coordtest.NewMemory(), "a", "scope/k")
		time.Sleep(30 * time.Second)
		fence := Fence{Member: a, Key: func() string { return "scope/k" }}
		var mu sync.Mutex
		var read time.Time
		cut := false
		wire.Arm(func(call string) coordtest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if call == "Poll" && !cut {
				read = time.Now()
			}
			return coordtest.Fault{LoseRequest: call == "Poll" && cut}
		})
		time.Sleep(10 * time.Second)
		mu.Lock()
		cut = true
		mu.Unlock()
		for fence.MayBegin() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		if age := time.Since(read); age <= 2*time.Second || age > 2*time.Second+20*time.Millisecond {
			t.Errorf("the last write began %s after the read that it went by", age)
		}
		if a.Leases.Get("scope/k") == nil {
			t.Error("its lease is gone, which is another reason")
		}
		wire.Mend()
		time.Sleep(time.Second)
		if err := fence.MayBegin(); err != nil {
			t.Error(err)
		}
	})
}
