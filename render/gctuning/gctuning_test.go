package gctuning

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercent(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ live, bytes, want uint64 }{
		{0, 64 * mib, 1600}, // a heap that Go takes for one of 4 MiB
		{16 * mib, 64 * mib, 400},
		{64 * mib, 64 * mib, 100},
		{1 << 40, 64 * mib, 100},
		{8 * mib, 0, 100},
	} {
		if got := percent(c.live, c.bytes); got != int(c.want) {
			t.Errorf("%d live and %d of garbage: %d, want %d", c.live, c.bytes, got, c.want)
		}
	}
}

var hold, waste []byte

// withoutGOGC makes a test run as if the variable GOGC were not set. make test sets it.
func withoutGOGC(t *testing.T) {
	t.Setenv("GOGC", "")
	follow(func(uint64) int { return 100 })
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}

// The headroom follows what is live, collection after collection.
func TestSetFollowsWhatIsLive(t *testing.T) {
	withoutGOGC(t)
	collections := func() (n uint32) {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the keeper runs after the first
		runtime.ReadMemStats(&m)
		from := m.NumGC
		for range 256 {
			waste = make([]byte, 1<<20)
		}
		runtime.ReadMemStats(&m)
		return m.NumGC - from
	}
	without := collections()
	Set(64 << 20)
	for range 3 {
		if with := collections(); with > 8 || with*4 > without {
			t.Errorf("%d collections of 256 MiB with 64 MiB of headroom, %d without", with, without)
		}
	}
	hold = make([]byte, 128<<20)
	if with := collections(); with > 4 {
		t.Errorf("%d collections of 256 MiB beside 128 MiB that live", with)
	}
	runtime.KeepAlive(hold)
	hold = nil
}

// What was free or garbage is the system's again, and a heap with little of either is left
// alone.
func TestGiveBack(t *testing.T) {
	withoutGOGC(t)
	hold = make([]byte, 32<<20)
	for range 48 {
		waste = make([]byte, 1<<20)
	}
	waste = nil
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	giveBack()
	runtime.ReadMemStats(&after)
	// The runtime keeps a few MiB of its own beside the 48 that were wasted.
	if held := after.HeapSys - after.HeapReleased; held > after.HeapInuse+8<<20 || before.HeapReleased+8<<20 > after.HeapReleased {
		t.Errorf("%d MiB are held for %d in use; released were %d, and are %d", held>>20, after.HeapInuse>>20, before.HeapReleased>>20, after.HeapReleased>>20)
	}
	giveBack()
	var again runtime.MemStats
	if runtime.ReadMemStats(&again); again.NumForcedGC != after.NumForcedGC {
		t.Error("it collects though nothing is to be had")
	}
	runtime.KeepAlive(hold)
	hold = nil
}

func TestGarbageIsLittleAtRest(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		live       uint64
		busy, rest int
	}{{0, 100, 100}, {16 * mib, 100, 100}, {24 * mib, 100, 66}, {32 * mib, 100, 50}, {1 << 30, 100, 50}} {
		if busy, rest := paced(c.live, true), paced(c.live, false); busy != c.busy || rest != c.rest {
			t.Errorf("%d live: %d busy and %d at rest, want %d and %d", c.live, busy, rest, c.busy, c.rest)
		}
	}
	var p pacer
	at := time.Now()
	for i, c := range []struct {
		after time.Duration
		busy  bool
	}{
		{0, false}, {1, false}, {1, false}, {1, true}, {1, true}, {30_000, false}, {1, false},
		{1_000, false}, {1_000, false}, {900, false}, {90, true},
	} {
		at = at.Add(c.after * time.Millisecond)
		if got := p.busy(at); got != c.busy {
			t.Errorf("collection %d: busy %v", i, got)
		}
	}
}

// The latest policy decides, also after collections for which an earlier one was prepared.
func TestTheLatestPolicyDecides(t *testing.T) {
	withoutGOGC(t)
	percentNow := func() int {
		n := debug.SetGCPercent(100)
		debug.SetGCPercent(n)
		return n
	}
	settled := func() int {
		for range 3 {
			runtime.GC()
			time.Sleep(time.Millisecond) // finalizers run in a goroutine of their own
		}
		return percentNow()
	}
	Set(256 << 20)
	if n := settled(); n < 1000 {
		t.Errorf("256 MiB of garbage: GOGC is %d", n)
	}
	Set(32 << 20)
	if n := settled(); n < 200 || n > 800 {
		t.Errorf("then 32 MiB of garbage: GOGC is %d", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { GiveBack(ctx); close(done) }()
	for range 100 {
		if settled() == 100 {
			break
		}
	}
	if n := settled(); n != 100 {
		t.Errorf("then GiveBack with a small heap: GOGC is %d", n)
	}
	cancel()
	<-done
}
