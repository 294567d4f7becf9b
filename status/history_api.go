package status

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// EventList is what /api/v1/events answers, newest first.
type EventList struct {
	Events []Event `json:"events"`
}

// PassList is what /api/v1/history answers, newest first: the passes that did
// something, failed, or changed how a target stands.
type PassList struct {
	Passes []Run `json:"passes"`
}

// QueryEvents returns the events that a filter wants, newest first, with those of
// earlier runs where there is an archive.
func (b *Board) QueryEvents(f Filter) ([]Event, error) {
	if b.recorder == nil {
		return some(b.Events(), f, f.WantsEvent), nil
	}
	if err := b.recorder.flush(); err != nil {
		return nil, err
	}
	return b.recorder.archive.Events(f)
}

// QueryRuns is QueryEvents for passes.
func (b *Board) QueryRuns(f Filter) ([]Run, error) {
	if b.recorder == nil {
		return some(b.Runs(), f, f.WantsRun), nil
	}
	if err := b.recorder.flush(); err != nil {
		return nil, err
	}
	return b.recorder.archive.Runs(f)
}

// The parameters of the two lists.
const (
	paramAbout  = "about" // repeated: targets and pools
	paramKind   = "kind"  // repeated
	paramLevel  = "level" // repeated
	paramTarget = "target"
	paramPool   = "pool"  // namespace/name
	paramSince  = "since" // RFC 3339
	paramUntil  = "until" // RFC 3339
	paramSkip   = "skip"
	paramLimit  = "limit"
)

var filterParams = []string{
	paramAbout, paramKind, paramLevel, paramTarget, paramPool, paramSince, paramUntil, paramSkip, paramLimit,
}

// levelOrder are the levels, the gravest first.
var levelOrder = []Level{LevelError, LevelWarning, LevelInfo}

// Query is a filter as the parameters of a request.
func (f Filter) Query() url.Values {
	q := url.Values{}
	for _, a := range f.About {
		q.Add(paramAbout, a)
	}
	for _, k := range f.Kinds {
		q.Add(paramKind, k)
	}
	for _, l := range f.Levels {
		q.Add(paramLevel, string(l))
	}
	for name, value := range map[string]string{paramTarget: f.Target, paramPool: f.Pool} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{paramSince: f.Since, paramUntil: f.Until} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if f.Skip > 0 {
		q.Set(paramSkip, strconv.Itoa(f.Skip))
	}
	if f.Limit > 0 {
		q.Set(paramLimit, strconv.Itoa(f.Limit))
	}
	return q
}

// ParseFilter reads what Query writes. Unknown parameters are errors, as a
// misspelt one would otherwise show everything.
func ParseFilter(q url.Values) (Filter, error) {
	f := Filter{About: q[paramAbout], Kinds: q[paramKind], Target: q.Get(paramTarget), Pool: q.Get(paramPool)}
	var err error
	for name, values := range q {
		switch name {
		case paramAbout, paramKind, paramTarget, paramPool:
		case paramLevel:
			for _, v := range values {
				if l := Level(v); !slices.Contains(levelOrder, l) {
					return Filter{}, fmt.Errorf("%s wants info, warning or error", name)
				}
				f.Levels = append(f.Levels, Level(v))
			}
		case paramSince, paramUntil:
			at, err := time.Parse(time.RFC3339, values[0])
			if err != nil {
				return Filter{}, fmt.Errorf("%s wants a time such as 2026-03-02T12:00:00Z", name)
			}
			if name == paramSince {
				f.Since = at
			} else {
				f.Until = at
			}
		case paramSkip:
			if f.Skip, err = strconv.Atoi(values[0]); err != nil || f.Skip < 0 || f.Skip > MaxSkip {
				return Filter{}, fmt.Errorf("%s wants a number from 0 to %d", name, MaxSkip)
			}
		case paramLimit:
			if f.Limit, err = strconv.Atoi(values[0]); err != nil || f.Limit < 1 || f.Limit > MaxLimit {
				return Filter{}, fmt.Errorf("%s wants a number from 1 to %d", name, MaxLimit)
			}
		default:
			return Filter{}, fmt.Errorf("unknown parameter %q: use %s", name, strings.Join(filterParams, ", "))
		}
	}
	return f, nil
}

func (w *web) apiEvents(rw http.ResponseWriter, r *http.Request) {
	listed(w, rw, r, w.board.QueryEvents, func(list []Event) any { return EventList{Events: list} })
}

func (w *web) apiHistory(rw http.ResponseWriter, r *http.Request) {
	listed(w, rw, r, w.board.QueryRuns, func(list []Run) any { return PassList{Passes: list} })
}

func listed[T any](w *web, rw http.ResponseWriter, r *http.Request, query func(Filter) ([]T, error), answer func([]T) any) {
	f, err := ParseFilter(r.URL.Query())
	if err != nil {
		plain(rw, http.StatusBadRequest, err.Error())
		return
	}
	list, err := query(f)
	if err != nil {
		w.o.Logger.Error("history cannot be read", "error", err)
		plain(rw, http.StatusInternalServerError, "the history cannot be read; weir's log says why")
		return
	}
	if list == nil {
		list = []T{}
	}
	w.sendJSON(rw, r, answer(list))
}
