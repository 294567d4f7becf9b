// Package redact keeps secret values out of everything that a process shows: one
// Registry knows them all, and the log, the page, the statuses and the command
// line pass their texts through it.
package redact

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/secret"
)

// Registry holds the secret values of a process by owner, as one union. A change costs only as much
// as it changes. It is safe for concurrent use; nil knows no values.
type Registry struct {
	all secret.Finder

	mu   sync.Mutex
	sets map[string][2]*secret.Set // by owner: the values that hold now, and those before
	// passing lists the temporary owners, the one that was set last at the end.
	passing []string
	// bound takes the place of mostPassing, if not 0.
	bound int
}

// mostPassing bounds the temporary owners that are remembered: more than the plans of pull requests
// that a page or a forge shows at a time.
const mostPassing = 1000

// SetPassing is Set for an owner whose end no caller reports, such as a target in a
// pull request. The values of the latest mostPassing of them are hidden.
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

// Set sets the current values of an owner, such as a target. Its previous values stay hidden too,
// until they are replaced again: texts that contain them may be shown later.
func (r *Registry) Set(owner string, values *secret.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(owner, values)
}

// Only lists which owners still exist among those whose names begin with a prefix. The values of a
// removed owner stay hidden as long as values that were replaced: until the next call.
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
	r.all.Add(values) // first, so that what both have is never shown
	r.all.Remove(have[1])
	r.sets[owner] = [2]*secret.Set{values, have[0]}
}

func (r *Registry) forget(owner string) {
	for _, values := range r.sets[owner] {
		r.all.Remove(values)
	}
	delete(r.sets, owner)
}

// encoded matches base64 that is too long to be a name or a hash. AWS repeats
// parameters in its refusals, and user data is such a parameter.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/]{88,}={0,2}`)

// leastEncoded is the length from which on encoded matches.
const leastEncoded = 88

// mayHoldEncoded reports whether encoded matches. Nearly no text does, and each pass checks each of
// its texts. So it reads only every 88th byte of most of them.
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

// values is Redact for texts that may contain long base64 of their own, such as manifests.
func (r *Registry) values(text string) string { return r.all.Redact(text) }

// Writer returns a writer that passes on its input without the values. Each write is checked by
// itself, so a value must be written at once.
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

// Unwrap returns the writer below, for callers that check whether it is a terminal.
func (w *writer) Unwrap() io.Writer { return w.w }

// Handler returns a log handler that passes records on without the values.
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
