// Package gctuning controls how much garbage may exist before Go's garbage collector runs. By default it runs
// when there is as much garbage as live memory. A small heap with much allocation would then be collected all
// the time.
package gctuning

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// initially is the garbage that a process may make before it chooses another policy. While the packages of all
// commands' libraries initialize, little is garbage, but the heap would be collected twice. That takes as long as
// everything else at the start of weir.
const initially = 32 << 20

func init() { Set(initially) }

// Set allows the given number of bytes of garbage, or Go's default if that is more: as much as live memory.
// It replaces the policy of an earlier Set or GiveBack. The variable GOGC overrides this, and a memory limit
// still applies.
func Set(bytes uint64) {
	if os.Getenv("GOGC") == "" {
		follow(func(live uint64) int { return percent(live, bytes) })
	}
}

// policy sets GOGC after each collection. A collection finds the policy unreachable and runs its finalizer,
// adjust, which sets the finalizer again. An earlier policy does not set it again, and is freed.
type policy struct {
	number  int
	percent func(live uint64) int
	live    []metrics.Sample
}

var (
	mu     sync.Mutex
	latest int // the number of the latest policy
)

// follow makes percent choose GOGC, instead of any earlier function: once now, and after each collection. The
// argument of percent is the memory in bytes that the last collection found live. percent runs with mu held, so
// it must not call Set or GiveBack.
func follow(percent func(live uint64) int) {
	mu.Lock()
	latest++
	p := &policy{latest, percent, []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	mu.Unlock()
	p.adjust()
}

func (p *policy) adjust() {
	mu.Lock()
	defer mu.Unlock()
	if p.number != latest {
		return
	}
	metrics.Read(p.live)
	debug.SetGCPercent(p.percent(p.live[0].Value.Uint64()))
	runtime.SetFinalizer(p, (*policy).adjust)
}

// percent returns the GOGC value with which a heap of live bytes grows by bytes. Go treats a heap smaller
// than least like one of that size.
func percent(live, bytes uint64) int {
	const least = 4 << 20
	return int(max(100, 100*bytes/max(live, least))) //nolint:gosec // far below
}

// Garbage may reach little, or half of the live memory if that is more. After a burst of collections,
// something allocates much, and would spend its time on collections. Garbage may then reach the size of live
// memory until the burst is over.
const (
	little = 16 << 20
	burst  = 3
	within = 2 * time.Second
)

// pacer finds bursts of collections.
type pacer struct {
	recent [burst]time.Time // the times of the latest collections, a ring buffer
	turn   int
}

// busy records a collection, or the start of the policy, and reports whether there is a burst.
func (p *pacer) busy(now time.Time) bool {
	first := p.recent[p.turn]
	p.recent[p.turn] = now
	p.turn = (p.turn + 1) % burst
	return now.Sub(first) < within
}

// paced returns the GOGC value for a heap of live bytes.
func paced(live uint64, busy bool) int {
	if busy || live <= little {
		return 100
	}
	return int(100 * max(little, live/2) / live) //nolint:gosec // at most 100
}

// look is the interval of GiveBack. leave is the amount of garbage and free memory that it leaves, unless an
// eighth of the live memory is more.
const (
	look  = 30 * time.Second
	leave = 12 << 20
)

// GiveBack returns unused memory to the system until ctx ends. Go keeps the memory that its heap had before
// the last collection. A program that mostly waits would keep the memory of its busiest time for as long as
// it makes little garbage. So GiveBack also makes collections start early at such times. The variable GOGC
// overrides this.
func GiveBack(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		p := &pacer{}
		follow(func(live uint64) int { return paced(live, p.busy(time.Now())) })
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			giveBack()
		}
	}
}

func giveBack() {
	m := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(m)
	live, held := m[0].Value.Uint64(), uint64(0)
	for _, s := range m[1:] {
		held += s.Value.Uint64()
	}
	if held > live+max(leave, live/8) {
		debug.FreeOSMemory()
	}
}
