package live

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"
)

// Limits of what weir sends to open pages.
const (
	// maxWatchers bounds the pages that weir sends changes to; one more asks by
	// itself now and then.
	maxWatchers = 128
	// maxNamed bounds the targets that a message names; more are "all".
	maxNamed = 50
	// gap is the least time between two messages to a page: a pass over a
	// thousand targets is then a few of them.
	gap = time.Second
	// heartbeat is the time between two signs of life while nothing changes, less
	// than what proxies wait for.
	heartbeat = 15 * time.Second
	// writeWithin is how long a page may take to read a message.
	writeWithin = 10 * time.Second
)

// Watchers are the pages that want to know that something changed. Its methods
// never wait for a page.
type Watchers struct {
	mu     sync.Mutex
	list   map[*Watcher]struct{}
	closed bool
}

// Watcher gathers for one page what changed since it was last sent changes.
type Watcher struct {
	wake chan struct{} // holds one: something is there
	gone chan struct{} // closed when no more is sent

	mu    sync.Mutex
	named map[string]struct{}
	all   bool
}

// add makes a watcher, nil where there are too many or none is wanted any more.
func (w *Watchers) add() *Watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.list) >= maxWatchers {
		return nil
	}
	if w.list == nil {
		w.list = map[*Watcher]struct{}{}
	}
	one := &Watcher{wake: make(chan struct{}, 1), gone: make(chan struct{}), named: map[string]struct{}{}}
	w.list[one] = struct{}{}
	return one
}

func (w *Watchers) remove(one *Watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.list, one)
}

// Changed says that something about a target changed, or with an empty name about
// anything.
func (w *Watchers) Changed(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.list {
		one.note(target)
	}
}

// Close ends the changes to all pages.
func (w *Watchers) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for one := range w.list {
		close(one.gone)
		delete(w.list, one)
	}
}

func (w *Watcher) note(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all = w.all || target == "" || len(w.named) >= maxNamed; w.all {
		clear(w.named)
	} else {
		w.named[target] = struct{}{}
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Change is a message: which targets changed, or that anything may have.
type Change struct {
	All     bool     `json:"all"`
	Targets []string `json:"targets"`
}

func (w *Watcher) take() Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := Change{All: w.all, Targets: slices.Sorted(maps.Keys(w.named))}
	w.all = false
	clear(w.named)
	select { // what rang since is in it
	case <-w.wake:
	default:
	}
	if out.Targets == nil {
		out.Targets = []string{}
	}
	return out
}

// next waits for the next message.
func (w *Watcher) next(ctx context.Context, beat time.Duration) (string, bool) {
	timer := time.NewTimer(beat)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return "", false
	case <-w.gone:
		return "", false
	case <-timer.C:
		return ": still here\n\n", true
	case <-w.wake:
	}
	body, err := json.Marshal(w.take())
	if err != nil {
		panic("status: a message cannot be written: " + err.Error()) // it holds texts only
	}
	return "event: change\ndata: " + string(body) + "\n\n", true
}
