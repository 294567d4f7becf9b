package page

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
)

type indexView struct {
	layout
	Headline  string
	Mood      report.Phase // of the headline
	Moves     string       // describes the current changes
	Figures   []figure
	States    []filter // targets by phase
	Traits    []filter // pools by trait
	Find      findForm
	Targets   []targetCard
	Total     int
	Matches   string
	Pager     pager
	AllPools  string // the URL of the same pools as a flat list
	Sources   []sourceView
	Runs      []runView
	Events    []eventView
	HasFilter bool
	Rolls     []rolloutCard // in progress or stopped
}

type figure struct{ Name, Value, Note string }

// findForm contains the fields of the form that filters pools.
type findForm struct {
	Action string
	Filter poolFilter
	Phases []choice
	Kinds  []choice
	Sorts  []choice
	// Targets lists the targets to choose from. It is empty if the page is about one target.
	Targets []string
	Clear   string
}

type sourceView struct {
	current.Source
	Commit  commitView
	Changed moment
	Web     string
}

// targetCard is a target on the overview, with its first pools.
type targetCard struct {
	targetView
	Rows   []poolRow
	Fleet  bool // rows show the target
	More   int
	Link   string // to all of the card's pools
	Counts string
	Mosaic mosaic
}

const (
	targetsPerPage = 40
	// cardPools is the number of pools on a target's card.
	cardPools      = 6
	cardPoolsFound = 25 // if a filter selects only some pools
	indexPools     = 150
	shownRuns      = 15
	shownEvents    = 15
	indexRecent    = 8
	shownFaults    = 8
)

// group is a target with its pools that match the filter.
type group struct {
	target *current.TargetState
	pools  []poolItem
	counts map[string]int
}

// indexView prepares the start page. q is the query of the URL, with the filter and the page.
func (w *views) indexView(q url.Values) indexView {
	all := w.current.Targets.All()
	f := readPoolFilter(q)
	v := indexView{layout: w.layout("fleet", ""), Total: len(all), HasFilter: !f.empty()}
	v.JSON = "/api/v1/targets"
	items := poolItems(all)
	by := map[report.Phase]int{}
	for i := range all {
		by[all[i].Phase]++
	}
	counts := countFleet(items, all, by)
	v.Headline, v.Mood = counts.headline()
	v.Title, v.Moves, v.Figures = v.Headline, counts.moves(v.Headline), counts.figures()
	groups := groupsOf(all, items, f)
	from, to, at := window(f.Page, targetsPerPage, len(groups))
	v.Pager = pagerOf(from, to, len(groups), at, "target", func(page int) string { return f.at(page).link("/") })
	left := indexPools
	for _, g := range groups[from:to] {
		v.Targets = append(v.Targets, w.targetCard(g, f, &left))
	}
	if v.HasFilter {
		n := 0
		for _, g := range groups {
			n += len(g.pools)
		}
		v.Matches = plural(len(groups), "target") + " and " + plural(n, "pool") + " found"
	}
	v.States = stateFilters(f, by, len(all))
	v.Traits = traitFilters(f.at(1), "/", items)
	v.Find = findFormOf("/", f, items, all)
	v.AllPools = f.at(1).link("/pools")
	for _, s := range w.current.Sources.All() {
		l := s.Links()
		v.Sources = append(v.Sources, sourceView{Source: s, Commit: commitOf(l, s.Revision, s.Subject), Changed: momentOf(w.current, s.ChangedAt), Web: l.Repository()})
	}
	v.Runs = w.runs(w.current.Activity.Runs(), indexRecent)
	v.Events = w.events(w.current.Activity.Events(), indexRecent)
	v.Rolls = w.busyRollouts()
	return v
}

// groupsOf returns the targets that match the filter, the ones that need attention first.
func groupsOf(all []current.TargetState, items []poolItem, f poolFilter) []group {
	var out []group
	next := 0
	for i := range all {
		t := &all[i]
		mine := items[next : next+len(t.Pools)]
		next += len(t.Pools)
		if !f.wantsTarget(t) {
			continue
		}
		g := group{target: t, counts: map[string]int{}}
		for _, p := range mine {
			if f.wants(p) {
				g.pools = append(g.pools, p)
				g.counts[string(p.mark)]++
			}
		}
		if len(g.pools) == 0 && (f.wantsPools() || f.Text != "" && !f.findsTarget(t)) {
			continue
		}
		out = append(out, g)
	}
	slices.SortStableFunc(out, func(x, y group) int {
		switch f.Sort {
		case "name", "target":
			return 0 // keep the order
		case "size":
			return cmp.Compare(len(y.pools), len(x.pools))
		case "missing":
			return cmp.Compare(y.missing(), x.missing())
		}
		return cmp.Compare(attentionRank(x.target.Phase), attentionRank(y.target.Phase))
	})
	return out
}

func (g group) missing() (n int32) {
	for _, p := range g.pools {
		n += missing(p.pool)
	}
	return n
}

// targetCard prepares a target with its pools for the start page. left is the number of pools that the page
// may still show; targetCard subtracts the pools that it shows.
func (w *views) targetCard(g group, f poolFilter, left *int) targetCard {
	t := g.target
	c := targetCard{targetView: w.targetView(*t), Mosaic: mosaicOf(g.counts)}
	f.order(g.pools)
	most := cardPools
	if f.wantsPools() || f.Text != "" {
		most = cardPoolsFound
	}
	n := min(len(g.pools), most, *left)
	if len(g.pools)-n == 1 && *left > n {
		n++ // a line about one more pool would take as much room
	}
	*left -= n
	for _, p := range g.pools[:n] {
		c.Rows = append(c.Rows, w.poolRow(p))
	}
	c.More = len(g.pools) - n
	f.Target, f.State, f.Page = t.Name, "", 1
	c.Link = f.link("/pools")
	return c
}

// stateFilters returns the filters of targets by phase.
func stateFilters(f poolFilter, by map[report.Phase]int, total int) []filter {
	pick := func(state string) string {
		g := f.at(1)
		g.State = state
		return g.link("/")
	}
	out := []filter{{Name: "All", Link: pick(""), Count: total, Current: f.State == ""}}
	for _, p := range attention {
		if by[p] > 0 || string(p) == f.State {
			out = append(out, filter{
				Name: strings.ToUpper(string(p[:1])) + string(p[1:]), Link: pick(string(p)), Phase: p, Count: by[p], Current: string(p) == f.State,
			})
		}
	}
	return out
}

// traitFilters returns the filters of pools by trait. The same link also removes the filter.
func traitFilters(f poolFilter, path string, items []poolItem) []filter {
	var out []filter
	for _, t := range poolTraits {
		n := 0
		for _, i := range items {
			if i.is(t.Value) {
				n++
			}
		}
		if n == 0 && f.Only != t.Value {
			continue
		}
		g := f
		if g.Only = t.Value; f.Only == t.Value {
			g.Only = ""
		}
		mark := map[string]report.Phase{"problem": report.Failing, "moving": report.Moving, "held": report.Suspended, "drift": report.Suspended}[t.Value]
		out = append(out, filter{Name: t.Name, Link: g.link(path), Phase: mark, Count: n, Current: f.Only == t.Value})
	}
	return out
}

// findFormOf prepares the search form of a page at path, with the phases and kinds that its pools have.
// With only one target, or with too many, it offers no choice of targets.
func findFormOf(path string, f poolFilter, items []poolItem, targets []current.TargetState) findForm {
	phases, kinds := map[string]bool{}, map[string]bool{}
	for _, i := range items {
		phases[string(i.pool.Phase)] = true
		kinds[string(i.pool.Kind)] = true
	}
	form := findForm{Action: path, Filter: f, Sorts: poolSorts, Clear: path}
	for _, p := range slices.Sorted(maps.Keys(phases)) {
		form.Phases = append(form.Phases, choice{p, p})
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		form.Kinds = append(form.Kinds, choice{k, k})
	}
	// A longer list is not useful; the search finds targets, too.
	if len(targets) > 1 && len(targets) <= 100 {
		for i := range targets {
			form.Targets = append(form.Targets, targets[i].Name)
		}
	}
	return form
}

// targetView is the data of a target that both its card and its page show.
type targetView struct {
	Name, Self, Source string
	AccountRegion      string
	Phase              report.Phase
	Suspended          bool
	Commit             commitView
	Ref                string
	LastPass, NextDue  moment
	Took               string
	Outcome            string
	Error              string
	Faults             []faultView
	MoreFaults         int
	Pools              int
	PoolsAt            moment // set if the pools are older than the last pass
	Held               int
	Holds              []holdView
	HeldTo             *heldView // set if the followed commit cannot be rendered
	Read               bool      // at least one pass has read it
	Owner              *ownerView
}

// targetView prepares the summary of a target for the start page and the target's own page.
func (w *views) targetView(t current.TargetState) targetView {
	v := targetView{
		Name: t.Name, Self: targetLink(t.Name), Source: t.Source, Phase: t.Phase, NextDue: momentOf(w.current, t.NextDue),
		AccountRegion: strings.Trim(t.Account+" "+t.Region, " "), Pools: len(t.Pools), Holds: slowViews(&t), Owner: w.ownerOf(t.Name),
	}
	r := t.Last
	if r == nil {
		return v
	}
	l := linksOf(w.current, t.Source)
	v.HeldTo = heldViewOf(w.current, &t)
	v.Read, v.Commit, v.Ref, v.Suspended = true, commitOf(l, r.Revision, r.Subject), r.Ref, r.Suspended
	v.LastPass, v.Took, v.Outcome = momentOf(w.current, r.StartedAt.Add(r.Duration)), span(r.Duration), report.RunText(r)
	if r.Err != nil {
		v.Error = r.Err.Error()
	} else if failures := r.Failures(); len(failures) > 0 {
		v.Error, _ = report.FirstFault(&plan.Report{Outcomes: failures})
		if lift := failures[0].Lift; lift != "" {
			v.Error += "; " + lift
		}
	}
	// Diagnostics that are only information are on the target's own page.
	v.Faults = faultViews(slices.DeleteFunc(diagnosticsOf(r), func(d faultDiag) bool { return d.Severity == diag.Info }), l, r.Revision)
	if n := len(v.Faults) - shownFaults; n > 0 {
		v.Faults, v.MoreFaults = v.Faults[:shownFaults], n
	}
	if t.Stale() {
		v.PoolsAt = momentOf(w.current, t.PoolsAt)
	}
	if r.Plan != nil {
		v.Held, v.Holds = len(r.Plan.Steps)-r.Plan.Runnable(), append(v.Holds, holdViews(r, t.Name)...)
	}
	return v
}
