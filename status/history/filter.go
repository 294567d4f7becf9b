package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
)

// Record is one addition to an archive, in the order of time.
type Record struct {
	Events []events.Event
	Runs   []Run
	// Known replaces what was announced of some targets and sources.
	Known map[string]events.Known
}

func (r *Record) Empty() bool { return len(r.Events)+len(r.Runs)+len(r.Known) == 0 }

// Filter says which events or runs are wanted. Its zero value wants the newest
// DefaultLimit of all.
type Filter struct {
	// About are targets and pools, these as namespace/name or name; any if empty.
	About []string
	// Kinds are events' kinds, any if empty. Runs have none.
	Kinds []string
	// Levels are events' levels, any if empty. Runs have none.
	Levels []kinds.Level
	// Target and Pool, where they are set, must both be those of an event; Pool is
	// namespace/name. For a run only the target matters.
	Target, Pool string
	// Since leaves out earlier entries, if it is not zero, and Until later ones.
	Since, Until time.Time
	// Skip leaves out as many of the newest that are wanted; MaxSkip at most.
	Skip int
	// Limit bounds the results; 0 stands for DefaultLimit.
	Limit int
}

// Limits of a Filter.
const (
	DefaultLimit = 100
	MaxLimit     = 2000
	MaxSkip      = 100_000
)

// Most is the limit that holds.
func (f Filter) Most() int {
	if f.Limit <= 0 {
		return DefaultLimit
	}
	return min(f.Limit, MaxLimit)
}

// WantsEvent reports whether the filter selects an event, independent of its limit.
func (f Filter) WantsEvent(e events.Event) bool {
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind) || len(f.Levels) > 0 && !slices.Contains(f.Levels, cmp.Or(e.Level, kinds.LevelOf(e.Kind))) ||
		f.Target != "" && e.Target != f.Target || f.Pool != "" && e.Pool != f.Pool || !f.within(e.Time) {
		return false
	}
	_, pool, _ := strings.Cut(e.Pool, "/")
	return len(f.About) == 0 || slices.ContainsFunc(f.About, func(name string) bool {
		return name != "" && (name == e.Target || name == e.Pool || name == pool)
	})
}

// WantsRun reports whether the filter selects a run, independent of its limit and kinds.
func (f Filter) WantsRun(r Run) bool {
	return f.within(r.Time) && (f.Target == "" || r.Target == f.Target) && (len(f.About) == 0 || slices.Contains(f.About, r.Target))
}

// within reports whether a moment is in the filter's time.
func (f Filter) within(t time.Time) bool {
	return !t.Before(f.Since) && (f.Until.IsZero() || !t.After(f.Until))
}

// Some returns what a filter wants of values, the newest first.
func Some[T any](values []T, f Filter, wanted func(T) bool) []T {
	out, skip := []T{}, f.Skip
	for _, v := range values {
		if len(out) == f.Most() {
			break
		}
		if !wanted(v) {
			continue
		}
		if skip--; skip < 0 {
			out = append(out, v)
		}
	}
	return out
}
