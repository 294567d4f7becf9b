package page

import (
	"net/http"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/report"
)

type apiPulls struct {
	Pulls []apiPull `json:"pulls"`
}

// apiPull is a pull request with the plans of the affected targets, each in the schema weir.dev/plan/v1.
type apiPull struct {
	Source   string           `json:"source"`
	Number   int64            `json:"number"`
	Title    string           `json:"title"`
	Author   string           `json:"author"`
	URL      string           `json:"url,omitempty"`
	State    report.PullState `json:"state"`
	Reason   string           `json:"reason,omitempty"`
	HeadSHA  string           `json:"headSHA"`
	BaseRef  string           `json:"baseRef"`
	BaseSHA  string           `json:"baseSHA,omitempty"`
	MergeSHA string           `json:"mergeSHA,omitempty"`
	Digest   string           `json:"digest,omitempty"`
	// Digests contains the digests by target. A digest computed from a redacted plan would differ.
	Digests    map[string]string `json:"digests"`
	Approved   string            `json:"approved,omitempty"`
	AsReviewed bool              `json:"asReviewed"`
	Stale      string            `json:"stale,omitempty"`
	PlannedAt  time.Time         `json:"plannedAt,omitzero"`
	Plans      []*plan.Plan      `json:"plans"`
	Gone       []string          `json:"gone"`
	Unaffected int               `json:"unaffected"`
	Differs    []string          `json:"differs"`
	Uncompared []string          `json:"untold"`
	// Forecast is the simulation of the change over time, in the schema weir.dev/simulation/v1.
	Forecast *report.Forecast `json:"forecast,omitempty"`
}

// apiPulls serves /api/v1/pulls: all pull requests with their plans.
func (w *web) apiPulls(rw http.ResponseWriter, r *http.Request) {
	out := apiPulls{Pulls: []apiPull{}}
	for _, p := range w.current.Pulls.All() {
		a := apiPull{
			Source: p.Source, Number: p.Number, Title: p.Title, Author: p.Author, URL: report.SafeURL(p.WebURL), State: p.State, Reason: p.Reason,
			HeadSHA: p.HeadSHA, BaseRef: p.BaseRef, BaseSHA: p.BaseSHA, MergeSHA: p.MergeSHA, Digest: p.Digest, Digests: p.Digests, Approved: p.Approved,
			AsReviewed: p.AsReviewed, Stale: p.Stale, PlannedAt: p.PlannedAt, Plans: []*plan.Plan{}, Gone: append([]string{}, p.Gone...),
			Unaffected: p.Unaffected, Differs: append([]string{}, p.Differs...), Uncompared: append([]string{}, p.Uncompared...), Forecast: p.Forecast,
		}
		for _, report := range p.Reports {
			if report.Plan != nil {
				a.Plans = append(a.Plans, report.Plan)
			}
		}
		out.Pulls = append(out.Pulls, a)
	}
	w.sendJSON(rw, r, out)
}
