package page

import (
	"net/url"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
)

// missingView is a page about something that does not exist.
type missingView struct {
	layout
	Headline, Hint string
	Back           linked
}

// targetPage contains all data about one target.
type targetPage struct {
	layout
	targetView
	Path     string
	Rollouts []rolloutView
	Drift    []driftView
	Traits   []filter
	Find     findForm
	Rows     []poolRow
	Pager    pager
	// Filtered says that the filter excludes some pools.
	Filtered bool
	Fleet    bool // rows show the target
	Configs  []launchConfigView
	Plan     []stepView // steps of the last pass, if any
	MorePlan int
	PlanLink string
	Figures  []figure
	Digest   string
	// Applied contains the outcomes of the last pass that executed a step.
	Applied       []stepView
	MoreApplied   int
	AppliedAt     moment
	AppliedCommit commitView
	Runs          []runView
	Events        []eventView
	Activity      string
	Waiting       []holdView // without the waits that the actions show
	waits         waits
}

// driftView is a difference in AWS that no change in Git explains.
type driftView struct {
	Pool, Link  string
	Text, Cause string
	At          moment
}

// targetSteps is the maximum number of steps on a target's page; the plan's page shows all.
const targetSteps = 25

// targetPage prepares the page of a target. q is the query of the URL, with the filter and the page of its
// pools.
func (w *views) targetPage(t current.TargetState, q url.Values) targetPage {
	v := targetPage{
		layout: w.layout("fleet", t.Name), targetView: w.targetView(t), Path: t.Path, PlanLink: targetLink(t.Name) + "/plan",
		Configs: launchConfigViews(t.LaunchConfigs), Activity: "/activity?" + url.Values{"target": {t.Name}}.Encode(),
	}
	v.About, v.JSON, v.waits = t.Name, "/api/v1/targets", waitsOf(t)
	l := linksOf(w.current, t.Source)
	v.Waiting = slices.DeleteFunc(slices.Clone(v.Holds), func(h holdView) bool { return h.Plan != "" && v.waits.digest != "" || h.Words == v.waits.window })
	if r := t.Last; r != nil {
		v.Faults, v.MoreFaults = faultViews(diagnosticsOf(r), l, r.Revision), 0 // this page shows all of them
	}
	for _, p := range t.Pools {
		if p.Rollout != nil {
			v.Rollouts = append(v.Rollouts, rolloutViewOf(w.current, p, *p.Rollout))
		}
	}
	f := readPoolFilter(q)
	f.Target, f.State = "", ""
	items := poolItems([]current.TargetState{t})
	v.Rows, v.Pager, _ = w.poolRows(items, f, v.Self)
	v.Traits, v.Find, v.Filtered = traitFilters(f.at(1), v.Self, items), findFormOf(v.Self, f, items, nil), !f.empty()
	if r := t.Last; r != nil && r.Plan != nil {
		v.Digest, v.Figures = r.Plan.Digest(), summaryFigures(r.Plan.Summary)
		v.Drift = driftViews(w.current, r, t.Name)
		if t.Applied == nil || !t.Applied.StartedAt.Equal(r.StartedAt) { // otherwise the outcomes show the same steps
			n := min(len(r.Plan.Steps), targetSteps)
			v.Plan, v.MorePlan = stepViews(r.Plan.Steps[:n], l, t.Name, r.PlannedAt()), len(r.Plan.Steps)-n
		}
	}
	if a := t.Applied; a != nil {
		v.AppliedAt, v.AppliedCommit = momentOf(w.current, a.StartedAt), commitOf(l, a.Revision, a.Subject)
		v.Applied, v.MoreApplied = outcomeViews(a.Outcomes, l, t.Name, a.PlannedAt()), t.MoreApplied
	}
	v.Runs = w.runs(ofTarget(w.current.Activity.Runs(), t.Name, func(r history.Run) string { return r.Target }), shownRuns)
	v.Events = w.events(ofTarget(w.current.Activity.Events(), t.Name, func(e events.Event) string { return e.Target }), shownEvents)
	return v
}

// driftViews returns the steps of a plan that correct changes made outside of Git, one line for each pool.
func driftViews(b *current.State, r *plan.Report, target string) []driftView {
	var out []driftView
	for _, s := range r.Plan.Steps {
		if s.Drift == nil {
			continue
		}
		pool := events.OwnerPool(s)
		text := string(s.Verb) + " " + strings.ReplaceAll(string(s.Resource), "-", " ") + " " + s.Name + ": " + s.Reason
		if i := slices.IndexFunc(out, func(d driftView) bool { return d.Pool == pool }); i >= 0 {
			out[i].Text += "; " + text
			continue
		}
		out = append(out, driftView{Pool: pool, Link: keyLink(target, pool), Text: text, Cause: s.Drift.Cause, At: momentOf(b, s.Drift.At)})
	}
	return out
}

func ofTarget[T any](list []T, target string, of func(T) string) []T {
	return slices.DeleteFunc(list, func(v T) bool { return of(v) != target })
}
