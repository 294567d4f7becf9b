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
	"time"
)

// While packages initialize, little of the heap is garbage. A process that uses all commands' libraries would
// collect it twice before main begins, which takes as long as everything else at its start. Set and GiveBack
// replace this value. Go initializes this package before larger libraries, because it imports less.
const initially = 800

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(initially)
	}
}

// Set allows the given number of bytes of garbage, or Go's default if that is more: as much as live memory.
// The variable GOGC overrides this, and a memory limit still applies.
func Set(bytes uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	(&keeper{bytes: bytes, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}).adjust()
}

// keeper has a finalizer that runs after each collection and sets itself again.
type keeper struct {
	bytes uint64
	live  []metrics.Sample
}

func (k *keeper) adjust() {
	metrics.Read(k.live)
	debug.SetGCPercent(percent(k.live[0].Value.Uint64(), k.bytes))
	runtime.SetFinalizer(k, (*keeper).adjust)
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

// pacer has a finalizer that runs after each collection and sets itself again.
type pacer struct {
	live   []metrics.Sample
	recent [burst]time.Time // the times of the latest collections, a ring buffer
	turn   int
}

func (p *pacer) adjust() {
	metrics.Read(p.live)
	debug.SetGCPercent(paced(p.live[0].Value.Uint64(), p.busy(time.Now())))
	runtime.SetFinalizer(p, (*pacer).adjust)
}

// busy records a collection, and reports whether there is a burst.
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
		(&pacer{live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}).adjust()
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
