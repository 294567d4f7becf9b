package coord_test

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// within fails unless a time is what is promised, or a little later.
func within(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %s, want %s to %s", what, got, least, most)
	}
}

// What is promised of leases is measured, without the constants that decide it: seconds of the simulated time are the figures of the guide.
func TestTheNumbersOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		a := f.start("a")
		within(t, "the first member of an empty engine waits a lease and three seconds", f.all(time.Minute), 13*time.Second, 15*time.Second)
		f.start("b")
		time.Sleep(2 * time.Minute)
		if len(f.of("a")) != 1 || len(f.of("b")) != 1 {
			t.Fatal("the work is not shared")
		}

		var mu sync.Mutex
		var renewed time.Time // when the last renewal that arrived was sent
		slow, cut := time.Duration(0), false
		a.wire.Arm(func(call string) coordtest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if cut {
				return coordtest.Fault{LoseRequest: true, Hang: true}
			}
			if call != "Renew" {
				return coordtest.Fault{}
			}
			renewed = time.Now()
			return coordtest.Fault{Slow: slow}
		})
		renewals, polls := a.wire.Calls("Renew"), a.wire.Calls("Poll")
		time.Sleep(time.Minute)
		if n := a.wire.Calls("Renew") - renewals; n < 29 || n > 31 {
			t.Errorf("%d renewals a minute, and one each two seconds is promised", n)
		}
		if n := a.wire.Calls("Poll") - polls; n < 59 || n > 61 {
			t.Errorf("%d polls a minute, and one a second is promised", n)
		}

		// A renewal counts from when it was sent, not from its answer.
		s := a.Session()
		mu.Lock()
		slow = 1500 * time.Millisecond
		mu.Unlock()
		time.Sleep(10 * time.Second)
		for last := s.Left(); ; time.Sleep(time.Millisecond) {
			left := s.Left()
			if left > last {
				within(t, "left after an answer that took 1.5 s", left, 8450*time.Millisecond, 8500*time.Millisecond)
				break
			}
			last = left
		}
		mu.Lock()
		slow = 0
		mu.Unlock()
		time.Sleep(5 * time.Second)

		l := a.Lease(f.of("a")[0])
		attempt, done, err := l.Fence.Attempt(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		mu.Lock()
		cut = true
		sent := renewed
		mu.Unlock()
		for l.Fence.MayBegin() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		within(t, "nothing begins with less than five seconds of ten", time.Since(sent), 5*time.Second, 5050*time.Millisecond)
		<-attempt.Done()
		within(t, "an attempt is cut a second before the end", time.Since(sent), 9*time.Second, 9050*time.Millisecond)
		for f.at(l.Owner.Key) != "b" {
			time.Sleep(10 * time.Millisecond)
		}
		within(t, "the successor begins three seconds past the end", time.Since(sent), 13*time.Second, 15*time.Second)
	})
}

// Work without progress is told to end after two minutes.
func TestTheTimeWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1)
		var once sync.Once
		ended := make(chan time.Duration, 1)
		for _, name := range []string{"a", "b"} {
			f.start(name, func(_ *node, l *coord.Lease) {
				last := time.Now()
				l.Progress()
				<-l.Context().Done()
				once.Do(func() { ended <- time.Since(last) })
			})
		}
		within(t, "without progress", <-ended, 2*time.Minute, 2*time.Minute+2*time.Second)
	})
}

// still is a machine whose clocks are set by hand.
type still struct {
	mu  sync.Mutex
	now coord.Instant
}

func (s *still) Now() coord.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// A lease ends by whichever clock went furthest: each may be the only one that shows that the machine stood still.
func TestALeaseEndsByTheClockThatWentFurthest(t *testing.T) {
	const six = 6 * time.Second
	for name, tc := range map[string]struct {
		moves func(*coord.Instant)
		left  time.Duration
	}{
		"none":                      {func(*coord.Instant) {}, 10 * time.Second},
		"the monotonic one alone":   {func(i *coord.Instant) { i.Mono += six }, 4 * time.Second},
		"that of the boot alone":    {func(i *coord.Instant) { i.Boot += six }, 4 * time.Second},
		"the time of day alone":     {func(i *coord.Instant) { i.Wall = i.Wall.Add(six) }, 4 * time.Second},
		"one by more than another":  {func(i *coord.Instant) { i.Mono += time.Second; i.Boot += six }, 4 * time.Second},
		"the time of day goes back": {func(i *coord.Instant) { i.Mono += six; i.Boot += six; i.Wall = i.Wall.Add(-time.Hour) }, 4 * time.Second},
		"past its end":              {func(i *coord.Instant) { i.Boot += 11 * time.Second }, 0},
	} {
		clock := &still{now: coord.Instant{Mono: time.Hour, Boot: 2 * time.Hour, Wall: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}}
		s, err := coord.New(coordtest.NewMemory(), coord.Options{Clock: clock}).Join(t.Context(), coord.Member{Name: "a"}, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		clock.mu.Lock()
		tc.moves(&clock.now)
		clock.mu.Unlock()
		if left := s.Left(); left != tc.left {
			t.Errorf("%s moves: %s left, want %s", name, left, tc.left)
		}
	}
}

// The clock of the boot is the kernel's, which goes on while the machine sleeps.
func TestTheClockOfTheBoot(t *testing.T) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Skip("not Linux: the test reads the uptime of the kernel")
	}
	up, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	if boot := (coord.Machine{}).Now().Boot.Seconds(); boot < up {
		t.Errorf("%f s since the boot, the kernel says %f", boot, up)
	}
}
