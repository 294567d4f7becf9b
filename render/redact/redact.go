// Package redact removes secret values from all output of a process. One Registry has all values, and the
// log, the page, the statuses and the command line filter their texts with it.
package redact

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/secret"
)

// Registry has the secret values of a process by owner, and their union. The cost of a change depends only on
// its size. It is safe for concurrent use. A nil Registry has no values.
type Registry struct {
	all secret.Finder

	mu   sync.Mutex
	sets map[string][2]*secret.Set // by owner: the current and the previous values
	// passing lists the temporary owners in the order in which they were set.
	passing []string
	// bound replaces mostPassing, if it is not 0.
	bound int
}

// mostPassing bounds the temporary owners. It exceeds the number of pull request plans that a page or a forge
// shows at a time.
const mostPassing = 1000

// SetPassing is like Set for an owner whose end is not reported, such as a target in a pull request. Values
// of the latest mostPassing owners stay hidden.
func (r *Registry) SetPassing(owner string, values *secret.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if values.Len() == 0 && r.sets[owner] == [2]*secret.Set{} {
		return
	}
	r.passing = append(slices.DeleteFunc(r.passing, func(o string) bool { return o == owner }), owner)
	r.set(owner, values)
	if len(r.passing) > cmp.Or(r.bound, mostPassing) {
		r.forget(r.passing[0])
		r.passing = slices.Delete(r.passing, 0, 1)
	}
}

// Set sets the current values of an owner, such as a target. Its previous values stay hidden until the next
// Set, because texts that contain them may still be shown.
func (r *Registry) Set(owner string, values *secret.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(owner, values)
}

// Only removes all owners with the given name prefix that are not in owners. The values of a removed owner
// stay hidden until the next call, like replaced values.
func (r *Registry) Only(prefix string, owners map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for owner, have := range r.sets {
		switch {
		case owners[owner] || !strings.HasPrefix(owner, prefix):
		case have[0] == nil:
			r.forget(owner)
		default:
			r.set(owner, nil)
		}
	}
}

func (r *Registry) set(owner string, values *secret.Set) {
	have := r.sets[owner]
	if have[0] == values || have[0].Equal(values) {
		return
	}
	if r.sets == nil {
		r.sets = map[string][2]*secret.Set{}
	}
	r.all.Add(values) // before the removal, so that common values are always hidden
	r.all.Remove(have[1])
	r.sets[owner] = [2]*secret.Set{values, have[0]}
}

func (r *Registry) forget(owner string) {
	for _, values := range r.sets[owner] {
		r.all.Remove(values)
	}
	delete(r.sets, owner)
}

// encoded matches base64 that is too long to be a name or a hash. AWS repeats parameters in its error
// messages, and user data is such a parameter.
var encoded = lazyregexp.New(`[A-Za-z0-9+/]{88,}={0,2}`)

// leastEncoded is the minimum length that encoded matches.
const leastEncoded = 88

// mayHoldEncoded reports whether encoded matches. Nearly no text does, and every pass checks all of its
// texts. So it reads only every 88th byte of most texts.
func mayHoldEncoded(text string) bool {
	for from := 0; from+leastEncoded <= len(text); {
		last := from + leastEncoded - 1
		for last >= from && inBase64(text[last]) {
			last--
		}
		if last < from {
			return true
		}
		from = last + 1
	}
	return false
}

func inBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/'
}

// Redact returns a text without any of the values, and without long base64.
func (r *Registry) Redact(text string) string {
	if r == nil {
		return text
	}
	if text = r.all.Redact(text); mayHoldEncoded(text) {
		text = encoded.ReplaceAllLiteralString(text, secret.Mask)
	}
	return text
}

// values is like Redact, for texts that may contain long base64 themselves, such as manifests.
func (r *Registry) values(text string) string { return r.all.Redact(text) }

// Writer returns a writer that removes the values from its input. It checks each write separately, so a value
// must not be split between writes.
func (r *Registry) Writer(w io.Writer) io.Writer {
	if r == nil {
		return w
	}
	return &writer{r: r, w: w}
}

type writer struct {
	r *Registry
	w io.Writer
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	text := string(p)
	clean := w.r.values(text)
	if clean == text {
		return w.w.Write(p)
	}
	if _, err := io.WriteString(w.w, clean); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Unwrap returns the underlying writer, for callers that check whether it is a terminal.
func (w *writer) Unwrap() io.Writer { return w.w }

// Handler returns a log handler that removes the values from records.
func (r *Registry) Handler(next slog.Handler) slog.Handler {
	if r == nil {
		return next
	}
	return handler{r: r, next: next}
}

type handler struct {
	r    *Registry
	next slog.Handler
}

// Enabled implements slog.Handler.
func (h handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, record slog.Record) error {
	out := slog.NewRecord(record.Time, record.Level, h.r.Redact(record.Message), record.PC)
	record.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return handler{r: h.r, next: h.next.WithAttrs(clean)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{r: h.r, next: h.next.WithGroup(name)}
}

// attr returns an attribute without secrets. Values of other types become text only if their text has a
// secret.
func (h handler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.r.Redact(v.String()))
	case slog.KindGroup:
		var out []any
		for _, m := range v.Group() {
			out = append(out, h.attr(m))
		}
		return slog.Group(a.Key, out...)
	case slog.KindAny:
		text := fmt.Sprint(v.Any())
		if clean := h.r.Redact(text); clean != text {
			return slog.String(a.Key, clean)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}
