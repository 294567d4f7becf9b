// Package headroom says how much garbage may gather before Go collects it. Go collects
// when there is as much garbage as there are live objects, which for a small heap that
// makes much is all the time.
package headroom

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
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
