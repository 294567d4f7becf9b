// Package gctuning says how much garbage may gather before Go collects it. Go collects
// when there is as much garbage as there are live objects, which for a small heap that
// makes much is all the time.
package gctuning

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Set lets bytes of garbage gather, or as much as is live, as Go has it by itself, where
// that is more. The variable GOGC, where it is set, decides instead, and a memory limit
// holds all the same.
func Set(bytes uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	(&keeper{bytes: bytes, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}).adjust()
}

// keeper is found to be garbage in each collection, and lives on.
type keeper struct {
	bytes uint64
	live  []metrics.Sample
}

func (k *keeper) adjust() {
	metrics.Read(k.live)
	debug.SetGCPercent(percent(k.live[0].Value.Uint64(), k.bytes))
	runtime.SetFinalizer(k, (*keeper).adjust)
}

// percent is the GOGC by which a heap with so many live bytes grows by bytes. Go takes a
// heap of less than least for one of least.
func percent(live, bytes uint64) int {
	const least = 4 << 20
	return int(max(100, 100*bytes/max(live, least))) //nolint:gosec // far below
}

// At rest as much garbage may gather as this, or half of what is live. Where as many
// collections come within a while, something is at work that would spend its time on them:
// garbage may then be as much as is live, until that is over.
const (
	little = 16 << 20
	burst  = 3
	within = 2 * time.Second
)

// pacer is found to be garbage in each collection, and lives on.
type pacer struct {
	live   []metrics.Sample
	recent [burst]time.Time // the latest collections, in turns
	turn   int
}

func (p *pacer) adjust() {
	metrics.Read(p.live)
	debug.SetGCPercent(paced(p.live[0].Value.Uint64(), p.busy(time.Now())))
	runtime.SetFinalizer(p, (*pacer).adjust)
}

// busy notes a collection, and reports whether it ends a burst.
func (p *pacer) busy(now time.Time) bool {
	first := p.recent[p.turn]
	p.recent[p.turn] = now
	p.turn = (p.turn + 1) % burst
	return now.Sub(first) < within
}

// paced is the GOGC of a heap with so many live bytes.
func paced(live uint64, busy bool) int {
	if busy || live <= little {
		return 100
	}
	return int(100 * max(little, live/2) / live) //nolint:gosec // at most 100
}

// How often GiveBack looks, and how much it leaves: that much garbage and free memory, or an
// eighth of what is live.
const (
	look  = 30 * time.Second
	leave = 12 << 20
)

// GiveBack gives memory that is not needed back to the system until ctx ends. Go keeps as
// much as its heap has grown to before the last collection, so a program that mostly waits
// would keep what its busiest moments took for as long as it makes little garbage. While
// little is made, it is collected early. The variable GOGC, where it is set, decides instead.
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
