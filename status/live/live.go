package live

import (
	"context"
	"net/http"
	"time"
)

// pace is the minimum gap between messages and the time between heartbeats.
type pace struct{ gap, beat time.Duration }

type byKey struct{}

// By returns a context for a request of a caller. Streams are limited per caller.
func By(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, byKey{}, caller)
}

func byOf(ctx context.Context) string {
	caller, _ := ctx.Value(byKey{}).(string)
	return caller
}

// ServeHTTP sends changes to an open page as server-sent events: "hello" at once, then "change" with a
// Change, and comments as heartbeats.
func (w *Watchers) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.serve(rw, r, pace{gap, heartbeat})
}

// serve is ServeHTTP with a pace, which tests shorten.
func (w *Watchers) serve(rw http.ResponseWriter, r *http.Request, p pace) {
	one := w.add(byOf(r.Context()))
	if one == nil {
		rw.Header().Set("Retry-After", "30")
		http.Error(rw, "too many open pages, or weir is stopping: try again later", http.StatusServiceUnavailable)
		return
	}
	defer w.remove(one)
	out := http.NewResponseController(rw)
	// The server's deadlines are meant for responses that end. A writer without support for deadlines has
	// none to remove.
	_ = out.SetReadDeadline(time.Time{})
	h := rw.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy passes each message on at once
	rw.WriteHeader(http.StatusOK)
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(writeWithin))
		_, err := rw.Write([]byte(text))
		return err == nil && out.Flush() == nil
	}
	if r.Method == http.MethodHead || !send("retry: 5000\nevent: hello\ndata: {}\n\n") {
		return
	}
	for {
		message, ok := one.next(r.Context(), p.beat)
		if !ok || !send(message) || !rest(r.Context(), p.gap) {
			return
		}
	}
}

// rest waits for d, and returns false if ctx ends first.
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
