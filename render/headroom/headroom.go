// Package headroom says how much garbage may gather before Go collects it. Go collects
// when there is as much garbage as there are live objects, which for a small heap that
// makes much is all the time.
package headroom

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

// How often GiveBack looks, and how much it leaves: that much garbage and free memory, or an
// eighth of what is live.
const (
	look  = 30 * time.Second
	leave = 12 << 20
)

// GiveBack gives memory that is not needed back to the system until ctx ends. Go keeps as
// much as its heap has grown to before the last collection, so a program that mostly waits
// would keep what its busiest moments took for as long as it makes little garbage.
func GiveBack(ctx context.Context) {
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
