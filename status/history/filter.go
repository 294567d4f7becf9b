package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
)

// Record is one addition to an archive. Its entries are in the order of time.
type Record struct {
	Events []events.Event
	Runs   []Run
	// Known replaces the announced states of some targets and sources.
	Known map[string]events.Known
}

func (r *Record) Empty() bool { return len(r.Events)+len(r.Runs)+len(r.Known) == 0 }

// Filter selects events or runs. Its zero value selects the newest DefaultLimit entries.
type Filter struct {
	// About lists targets and pools, a pool as namespace/name or name. An empty list selects any.
	About []string
	// Kinds lists kinds of events; an empty list selects any. Runs have no kind.
	Kinds []string
	// Levels lists levels of events; an empty list selects any. Runs have no level.
	Levels []kinds.Level
	// Target and Pool, if set, must both match an event. Pool is namespace/name. A run needs to match only
	// the target.
	Target, Pool string
	// Since leaves out earlier entries, if it is not zero, and Until later ones.
	Since, Until time.Time
	// Skip is the number of newest matches to leave out, at most MaxSkip.
	Skip int
	// Limit is the maximum number of results; 0 means DefaultLimit.
	Limit int
}

// Limits of a Filter.
const (
	DefaultLimit = 100
	MaxLimit     = 2000
	MaxSkip      = 100_000
)

// Most returns the effective limit.
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

// within reports whether t is between Since and Until.
func (f Filter) within(t time.Time) bool {
	return !t.Before(f.Since) && (f.Until.IsZero() || !t.After(f.Until))
}

// Some returns the values that a filter selects. The values must be sorted newest first.
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
