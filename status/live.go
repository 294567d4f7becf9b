package status

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Limits of what is sent to pages that are open.
const (
	// maxWatchers bounds the pages that are told of changes; one more asks by
	// itself now and then.
	maxWatchers = 128
	// maxNamed bounds the targets that a message names; more are "all".
	maxNamed = 50
	// liveGap is the least time between two messages to a page: a pass over a
	// thousand targets is then a few of them.
	liveGap = time.Second
	// liveBeat is the time between two signs of life while nothing changes, less
	// than what proxies wait for.
	liveBeat = 15 * time.Second
	// liveWrite is how long a page may take to read a message.
	liveWrite = 10 * time.Second
)

// watchers are the pages that want to know that something changed. Its methods
// never wait for a page.
type watchers struct {
	mu     sync.Mutex
	list   map[*watcher]struct{}
	closed bool
}

// watcher gathers for one page what changed since it was last told.
type watcher struct {
	bell chan struct{} // holds one: something is there
	gone chan struct{} // closed when no more is told

	mu    sync.Mutex
	named map[string]struct{}
	all   bool
}

// add makes a watcher, nil where there are too many or none is wanted any more.
func (w *watchers) add() *watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.list) >= maxWatchers {
		return nil
	}
	if w.list == nil {
		w.list = map[*watcher]struct{}{}
	}
	one := &watcher{bell: make(chan struct{}, 1), gone: make(chan struct{}), named: map[string]struct{}{}}
	w.list[one] = struct{}{}
	return one
}

func (w *watchers) remove(one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.list, one)
}

// changed says that something about a target changed, or with an empty name about
// anything.
func (w *watchers) changed(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.list {
		one.note(target)
	}
}

// close ends what all pages are told.
func (w *watchers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for one := range w.list {
		close(one.gone)
		delete(w.list, one)
	}
}

func (w *watcher) note(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all = w.all || target == "" || len(w.named) >= maxNamed; w.all {
		clear(w.named)
	} else {
		w.named[target] = struct{}{}
	}
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// liveChange is a message: which targets changed, or that anything may have.
type liveChange struct {
	All     bool     `json:"all"`
	Targets []string `json:"targets"`
}

func (w *watcher) take() liveChange {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := liveChange{All: w.all, Targets: sortedKeys(w.named)}
	w.all = false
	clear(w.named)
	select { // what rang since is in it
	case <-w.bell:
	default:
	}
	if out.Targets == nil {
		out.Targets = []string{}
	}
	return out
}

// EndStreams ends the answers that last as long as a page is open, so that a
// server can shut down without waiting for them. Pages then ask now and then.
func (b *Board) EndStreams() { b.watchers.close() }

// pace is the rhythm of a stream.
type pace struct{ gap, beat time.Duration }

// live tells an open page of changes, as server-sent events: "hello" at once, then
// "change" with a liveChange, and comments as signs of life.
func (w *web) live(rw http.ResponseWriter, r *http.Request) {
	one := w.board.watchers.add()
	if one == nil {
		rw.Header().Set("Retry-After", "30")
		plain(rw, http.StatusServiceUnavailable, "too many open pages, or weir stops: ask again later")
		return
	}
	defer w.board.watchers.remove(one)
	out := http.NewResponseController(rw)
	// The server's bounds are for answers that end. Where a writer knows no
	// deadlines there are none to lift.
	_ = out.SetReadDeadline(time.Time{})
	h := rw.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy passes each message on at once
	rw.WriteHeader(http.StatusOK)
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(liveWrite))
		_, err := rw.Write([]byte(text))
		return err == nil && out.Flush() == nil
	}
	if r.Method == http.MethodHead || !send("retry: 5000\nevent: hello\ndata: {}\n\n") {
		return
	}
	for {
		message, ok := one.next(r.Context(), w.pace.beat)
		if !ok || !send(message) || !rest(r.Context(), w.pace.gap) {
			return
		}
	}
}

// next waits for the next message.
func (w *watcher) next(ctx context.Context, beat time.Duration) (string, bool) {
	timer := time.NewTimer(beat)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return "", false
	case <-w.gone:
		return "", false
	case <-timer.C:
		return ": still here\n\n", true
	case <-w.bell:
	}
	body, err := json.Marshal(w.take())
	if err != nil {
		panic("status: a message cannot be written: " + err.Error()) // it holds texts only
	}
	return "event: change\ndata: " + string(body) + "\n\n", true
}

// rest waits, false where ctx ended before.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
