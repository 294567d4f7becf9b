package page

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
)

// poolRow is a pool in a table.
type poolRow struct {
	plan.PoolStatus
	Link, TargetLink string
	Mark             string // the CSS class of the phase
	PhaseWord        string
	Level            level
	Rolling          *rolloutView
	Since            moment
	Failing          moment // the time since which FailureReason has been reported
	Template         string
	Drift, Held      bool
	Stale            bool // the last pass could not read it
}

// poolRow prepares a row in a table of pools.
func (w *views) poolRow(i poolItem) poolRow {
	p := *i.pool
	r := poolRow{
		PoolStatus: p, Link: poolLink(i.target.Name, p.Namespace, p.Name), TargetLink: targetLink(i.target.Name), Mark: string(i.mark),
		Failing: momentOf(w.current, p.FailedSince), PhaseWord: string(p.Phase), Level: poolLevel(p, i.mark), Since: momentOf(w.current, i.target.ConvergedSince[report.PoolKey(p)]), Drift: i.drifted(), Held: i.held, Stale: i.stale,
	}
	if p.Phase == "" {
		r.PhaseWord = string(plan.PhaseUnknown)
	}
	if p.LaunchTemplateVersion != "" {
		r.Template = "v" + p.LaunchTemplateVersion
	}
	if p.Rollout != nil {
		v := rolloutViewOf(w.current, p, *p.Rollout)
		r.Rolling = &v
	}
	return r
}

// rolloutView shows a rollout as a bar.
type rolloutView struct {
	plan.RolloutStatus
	Pool, Link string
	Percent    int
	Words      string
	Started    moment
	// Marks is a path with the ends of the batches, in a box of rolloutWidth. Batches describes their
	// number. Both are empty if the batches are unknown.
	Marks   string
	Batches string
	Width   string
	Back    bool // it is being rolled back
}

const rolloutWidth = 400

// rolloutViewOf prepares the progress of a pool's rollout. r is the current or the last rollout of p.
func rolloutViewOf(b *current.State, p plan.PoolStatus, r plan.RolloutStatus) rolloutView {
	v := rolloutView{
		RolloutStatus: r, Pool: report.PoolKey(p), Link: poolLink(p.Target, p.Namespace, p.Name), Percent: int(min(max(r.Percentage, 0), 100)),
		Started: momentOf(b, r.StartedAt), Back: r.Status == "RollbackInProgress",
	}
	v.Words = fmt.Sprintf("%d %%", v.Percent)
	if r.InstancesLeft > 0 {
		v.Words += fmt.Sprintf(" · %d left", r.InstancesLeft)
	}
	if p.Nodegroup != nil && v.Percent == 0 {
		v.Words = "EKS reports no percentage"
	}
	v.Width = coordinate(float64(v.Percent) / 100 * rolloutWidth)
	v.batches(p)
	return v
}

// batches marks the end of each batch of an instance refresh. The batches are unknown for nodegroups, and
// for groups whose size is not in instances.
func (v *rolloutView) batches(p plan.PoolStatus) {
	if p.Kind != intent.GroupPool || p.MaxReplicas == 0 {
		return
	}
	size, n := report.RolloutBatches(p.DesiredReplicas, v.MinHealthy, v.MaxHealthy)
	switch {
	case size == 0:
		return
	case size == 1:
		v.Batches = "one instance at a time"
	case n == 1:
		v.Batches = "all at once"
	default:
		v.Batches = fmt.Sprintf("%d batches of at most %d", n, size)
	}
	if v.MinHealthy == nil {
		v.Batches += " (AWS's default)"
	}
	if n > mostCells {
		return
	}
	var b strings.Builder
	for k := 1; k < n; k++ {
		fmt.Fprintf(&b, "M%s 0v8", coordinate(float64(k*size)/float64(p.DesiredReplicas)*rolloutWidth))
	}
	v.Marks = b.String()
}

type poolsView struct {
	layout
	Find      findForm
	Traits    []filter
	Rows      []poolRow
	Pager     pager
	Words     string
	HasFilter bool
	Fleet     bool // rows show the target
}

const poolsPerPage = 100

func (w *views) poolsView(q url.Values) poolsView {
	all := w.current.Targets.All()
	f := readPoolFilter(q)
	v := poolsView{layout: w.layout("pools", "Pools"), HasFilter: !f.empty(), Fleet: true}
	v.JSON = "/api/v1/pools"
	items := poolItems(all)
	v.Find, v.Traits = findFormOf("/pools", f, items, all), traitFilters(f.at(1), "/pools", items)
	v.Rows, v.Pager, v.Words = w.poolRows(items, f, "/pools")
	return v
}

// poolRows returns the pools of a page that match the filter.
func (w *views) poolRows(items []poolItem, f poolFilter, path string) ([]poolRow, pager, string) {
	var found []poolItem
	for _, i := range items {
		if f.wantsTarget(i.target) && f.wants(i) {
			found = append(found, i)
		}
	}
	f.order(found)
	from, to, at := window(f.Page, poolsPerPage, len(found))
	var rows []poolRow
	for _, i := range found[from:to] {
		rows = append(rows, w.poolRow(i))
	}
	return rows, pagerOf(from, to, len(found), at, "pool", func(page int) string { return f.at(page).link(path) }), plural(len(found), "pool")
}
