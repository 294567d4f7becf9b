package status

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
)

// The types in this file are what the templates read: text that is ready to be
// shown, and no decisions left.

// layout is what every page has.
type layout struct {
	Title      string
	Instance   string
	Now        moment
	HasMetrics bool
}

func (w *web) layout(title string) layout {
	return layout{Title: title, Instance: w.board.instance, Now: w.moment(w.board.now()), HasMetrics: w.o.Metrics != nil}
}

// moment is a time, exact and as a reader thinks of it.
type moment struct {
	Exact string // RFC 3339, empty for "never"
	Words string
}

func (w *web) moment(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	return moment{Exact: t.UTC().Format(time.RFC3339), Words: distance(w.board.now().Sub(t))}
}

// distance prints how long ago something was, or how far ahead it is.
func distance(d time.Duration) string {
	switch {
	case d > -time.Second && d < time.Second:
		return "now"
	case d < 0:
		return "in " + span(-d)
	default:
		return span(d) + " ago"
	}
}

func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

type indexView struct {
	layout
	Headline  string
	Mood      TargetPhase // of the headline
	Figures   []figure
	Filters   []filter
	Query     string
	State     string
	Targets   []targetView
	Matches   int
	Total     int
	PrevPage  string
	NextPage  string
	Sources   []sourceView
	Runs      []runView
	Events    []eventView
	HasFilter bool
}

type figure struct{ Name, Value, Note string }

type filter struct {
	Name, Link string
	Phase      TargetPhase
	Count      int
	Current    bool
}

type sourceView struct {
	Source
	Short   string
	Fetched moment
}

type runView struct {
	Run
	Link, Short, Took string
	When              moment
}

type eventView struct {
	Event
	Link string
	When moment
}

type targetView struct {
	Name, Link, Source string
	Place              string // account and region
	Phase              TargetPhase
	Suspended          bool
	Short, Subject     string
	Ref                string
	LastPass, NextDue  moment
	Took               string
	Outcome            string
	Error              string
	Faults             []faultView
	MoreFaults         int
	Pools              []poolView
	LaunchConfigs      []launchConfigView
	PoolsAt            moment // set where the pools are older than the last pass
	Held               int
}

type faultView struct {
	diag.Diagnostic
	At      string
	Related []string
}

type poolView struct {
	plan.PoolStatus
	Mark       string // the CSS class of the phase
	Percent    int    // of the rollout
	Since      moment
	Template   string
	Conditions []plan.Condition
}

// attention orders phases, those that need it first.
var attention = [...]TargetPhase{TargetFailing, TargetMoving, TargetSuspended, TargetWaiting, TargetConverged}

func attentionRank(p TargetPhase) int { return slices.Index(attention[:], p) }

const (
	targetsPerPage = 50
	shownRuns      = 15
	shownEvents    = 15
	shownFaults    = 8
)

func (w *web) indexView(q url.Values) indexView {
	all := w.board.Targets()
	v := indexView{layout: w.layout(""), Query: q.Get("q"), State: q.Get("state"), Total: len(all)}
	v.HasFilter = v.Query != "" || v.State != ""
	by := map[TargetPhase]int{}
	var matches []TargetState
	for _, t := range all {
		by[t.Phase]++
		if (v.State == "" || string(t.Phase) == v.State) && matchesQuery(t, v.Query) {
			matches = append(matches, t)
		}
	}
	slices.SortStableFunc(matches, func(x, y TargetState) int {
		return cmp.Compare(attentionRank(x.Phase), attentionRank(y.Phase))
	})
	v.Matches = len(matches)
	page, _ := strconv.Atoi(q.Get("page")) // a bad number is the first page
	page = min(max(page, 1), max(1, (len(matches)+targetsPerPage-1)/targetsPerPage))
	if page > 1 {
		v.PrevPage = listLink(v.State, v.Query, page-1)
	}
	if page*targetsPerPage < len(matches) {
		v.NextPage = listLink(v.State, v.Query, page+1)
	}
	for _, t := range matches[(page-1)*targetsPerPage : min(page*targetsPerPage, len(matches))] {
		v.Targets = append(v.Targets, w.targetView(t))
	}
	v.Filters = append(v.Filters, filter{Name: "All", Link: listLink("", v.Query, 1), Count: len(all), Current: v.State == ""})
	for _, p := range attention {
		if by[p] > 0 || string(p) == v.State {
			v.Filters = append(v.Filters, filter{
				Name: strings.ToUpper(string(p[:1])) + string(p[1:]), Link: listLink(string(p), v.Query, 1),
				Phase: p, Count: by[p], Current: string(p) == v.State,
			})
		}
	}
	v.headline(all, by)
	for _, s := range w.board.Sources() {
		v.Sources = append(v.Sources, sourceView{Source: s, Short: short(s.Revision), Fetched: w.moment(s.FetchedAt)})
	}
	v.Runs = w.runs("", shownRuns)
	v.Events = w.events("", shownEvents)
	return v
}

func listLink(state, query string, page int) string {
	q := url.Values{}
	if state != "" {
		q.Set("state", state)
	}
	if query != "" {
		q.Set("q", query)
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	if len(q) == 0 {
		return "/"
	}
	return "/?" + q.Encode()
}

// matchesQuery looks for the query in what a person knows a target by.
func matchesQuery(t TargetState, q string) bool {
	q = strings.ToLower(strings.TrimSpace(q))
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), q) }
	if q == "" || has(t.Name) || has(t.Account) || has(t.Region) || has(t.Source) {
		return true
	}
	return slices.ContainsFunc(t.Pools, func(p plan.PoolStatus) bool { return has(poolKey(p)) || has(p.Cluster) })
}

// headline says in one sentence how the fleet stands.
func (v *indexView) headline(all []TargetState, by map[TargetPhase]int) {
	pools, converged := 0, 0
	var ready, desired int32
	for _, t := range all {
		for _, p := range t.Pools {
			pools++
			ready += p.ReadyReplicas
			desired += p.DesiredReplicas
			if p.Converged {
				converged++
			}
		}
	}
	switch {
	case len(all) == 0:
		v.Headline, v.Mood = "No target is configured yet.", TargetWaiting
	case by[TargetFailing] > 0:
		v.Headline, v.Mood = fmt.Sprintf("%s %s attention.", count(by[TargetFailing], "target"), needs(by[TargetFailing])), TargetFailing
	case by[TargetWaiting] == len(all):
		v.Headline, v.Mood = "Waiting for the first pass.", TargetWaiting
	case by[TargetMoving] > 0 || by[TargetWaiting] > 0:
		v.Headline, v.Mood = fmt.Sprintf("%d of %s at the level that Git says.", converged, count(pools, "pool")), TargetMoving
	case by[TargetSuspended] > 0:
		v.Headline, v.Mood = fmt.Sprintf("%s suspended.", count(by[TargetSuspended], "target")), TargetSuspended
	default:
		v.Headline, v.Mood = "Every pool is at the level that Git says.", TargetConverged
	}
	v.Title = v.Headline
	v.Figures = []figure{
		{"Targets", fmt.Sprintf("%d / %d", by[TargetConverged], len(all)), "converged"},
		{"Pools", fmt.Sprintf("%d / %d", converged, pools), "converged"},
		{"Instances", fmt.Sprintf("%d / %d", ready, desired), "ready"},
	}
}

func needs(n int) string {
	if n == 1 {
		return "needs"
	}
	return "need"
}

func (w *web) targetView(t TargetState) targetView {
	v := targetView{
		Name: t.Name, Link: targetLink(t.Name), Source: t.Source, Phase: t.Phase, NextDue: w.moment(t.NextDue),
		Place: strings.Trim(t.Account+" "+t.Region, " "),
	}
	for _, p := range t.Pools {
		v.Pools = append(v.Pools, w.poolView(t, p))
	}
	v.LaunchConfigs = launchConfigViews(t.LaunchConfigs)
	r := t.Last
	if r == nil {
		return v
	}
	v.Short, v.Subject, v.Ref, v.Suspended = short(r.Revision), r.Subject, r.Ref, r.Suspended
	v.LastPass, v.Took, v.Outcome = w.moment(r.StartedAt.Add(r.Duration)), span(r.Duration), runText(r)
	if r.Err != nil {
		v.Error = r.Err.Error()
	} else if failures := r.Failures(); len(failures) > 0 {
		v.Error, _ = firstFault(&plan.Report{Outcomes: failures})
	}
	v.Faults = faultViews(r.Diagnostics)
	if n := len(v.Faults) - shownFaults; n > 0 {
		v.Faults, v.MoreFaults = v.Faults[:shownFaults], n
	}
	if len(t.Pools) > 0 && r.Plan == nil && len(r.Pools) == 0 {
		v.PoolsAt = w.moment(t.PoolsAt)
	}
	if r.Plan != nil {
		v.Held = len(r.Plan.Steps) - r.Plan.Runnable()
	}
	return v
}

func targetLink(name string) string { return "/targets/" + url.PathEscape(name) }

// faultViews shows the gravest first.
func faultViews(l diag.List) []faultView {
	var out []faultView
	for _, d := range l {
		f := faultView{Diagnostic: d, At: d.Position.String()}
		for _, rel := range d.Related {
			f.Related = append(f.Related, strings.TrimPrefix(rel.String()+": "+rel.Message, ": "))
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(x, y faultView) int { return cmp.Compare(x.Severity, y.Severity) })
	return out
}

func (w *web) poolView(t TargetState, p plan.PoolStatus) poolView {
	v := poolView{PoolStatus: p, Conditions: p.Conditions, Since: w.moment(t.ConvergedSince[poolKey(p)]), Mark: poolMark(p)}
	if p.LaunchTemplateVersion != "" {
		v.Template = "v" + p.LaunchTemplateVersion
	}
	if p.Rollout != nil {
		v.Percent = int(min(max(p.Rollout.Percentage, 0), 100))
	}
	return v
}

// poolMark colours a phase.
func poolMark(p plan.PoolStatus) string {
	switch {
	case p.Phase == plan.PhaseFailed || p.FailureReason != "":
		return string(TargetFailing)
	case p.Converged:
		return string(TargetConverged)
	case p.Phase == plan.PhasePending || p.Phase == plan.PhaseUnknown || p.Phase == "":
		return string(TargetWaiting)
	default:
		return string(TargetMoving)
	}
}

func (w *web) runs(target string, most int) []runView {
	var out []runView
	for _, r := range w.board.Runs() {
		if target != "" && r.Target != target {
			continue
		}
		if len(out) == most {
			break
		}
		out = append(out, runView{Run: r, Link: targetLink(r.Target), Short: short(r.Revision), Took: span(time.Duration(r.Duration)), When: w.moment(r.Time)})
	}
	return out
}

func (w *web) events(target string, most int) []eventView {
	var out []eventView
	for _, e := range w.board.Events() {
		if target != "" && e.Target != target {
			continue
		}
		if len(out) == most {
			break
		}
		v := eventView{Event: e, When: w.moment(e.Time)}
		if e.Target != "" {
			v.Link = targetLink(e.Target)
		}
		out = append(out, v)
	}
	return out
}
