package page

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/report"
)

// faultDiag is a diagnostic of a report.
type faultDiag = diag.Diagnostic

type eventView struct {
	events.Event
	Link     string // to the target
	PoolLink string
	When     moment
	Commit   commitView
	Changes  []changeView
	Facts    []linked // name and value
}

// events prepares the first events of a list for a page, up to the given number.
func (w *views) events(list []events.Event, most int) []eventView {
	var out []eventView
	links := map[string]forge.Links{}
	for _, e := range list[:min(len(list), most)] {
		if e.Level == "" {
			e.Level = kinds.LevelOf(e.Kind)
		}
		v := eventView{Event: e, When: momentOf(w.current, e.Time)}
		source := e.Source
		if e.Target != "" {
			v.Link = targetLink(e.Target)
			t, known := w.current.Targets.Find(e.Target)
			source = t.Source
			if known && e.Pool != "" {
				v.PoolLink = keyLink(e.Target, e.Pool)
			}
		}
		l, ok := links[source]
		if !ok {
			l = linksOf(w.current, source)
			links[source] = l
		}
		v.Commit, v.Changes = commitOf(l, e.Revision, ""), eventChangesOf(e, l)
		for _, key := range slices.Sorted(maps.Keys(e.Facts)) {
			v.Facts = append(v.Facts, linked{key, e.Facts[key]})
		}
		out = append(out, v)
	}
	return out
}

func eventChangesOf(e events.Event, l forge.Links) []changeView {
	var out []changeView
	for _, c := range e.Changes {
		v := changeView{Field: c.Field, From: report.Value(c.From), To: report.Value(c.To), Words: c.Words, At: positionView{Text: c.At}}
		v.At.Link = l.File(e.Revision, parsePosition(c.At))
		out = append(out, v)
	}
	return out
}

// parsePosition parses file:line:column. The name of the file may contain colons.
func parsePosition(text string) diag.Position {
	p := diag.Position{File: text}
	var numbers []int
	for range 2 {
		i := strings.LastIndexByte(p.File, ':')
		if i < 0 {
			break
		}
		n, err := strconv.Atoi(p.File[i+1:])
		if err != nil || n < 1 {
			break
		}
		p.File, numbers = p.File[:i], append(numbers, n)
	}
	switch len(numbers) {
	case 1:
		p.Line = numbers[0]
	case 2:
		p.Column, p.Line = numbers[0], numbers[1]
	}
	return p
}

// activityView lists the events of the fleet.
type activityView struct {
	layout
	Passes  bool // passes instead of events
	Tabs    []filter
	Levels  []filter
	Filter  history.Filter
	Kinds   []string
	Kind    string
	Since   string
	Sinces  []choice
	About   string
	Events  []eventView
	Runs    []runView
	Pager   pager
	Error   string
	Targets []string
}

// sinces are the time spans to choose from.
var sinces = []choice{{"", "Any time"}, {"1h", "Last hour"}, {"24h", "Last day"}, {"168h", "Last 7 days"}}

const activityPage = 100

// activityFilter parses the query of the activity page. It is more tolerant than the API: it ignores
// unknown values, and since can be a duration.
func (w *views) activityFilter(q url.Values) history.Filter {
	f := history.Filter{Target: q.Get(history.ParamTarget), Pool: q.Get(history.ParamPool), Limit: activityPage + 1}
	f.About = strings.FieldsFunc(strings.Join(q[history.ParamAbout], ","), func(r rune) bool { return r == ',' || r == ' ' })
	if kind := q.Get(history.ParamKind); kind != "" {
		f.Kinds = []string{kind}
	}
	if l := kinds.Level(q.Get(history.ParamLevel)); slices.Contains(history.Levels, l) {
		f.Levels = []kinds.Level{l}
	}
	if d, err := time.ParseDuration(q.Get(history.ParamSince)); err == nil {
		f.Since = w.current.Now().Add(-d)
	} else if t, err := time.Parse(time.RFC3339, q.Get(history.ParamSince)); err == nil {
		f.Since = t
	}
	if t, err := time.Parse(time.RFC3339Nano, q.Get(history.ParamUntil)); err == nil {
		f.Until = t
	}
	if n, err := strconv.Atoi(q.Get(history.ParamSkip)); err == nil {
		f.Skip = min(max(n, 0), history.MaxSkip)
	}
	return f
}

// activityLinks builds links to the activity page from its current query.
type activityLinks struct{ url.Values }

// with returns a link to the first page with a different value of a parameter.
func (q activityLinks) with(name, value string) string {
	next := url.Values{}
	for key, values := range q.Values {
		if key != history.ParamSkip && key != history.ParamUntil && key != name {
			next[key] = values
		}
	}
	if value != "" {
		next.Set(name, value)
	}
	if len(next) == 0 {
		return "/activity"
	}
	return "/activity?" + next.Encode()
}

// page returns a link to a later page. until freezes the list at a time.
func (q activityLinks) page(skip int, until time.Time) string {
	next := url.Values{}
	for key, values := range q.Values {
		next[key] = values
	}
	next.Set(history.ParamUntil, until.UTC().Format(time.RFC3339Nano))
	next.Set(history.ParamSkip, strconv.Itoa(skip))
	return "/activity?" + next.Encode()
}

// pager returns the pager of a page that shows activityPage of n entries.
func (q activityLinks) pager(f history.Filter, n int) (p pager) {
	switch {
	case f.Skip > activityPage:
		p.Prev = q.page(f.Skip-activityPage, f.Until)
	case f.Skip > 0:
		p.Prev = q.with("", "")
	}
	if n > activityPage {
		p.Next = q.page(f.Skip+activityPage, f.Until)
	}
	if p != (pager{}) {
		p.Words = "from " + thousands(f.Skip+1) + " to " + thousands(f.Skip+min(n, activityPage))
	}
	return p
}

// activityView prepares the page of events or passes. q is the query of the URL, with the filter and the
// page.
func (w *views) activityView(q url.Values) activityView {
	f, links := w.activityFilter(q), activityLinks{q}
	v := activityView{
		layout: w.layout("activity", "Activity"), Passes: q.Get("show") == "passes", Filter: f, Since: q.Get(history.ParamSince), Sinces: sinces,
		About: strings.Join(f.About, " "), Kinds: kinds.All(), Kind: q.Get(history.ParamKind),
	}
	v.JSON = "/api/v1/events"
	if v.Passes {
		v.JSON = "/api/v1/history"
	}
	for _, t := range w.current.Targets.All() {
		v.Targets = append(v.Targets, t.Name)
	}
	if len(v.Targets) > 100 {
		v.Targets = nil
	}
	v.Tabs = []filter{{Name: "Events", Link: links.with("show", ""), Current: !v.Passes}, {Name: "Passes", Link: links.with("show", "passes"), Current: v.Passes}}
	v.Levels = []filter{{Name: "All", Link: links.with(history.ParamLevel, ""), Current: len(f.Levels) == 0}}
	for _, l := range history.Levels {
		mark := map[kinds.Level]report.Phase{kinds.Error: report.Failing, kinds.Warning: report.Suspended, kinds.Info: report.Waiting}[l]
		v.Levels = append(v.Levels, filter{Name: strings.ToUpper(string(l[:1])) + string(l[1:]), Link: links.with(history.ParamLevel, string(l)), Phase: mark, Current: slices.Contains(f.Levels, l)})
	}
	if f.Until.IsZero() {
		// The next pages show the list as of now.
		f.Until = w.current.Now()
	}
	n := 0
	var err error
	if v.Passes {
		var list []history.Run
		list, err = w.current.Activity.QueryRuns(f)
		n, v.Runs = len(list), w.runs(list, activityPage)
	} else {
		var list []events.Event
		list, err = w.current.Activity.QueryEvents(f)
		n, v.Events = len(list), w.events(list, activityPage)
	}
	if err != nil {
		w.o.Logger.Error("history cannot be read", "error", err)
		v.Error = "weir cannot read the history. See weir's log."
	}
	v.Pager = links.pager(f, n)
	return v
}

// configView shows the active configuration.
type configView struct {
	layout
	Lines []configLine
}

// configLine is a line of YAML. Its key is a separate field, so that the page can highlight it.
type configLine struct{ Indent, Key, Value string }

func (w *views) configView() configView {
	v := configView{layout: w.layout("configuration", "Configuration")}
	for line := range strings.Lines(w.current.Daemon.Facts().Configuration) {
		line = strings.TrimRight(line, "\n")
		rest := strings.TrimLeft(line, " -")
		l := configLine{Indent: line[:len(line)-len(rest)], Value: rest}
		if key, value, ok := strings.Cut(rest, ":"); ok && !strings.ContainsAny(key, " \"'/") && (value == "" || value[0] == ' ') {
			l.Key, l.Value = key+":", value
		}
		v.Lines = append(v.Lines, l)
	}
	return v
}

type runView struct {
	history.Run
	Link, Took string
	Commit     commitView
	When       moment
}

// runs prepares the first passes of a list for a page, up to the given number.
func (w *views) runs(list []history.Run, most int) []runView {
	var out []runView
	links := map[string]forge.Links{}
	for _, r := range list[:min(len(list), most)] {
		l, ok := links[r.Target]
		if !ok {
			t, _ := w.current.Targets.Find(r.Target)
			l = linksOf(w.current, t.Source)
			links[r.Target] = l
		}
		out = append(out, runView{
			Run: r, Link: targetLink(r.Target), Commit: commitOf(l, r.Revision, r.Subject), Took: span(time.Duration(r.Duration)), When: momentOf(w.current, r.Time),
		})
	}
	return out
}
