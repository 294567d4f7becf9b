package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/status/terminal"
	"github.com/weir-gitops/weir/status/wording"
)

// quiet returns the logger for commands that print their result themselves. It logs only warnings and
// errors.
func (s surroundings) quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// progress shows the progress of an apply on standard error: a line for each step and each change of a
// pool's phase, and on a terminal a bar below them.
type progress struct {
	w     io.Writer
	bar   bool
	start time.Time

	mu    sync.Mutex
	phase map[string]string // by target and pool
	drawn bool
}

func newProgress(s surroundings) *progress {
	return &progress{w: s.stderr, bar: s.redraws(s.stderr), start: time.Now(), phase: map[string]string{}}
}

// line prints a line above the bar.
func (p *progress) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintln(p.w, text)
}

// wipe removes the bar from the terminal.
func (p *progress) wipe() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

// end removes the bar permanently.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

// pools shows the state of the pools.
func (p *progress) pools(applied []terminal.Applied) {
	converged, all := 0, 0
	for _, a := range applied {
		for _, s := range a.Last.Pools {
			all++
			state := terminal.PoolState(s)
			if s.Converged {
				converged++
				state = "converged, " + state
			}
			key := a.Last.Target + "\x00" + s.Namespace + "/" + s.Name
			p.mu.Lock()
			changed := p.phase[key] != state
			p.phase[key] = state
			p.mu.Unlock()
			if changed {
				p.line(fmt.Sprintf("%s %s/%s: %s", wording.Clean(a.Last.Target), wording.Clean(s.Namespace), wording.Clean(s.Name), state))
			}
		}
	}
	if p.bar && all > 0 {
		const width = 30
		full := width * converged / all
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wipe()
		fmt.Fprintf(p.w, "[%s%s] %d of %d pools converged, %s", strings.Repeat("#", full), strings.Repeat(".", width-full), converged, all, since(p.start))
		p.drawn = true
	}
}

// logger returns a logger that shows the reconciler's records about steps as progress. It also prints other
// warnings and errors, without time and level.
func (p *progress) logger() *slog.Logger { return slog.New(&stepHandler{progress: p}) }

// stepHandler is the slog.Handler of a progress.
type stepHandler struct {
	progress *progress
	attrs    []slog.Attr
}

// Enabled accepts records of level Info and above.
func (h *stepHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle prints a line for the result of a step, without its pool, duration and reason. It prints other warnings
// and errors with all attributes, and drops other records.
func (h *stepHandler) Handle(_ context.Context, r slog.Record) error {
	facts := map[string]string{}
	var order []string
	note := func(a slog.Attr) bool {
		facts[a.Key] = a.Value.String()
		order = append(order, a.Key)
		return true
	}
	for _, a := range h.attrs {
		note(a)
	}
	r.Attrs(note)
	switch {
	case r.Message == reconciler.StepDone:
		h.progress.line(fmt.Sprintf("%s: %s %s: done", wording.Clean(facts["target"]), facts["step"], wording.Clean(facts["name"])))
	case r.Message == reconciler.StepFailed:
		h.progress.line(fmt.Sprintf("%s: %s %s: failed: %s", wording.Clean(facts["target"]), facts["step"], wording.Clean(facts["name"]), wording.Clean(facts["error"])))
	case r.Message == reconciler.StepSkipped:
		h.progress.line(fmt.Sprintf("%s: %s %s: not done, a later pass tries again: %s", wording.Clean(facts["target"]), facts["step"], wording.Clean(facts["name"]), wording.Clean(facts["error"])))
	case r.Level >= slog.LevelWarn:
		var b strings.Builder
		b.WriteString(r.Message)
		for _, k := range order {
			fmt.Fprintf(&b, " %s=%q", k, facts[k])
		}
		h.progress.line(b.String())
	}
	return nil
}

// WithAttrs adds attributes to all later records.
func (h *stepHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &stepHandler{progress: h.progress, attrs: append(append([]slog.Attr(nil), h.attrs...), attrs...)}
}

// WithGroup returns h, because the reconciler uses no groups.
func (h *stepHandler) WithGroup(string) slog.Handler { return h }

// say shows a line in place of the bar, only on a terminal.
func (p *progress) say(text string) {
	if !p.bar {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprint(p.w, text)
	p.drawn = true
}

// count shows the progress of work with several parts, only on a terminal.
func (p *progress) count(done, all int, what string) {
	if !p.bar || all < 2 {
		return
	}
	const width = 30
	full := width * done / all
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintf(p.w, "[%s%s] %d of %d %s", strings.Repeat("#", full), strings.Repeat(".", width-full), done, all, what)
	p.drawn = true
}
