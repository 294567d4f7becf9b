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

// missingView is a page about something that is not there.
type missingView struct {
	layout
	Headline, Hint string
	Back           linked
}

// targetPage is all that is known of one target.
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
	// Filtered says that some pools are not wanted.
	Filtered bool
	Fleet    bool // rows show the target
	Configs  []launchConfigView
	Plan     []stepView // of the last pass, where it has steps
	MorePlan int
	PlanLink string
	Figures  []figure
	Digest   string
	// Applied are the outcomes of the last pass that ran something.
	Applied       []stepView
	MoreApplied   int
	AppliedAt     moment
	AppliedCommit commitView
	Runs          []runView
	Events        []eventView
	Activity      string
	Waiting       []holdView // without what the actions show
	waits         waits
}

// driftView is a difference in AWS that no change in Git explains.
type driftView struct {
	Pool, Link  string
	Text, Cause string
	At          moment
}

// targetSteps are the steps on a target's page; the plan's page has all.
const targetSteps = 25

func (w *views) targetPage(t current.TargetState, q url.Values) targetPage {
	v := targetPage{
		layout: w.layout("fleet", t.Name), targetView: w.targetView(t), Path: t.Path, PlanLink: targetLink(t.Name) + "/plan",
		Configs: launchConfigViews(t.LaunchConfigs), Activity: "/activity?" + url.Values{"target": {t.Name}}.Encode(),
	}
	v.About, v.JSON, v.waits = t.Name, "/api/v1/targets", waitsOf(t)
	l := linksOf(w.current, t.Source)
	v.Waiting = slices.DeleteFunc(slices.Clone(v.Holds), func(h holdView) bool { return h.Plan != "" && v.waits.digest != "" || h.Words == v.waits.window })
	if r := t.Last; r != nil {
		v.Faults, v.MoreFaults = faultViews(diagnosticsOf(r), l, r.Revision), 0 // here they are all shown
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
		if t.Applied == nil || !t.Applied.StartedAt.Equal(r.StartedAt) { // else the outcomes show the same steps
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

// driftViews are the steps of a plan that put right what changed outside Git, one line
// for each pool.
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
