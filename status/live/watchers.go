package live

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"
)

// Limits of the messages to open pages.
const (
	// maxWatchers bounds the pages that weir sends changes to; one more asks by
	// itself now and then.
	maxWatchers = 128
	// maxOfCaller bounds those of one caller. The remaining ones are kept for other callers.
	maxOfCaller = 96
	// maxNamed bounds the targets that a message names; more are "all".
	maxNamed = 50
	// gap is the least time between two messages to a page: a pass over a
	// thousand targets is then a few of them.
	gap = time.Second
	// heartbeat is the time between two signs of life while nothing changes, less
	// than what proxies wait for.
	heartbeat = 15 * time.Second
	// writeWithin bounds the time that a page takes to read a message.
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
	by   string        // the caller
	wake chan struct{} // holds one: something is there
	gone chan struct{} // closed when no more is sent

	mu    sync.Mutex
	named map[string]struct{}
	all   bool
}

// add makes a watcher for a caller. It returns nil if there are too many or Watchers is closed. If
// all are in use, the caller with the most gives one up to a caller who has at least two less: so
// no caller can keep others out.
func (w *Watchers) add(by string) *Watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := map[string]int{}
	for one := range w.list {
		of[one.by]++
	}
	if w.closed || of[by] >= maxOfCaller || len(w.list) >= maxWatchers && !w.giveUp(of, of[by]+2) {
		return nil
	}
	if w.list == nil {
		w.list = map[*Watcher]struct{}{}
	}
	one := &Watcher{by: by, wake: make(chan struct{}, 1), gone: make(chan struct{}), named: map[string]struct{}{}}
	w.list[one] = struct{}{}
	return one
}

// giveUp ends a watcher of the caller who has most, if these are at least so many.
func (w *Watchers) giveUp(of map[string]int, least int) bool {
	var from *Watcher
	for one := range w.list {
		if of[one.by] >= least && (from == nil || of[one.by] > of[from.by]) {
			from = one
		}
	}
	if from == nil {
		return false
	}
	close(from.gone)
	delete(w.list, from)
	return true
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

func (w *Watcher) pending() Change {
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
	body, err := json.Marshal(w.pending())
	if err != nil {
		panic("status: a message cannot be written: " + err.Error()) // it holds texts only
	}
	return "event: change\ndata: " + string(body) + "\n\n", true
}
