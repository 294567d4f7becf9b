package app

import (
	"os"
	"slices"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/board"
)

// measure makes the metrics ask for the figures that no report brings.
func (a *App) measure() {
	a.metrics.Queue("history", a.board.Unwritten)
	a.metrics.Queue("statuses", func() int {
		if c := a.gen.Load().commits; c != nil {
			return c.Pending()
		}
		return 0
	})
	a.metrics.Queue("notifications", func() int {
		if n := a.gen.Load().notifier; n != nil {
			return n.Waiting()
		}
		return 0
	})
	count := func(is func(board.TargetState) bool) func() int {
		return func() int {
			return len(slices.DeleteFunc(a.board.Targets(), func(t board.TargetState) bool { return !is(t) }))
		}
	}
	a.metrics.Queue("renders", count(func(t board.TargetState) bool { return !t.Rendering.Since.IsZero() }))
	a.metrics.Queue("passes", count(func(t board.TargetState) bool { return !t.Unanswered.IsZero() }))
	a.metrics.HistorySize(func() int64 {
		info, err := os.Stat(a.state.path(state.File))
		if err != nil {
			return 0
		}
		return info.Size()
	})
}

// know tells the metrics which sources and targets there are.
func (g *generation) know(sources []board.Source, targets []board.Target) {
	var s, t []string
	for _, source := range sources {
		s = append(s, source.Name)
	}
	for _, target := range targets {
		t = append(t, target.Name)
	}
	g.app.metrics.Know(s, t)
}
