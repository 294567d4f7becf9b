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
	// maxWatchers bounds the pages that receive changes. Further pages poll instead.
	maxWatchers = 128
	// maxOfCaller bounds the pages of one caller, and reserves the difference to maxWatchers for other
	// callers.
	maxOfCaller = 96
	// maxNamed bounds the targets that a message names; more are "all".
	maxNamed = 50
	// gap is the minimum time between two messages to a page. With it, a pass over a thousand targets sends
	// only a few messages.
	gap = time.Second
	// heartbeat is the time between two comments while nothing changes, shorter than the idle timeout of
	// common proxies.
	heartbeat = 15 * time.Second
	// writeWithin is the timeout for writing a message to a page.
	writeWithin = 10 * time.Second
)

// Watchers are the open pages that receive changes. Its methods never wait for a page.
type Watchers struct {
	mu     sync.Mutex
	list   map[*Watcher]struct{}
	closed bool
}

// Watcher collects the changes for one page since its last message.
type Watcher struct {
	by   string        // the caller
	wake chan struct{} // has one element if there are changes
	gone chan struct{} // closed when no more changes are sent

	mu    sync.Mutex
	named map[string]struct{}
	all   bool
}

// add returns a new watcher for a caller, or nil if there are too many or Watchers is closed. If all are in
// use, the caller with the most loses one to a caller who has at least two fewer, so that no caller can
// lock out the others.
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

// giveUp closes a watcher of the caller with the most watchers, if these are at least the given number.
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

// Changed reports a change of a target. An empty name means that anything may have changed.
func (w *Watchers) Changed(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.list {
		one.addChange(target)
	}
}

// Close ends all streams.
func (w *Watchers) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for one := range w.list {
		close(one.gone)
		delete(w.list, one)
	}
}

func (w *Watcher) addChange(target string) {
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

// Change is a message: the targets that changed, or that anything may have changed.
type Change struct {
	All     bool     `json:"all"`
	Targets []string `json:"targets"`
}

// pending returns the changes since the last call, and forgets them.
func (w *Watcher) pending() Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := Change{All: w.all, Targets: slices.Sorted(maps.Keys(w.named))}
	w.all = false
	clear(w.named)
	select { // changes reported since then are in this message
	case <-w.wake:
	default:
	}
	if out.Targets == nil {
		out.Targets = []string{}
	}
	return out
}

// next waits for the next message: a change, or a heartbeat after beat. The second result is false if ctx
// has ended or the page must be closed.
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
		panic("status: a message cannot be written: " + err.Error()) // it contains only strings
	}
	return "event: change\ndata: " + string(body) + "\n\n", true
}
