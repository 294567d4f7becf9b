package page

import (
	"html/template"
	"net/http"
	"net/url"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/forecast"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// pullRow is a pull request in the list.
type pullRow struct {
	Source, Number, Name, Author string
	Link, Web                    string
	State                        report.PullState
	Mark                         string
	Lead, More                   string
	Planned                      moment
	Stale                        string
}

type pullsView struct {
	layout
	Open, Ended []pullRow
	Any         bool
}

// pullPage is the plan of a pull request.
type pullPage struct {
	layout
	pullRow
	Reason       string
	Head, Base   commitView
	Merge        commitView
	BaseRef      string
	Digest       string
	Approved     string
	AsReviewed   bool
	Differs      []string
	Uncompared   []string
	Gone         []linked
	Unaffected   int
	Unkept       bool
	Targets      []pullTarget
	WantApproval bool // it is held until it is approved
	// Picture draws the forecast, and Foreseen describes it in more detail. If it is missing, Simulate is
	// the command that computes it, if there is one.
	Picture  template.HTML
	Foreseen foreseen
	Simulate string
	// Unforeseen is the reason why the simulation failed.
	Unforeseen string
}

// foreseen describes the forecast of a pull request.
type foreseen struct {
	Milestones, Waits, Doubts, Assumed []string
	More                               int
}

// pullTarget describes the effect of a pull request on a target.
type pullTarget struct {
	Name, Link, AccountRegion string
	Anchor                    string
	Figures                   []figure
	Digest                    string
	Faults                    []faultView
	Error                     string
	Steps                     []stepView
	More                      int
	Held                      int
	Problems                  string
	Words                     string
}

// pullSteps is the maximum number of steps on a pull request's page. It keeps the page usable for pull
// requests that change every pool of a large fleet.
const pullSteps = 300

func pullLink(source string, number int64) string {
	return "/pulls/" + url.PathEscape(source) + "/" + strconv.FormatInt(number, 10)
}

// pullMarks maps states of pull requests to the marks for targets.
var pullMarks = map[report.PullState]report.Phase{
	report.PullPlanned: report.Moving, report.PullUnaffected: report.Converged, report.PullConflict: report.Failing, report.PullFailing: report.Failing,
	report.PullWaiting: report.Waiting, report.PullMerged: report.Converged, report.PullClosed: report.Waiting,
}

func pullRowOf(b *current.State, p report.Pull) pullRow {
	r := pullRow{
		Source: p.Source, Number: strconv.FormatInt(p.Number, 10), Name: p.Title, Author: p.Author, Link: pullLink(p.Source, p.Number),
		Web: report.SafeURL(p.WebURL), State: p.State, Mark: string(pullMarks[p.State]), Planned: momentOf(b, p.PlannedAt), Stale: p.Stale,
	}
	if r.Mark == "" {
		r.Mark = string(report.Waiting)
	}
	r.Lead, r.More = p.Headline()
	return r
}

func (w *views) pullsView() pullsView {
	v := pullsView{layout: w.layout("pulls", "Pull requests")}
	v.JSON = "/api/v1/pulls"
	for _, p := range w.current.Pulls.All() {
		v.Any = true
		if r := pullRowOf(w.current, p); p.Ended() {
			v.Ended = append(v.Ended, r)
		} else {
			v.Open = append(v.Open, r)
		}
	}
	return v
}

// pullPage prepares the page of a pull request. Its targets together show at most pullSteps steps.
func (w *views) pullPage(p report.Pull) pullPage {
	v := pullPage{
		layout: w.layout("pulls", "#"+strconv.FormatInt(p.Number, 10)+" "+p.Title), pullRow: pullRowOf(w.current, p), Reason: p.Reason, BaseRef: p.BaseRef, Digest: p.Digest,
		Approved: p.Approved, AsReviewed: p.AsReviewed, Differs: p.Differs, Uncompared: p.Uncompared, Unaffected: p.Unaffected, Unkept: p.Unkept,
	}
	v.JSON = "/api/v1/pulls"
	l := linksOf(w.current, p.Source)
	v.Head, v.Base, v.Merge = commitOf(l, p.HeadSHA, ""), commitOf(l, p.BaseSHA, ""), commitOf(l, p.MergeSHA, "")
	v.WantApproval = p.AsReviewed && p.Approved == "" && p.State == report.PullPlanned
	for _, name := range p.Gone {
		one := linked{Name: name}
		if _, ok := w.current.Targets.Find(name); ok {
			one.Link = targetLink(name)
		}
		v.Gone = append(v.Gone, one)
	}
	if f := p.Forecast; f != nil && f.Timeline != nil {
		v.Picture = template.HTML(forecast.SVG(f.Timeline)) //nolint:gosec // it escapes each text
		v.Foreseen.Milestones, v.Foreseen.More = forecast.Milestones(f.Timeline)
		v.Foreseen.Waits, v.Foreseen.Doubts, v.Foreseen.Assumed = forecast.Waits(f.Timeline), f.Timeline.Doubts, forecast.Assumed(f.Timeline)
	} else if f != nil {
		v.Simulate, v.Unforeseen = f.Command, f.Failed
	}
	left := pullSteps
	for i, r := range p.Reports {
		v.Targets = append(v.Targets, w.pullTarget(p, r, l, "t"+strconv.Itoa(i+1), &left))
	}
	return v
}

// pullTarget prepares a target of a pull request's page. left is the number of steps that the page may
// still show; pullTarget subtracts the steps that it shows.
func (w *views) pullTarget(p report.Pull, r *plan.Report, l forge.Links, anchor string, left *int) pullTarget {
	t := pullTarget{
		Name: r.Target, Anchor: anchor, AccountRegion: report.AccountRegion(r), Digest: p.Digests[r.Target], Faults: faultViews(r.Diagnostics, l, p.HeadSHA),
		Problems: report.Problems(r), Words: report.SummaryWords(r),
	}
	if _, ok := w.current.Targets.Find(r.Target); ok {
		t.Link = targetLink(r.Target)
	}
	if r.Err != nil {
		t.Error = r.Err.Error()
	}
	if r.Plan == nil {
		return t
	}
	if len(r.Diagnostics) == 0 {
		t.Faults = faultViews(r.Plan.Diagnostics, l, p.HeadSHA)
	}
	t.Figures, t.Held = summaryFigures(r.Plan.Summary), len(r.Plan.Steps)-r.Plan.Runnable()
	n := min(len(r.Plan.Steps), *left)
	*left -= n
	t.Steps, t.More = stepViews(r.Plan.Steps[:n], l, r.Target, p.HeadSHA), len(r.Plan.Steps)-n
	for i, s := range r.Plan.Steps[:n] {
		if s.Disruptive && wording.Replaces(s) {
			t.Steps[i].Rolls = report.RollOf(r, s).Words(true)
		}
	}
	return t
}

func (w *web) pulls(rw http.ResponseWriter, r *http.Request) {
	w.render(rw, r, http.StatusOK, "pulls", w.pullsView())
}

func (w *web) pull(rw http.ResponseWriter, r *http.Request) {
	source := r.PathValue("source")
	number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if p, ok := w.current.Pulls.Find(source, number); ok && err == nil {
		w.render(rw, r, http.StatusOK, "pull", w.pullPage(p))
		return
	}
	w.missing(rw, r, "Pull request "+r.PathValue("number")+" of "+source+" not found.",
		"It may be closed, or weir has not read it since weir started.", linked{"Pull requests", "/pulls"})
}
