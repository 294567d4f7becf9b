package memory

import (
	"maps"
	"sync"
	"time"
)

// goneFor is the time for which weir does not read a missing cluster again if only templates name it.
const goneFor = time.Minute

// GoneClusters remembers missing clusters, and the time of the read.
type GoneClusters struct {
	mu    sync.Mutex
	found map[string]time.Time
}

// Add notes that a cluster does not exist.
func (g *GoneClusters) Add(name string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.found[name] = now
}

// Recent returns the given names that were recently found missing. It forgets all others.
func (g *GoneClusters) Recent(names map[string]bool, now time.Time) map[string]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.found, func(name string, at time.Time) bool { return !names[name] || now.Sub(at) >= goneFor })
	out := make(map[string]bool, len(g.found))
	for name := range g.found {
		out[name] = true
	}
	return out
}
