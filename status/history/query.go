package history

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
)

// EventList is the response of /api/v1/events, newest first.
type EventList struct {
	Events []events.Event `json:"events"`
}

// PassList is the response of /api/v1/history, newest first. It lists passes that executed steps, failed,
// or changed the state of a target.
type PassList struct {
	Passes []Run `json:"passes"`
}

// The query parameters of both lists.
const (
	ParamAbout  = "about" // repeated: targets and pools
	ParamKind   = "kind"  // repeated
	ParamLevel  = "level" // repeated
	ParamTarget = "target"
	ParamPool   = "pool"  // namespace/name
	ParamSince  = "since" // RFC 3339
	ParamUntil  = "until" // RFC 3339
	ParamSkip   = "skip"
	paramLimit  = "limit"
)

var filterParams = []string{
	ParamAbout, ParamKind, ParamLevel, ParamTarget, ParamPool, ParamSince, ParamUntil, ParamSkip, paramLimit,
}

// Levels lists the levels, the most serious first.
var Levels = []kinds.Level{kinds.Error, kinds.Warning, kinds.Info}

// Query returns a filter as query parameters.
func (f Filter) Query() url.Values {
	q := url.Values{}
	for _, a := range f.About {
		q.Add(ParamAbout, a)
	}
	for _, k := range f.Kinds {
		q.Add(ParamKind, k)
	}
	for _, l := range f.Levels {
		q.Add(ParamLevel, string(l))
	}
	for name, value := range map[string]string{ParamTarget: f.Target, ParamPool: f.Pool} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{ParamSince: f.Since, ParamUntil: f.Until} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if f.Skip > 0 {
		q.Set(ParamSkip, strconv.Itoa(f.Skip))
	}
	if f.Limit > 0 {
		q.Set(paramLimit, strconv.Itoa(f.Limit))
	}
	return q
}

// ParseFilter parses the result of Query. It rejects unknown parameters, because a misspelt one would
// otherwise select everything.
func ParseFilter(q url.Values) (Filter, error) {
	f := Filter{About: q[ParamAbout], Kinds: q[ParamKind], Target: q.Get(ParamTarget), Pool: q.Get(ParamPool)}
	var err error
	for name, values := range q {
		switch name {
		case ParamAbout, ParamKind, ParamTarget, ParamPool:
		case ParamLevel:
			for _, v := range values {
				if l := kinds.Level(v); !slices.Contains(Levels, l) {
					return Filter{}, fmt.Errorf("%s must be info, warning or error", name)
				}
				f.Levels = append(f.Levels, kinds.Level(v))
			}
		case ParamSince, ParamUntil:
			at, err := time.Parse(time.RFC3339, values[0])
			if err != nil {
				return Filter{}, fmt.Errorf("%s must be a time such as 2026-03-02T12:00:00Z", name)
			}
			if name == ParamSince {
				f.Since = at
			} else {
				f.Until = at
			}
		case ParamSkip:
			if f.Skip, err = strconv.Atoi(values[0]); err != nil || f.Skip < 0 || f.Skip > MaxSkip {
				return Filter{}, fmt.Errorf("%s must be a number from 0 to %d", name, MaxSkip)
			}
		case paramLimit:
			if f.Limit, err = strconv.Atoi(values[0]); err != nil || f.Limit < 1 || f.Limit > MaxLimit {
				return Filter{}, fmt.Errorf("%s must be a number from 1 to %d", name, MaxLimit)
			}
		default:
			return Filter{}, fmt.Errorf("unknown parameter %q: use %s", name, strings.Join(filterParams, ", "))
		}
	}
	return f, nil
}
