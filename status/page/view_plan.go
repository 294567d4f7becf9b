package page

import (
	"net/url"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

type stepView struct {
	step.Step
	Status  step.OutcomeStatus // empty for a planned step
	Mark    string
	Words   string
	Took    string
	Error   string
	Changes []changeView
	Link    string // to the pool
	Users   []linked
	Rolls   string // describes how instances are replaced
	Ends    string // describes how many instances are replaced or terminated
}

// linked is a name with its link.
type linked struct{ Name, Link string }

type changeView struct {
	Field, From, To, Words string
	At                     positionView
}

// stepViews returns the steps of a target's plan, based on the commit sha.
func stepViews(steps []step.Step, l forge.Links, target, sha string) []stepView {
	out := make([]stepView, 0, len(steps))
	for _, s := range steps {
		out = append(out, stepViewOf(s, l, target, sha))
	}
	return out
}

// stepViewOf prepares a step of a plan. sha is the commit to which the links of its fields lead.
func stepViewOf(s step.Step, l forge.Links, target, sha string) stepView {
	v := stepView{Step: s, Mark: string(report.Waiting), Words: string(s.Verb) + " " + string(s.Resource), Ends: wording.Ends(s)}
	if s.Held != "" {
		v.Mark = string(report.Suspended)
	}
	if s.Pool != "" {
		v.Link = keyLink(target, s.Pool)
	}
	for _, p := range s.Pools {
		v.Users = append(v.Users, linked{p, keyLink(target, p)})
	}
	for _, c := range s.Changes {
		out := changeView{Field: c.Field, From: report.Value(c.From), To: report.Value(c.To), Words: c.Words}
		if c.Origin != nil {
			out.At = positionOf(l, sha, *c.Origin)
		}
		v.Changes = append(v.Changes, out)
	}
	return v
}

// outcomeViews prepares the steps that a pass executed, with their results. sha is the commit to which the
// links of fields lead.
func outcomeViews(outcomes []step.Outcome, l forge.Links, target, sha string) []stepView {
	out := make([]stepView, 0, len(outcomes))
	for _, o := range outcomes {
		s := stepViewOf(o.Step, l, target, sha)
		s.Status, s.Mark = o.Status, outcomeMark(o.Status)
		if o.Duration > 0 {
			s.Took = span(o.Duration)
		}
		if o.Err != nil {
			s.Error = o.Err.Error()
		}
		if o.Lift != "" {
			s.Error += "; " + o.Lift
		}
		out = append(out, s)
	}
	return out
}

func outcomeMark(s step.OutcomeStatus) string {
	switch s {
	case step.Done:
		return string(report.Converged)
	case step.Failed:
		return string(report.Failing)
	case step.Held:
		return string(report.Suspended)
	case step.Skipped:
	}
	return string(report.Waiting)
}

// summaryFigures returns the non-zero numbers of a plan's summary.
func summaryFigures(s plan.Summary) []figure {
	var out []figure
	for _, f := range []struct {
		name string
		n    int
	}{
		{"create", s.Create}, {"update", s.Update}, {"roll", s.Rollout}, {"replace", s.Replace}, {"delete", s.Delete}, {"unchanged", s.Unchanged},
	} {
		if f.n > 0 {
			out = append(out, figure{Name: f.name, Value: thousands(f.n)})
		}
	}
	return out
}

// planPage is the whole plan of a target.
type planPage struct {
	layout
	Target, Self string
	Commit       commitView
	Phase        report.Phase
	Made         moment
	Digest       string
	NoDigest     string // the reason why the digest is missing
	Figures      []figure
	Faults       []faultView
	Steps        []stepView
	Held         int
	HeldTo       *heldView // set if the followed commit cannot be rendered
	Pager        pager
	Why          string // the reason why the plan is missing
	waits        waits
}

const stepsPerPage = 100

// planPage prepares the page of a target's plan. q is the query of the URL, with the page number.
func (w *views) planPage(t current.TargetState, q url.Values) planPage {
	v := planPage{layout: w.layout("fleet", "Plan of "+t.Name), Target: t.Name, Self: targetLink(t.Name), Phase: t.Phase}
	v.About, v.waits = t.Name, waitsOf(t)
	r := t.Last
	if r == nil {
		v.Why = "This target has had no pass yet."
		return v
	}
	l := linksOf(w.current, t.Source)
	v.HeldTo = heldViewOf(w.current, &t)
	v.Commit, v.Made, v.Faults = commitOf(l, r.Revision, r.Subject), momentOf(w.current, r.StartedAt), faultViews(diagnosticsOf(r), l, r.Revision)
	if r.Plan == nil {
		v.Why = "The last pass could not make a plan. See the diagnostics above."
		if r.Err != nil {
			v.Why = "The last pass could not make a plan: " + r.Err.Error()
		}
		return v
	}
	if v.Digest = r.Plan.Digest(); v.Digest == "" {
		v.NoDigest = "The plan was made without secrets, and cannot be approved."
	}
	v.Figures, v.Held = summaryFigures(r.Plan.Summary), len(r.Plan.Steps)-r.Plan.Runnable()
	page, _ := strconv.Atoi(q.Get("page")) // an invalid number means the first page
	from, to, at := window(page, stepsPerPage, len(r.Plan.Steps))
	v.Steps = stepViews(r.Plan.Steps[from:to], l, t.Name, r.PlannedAt())
	v.Pager = pagerOf(from, to, len(r.Plan.Steps), at, "step", func(page int) string {
		return v.Self + "/plan?page=" + strconv.Itoa(page)
	})
	return v
}
