package page

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
)

// poolFilter selects and sorts pools. It comes from the query of a page's URL, so that a reader can
// bookmark and share a view. An unknown value matches nothing.
type poolFilter struct {
	Text   string // in the names of pool, cluster, target, account, region; the beginning of an instance id
	Target string
	State  string // the target's phase
	Phase  string // the pool's
	Kind   string
	Only   string // one of poolTraits
	Sort   string // one of poolSorts
	Page   int    // from 1
}

// poolTraits are the traits by which a reader can filter pools, with their names on the page.
var poolTraits = []choice{{"problem", "Problems"}, {"moving", "Moving"}, {"drift", "Drift"}, {"held", "Held"}}

// poolSorts are the orders. The first is the default.
var poolSorts = []choice{{"", "Attention first"}, {"name", "Name"}, {"target", "Target"}, {"size", "Size"}, {"missing", "Most missing"}}

// choice is a value of a query parameter with its name on the page.
type choice struct{ Value, Name string }

func readPoolFilter(q url.Values) poolFilter {
	page, _ := strconv.Atoi(q.Get("page")) // an invalid number means the first page
	return poolFilter{
		Text: strings.TrimSpace(q.Get("q")), Target: q.Get("target"), State: q.Get("state"), Phase: q.Get("phase"), Kind: q.Get("kind"),
		Only: q.Get("only"), Sort: q.Get("sort"), Page: max(page, 1),
	}
}

// query returns the filter as query parameters, without the target that the page is about.
func (f poolFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"q": f.Text, "target": f.Target, "state": f.State, "phase": f.Phase, "kind": f.Kind, "only": f.Only, "sort": f.Sort,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Page > 1 {
		q.Set("page", strconv.Itoa(f.Page))
	}
	return q
}

// link returns the URL of a page with the filter.
func (f poolFilter) link(path string) string {
	if q := f.query(); len(q) > 0 {
		return path + "?" + q.Encode()
	}
	return path
}

func (f poolFilter) at(page int) poolFilter {
	f.Page = page
	return f
}

// wantsPools reports whether the filter applies to pools, not only to targets.
func (f poolFilter) wantsPools() bool {
	return f.Phase+f.Kind+f.Only != ""
}

func (f poolFilter) empty() bool { return f.Text+f.Target+f.State == "" && !f.wantsPools() }

// poolItem is a pool with the data for filters. It is created for each pool at each request, so it contains
// no text of its own.
type poolItem struct {
	target *current.TargetState
	pool   *plan.PoolStatus
	mark   report.Phase
	held   bool
	// stale says that the last pass could not read the pool, so its data is older.
	stale bool
}

// poolItems returns the pools of targets, in the order of the targets.
func poolItems(targets []current.TargetState) []poolItem {
	n := 0
	for i := range targets {
		n += len(targets[i].Pools)
	}
	out := make([]poolItem, 0, n)
	for i := range targets {
		t := &targets[i]
		steps := report.StepsByPool(t.Last)
		for k := range t.Pools {
			out = append(out, poolItemOf(t, &t.Pools[k], steps))
		}
	}
	return out
}

func poolItemOf(t *current.TargetState, p *plan.PoolStatus, steps report.PoolSteps) poolItem {
	id := report.PoolID{Namespace: p.Namespace, Name: p.Name}
	return poolItem{target: t, pool: p, mark: report.MarkOf(p, steps, t.Stale()), held: steps.Held[id], stale: t.Stale()}
}

func (i poolItem) drifted() bool {
	return slices.ContainsFunc(i.pool.Conditions, func(c plan.Condition) bool { return c.Type == "Drifted" && c.Status == "True" })
}

func (i poolItem) is(trait string) bool {
	switch trait {
	case "problem":
		return i.mark == report.Failing
	case "moving":
		return i.mark == report.Moving || i.pool.Rollout != nil
	case "drift":
		return i.drifted()
	case "held":
		return i.held
	}
	return false
}

// wants reports whether the filter selects a pool, independent of its target's phase.
func (f poolFilter) wants(i poolItem) bool {
	return (f.Phase == "" || string(i.pool.Phase) == f.Phase) && (f.Kind == "" || string(i.pool.Kind) == f.Kind) &&
		(f.Only == "" || i.is(f.Only)) && f.finds(i)
}

// finds searches the names that identify a pool to readers.
func (f poolFilter) finds(i poolItem) bool {
	return f.Text == "" || f.findsTarget(i.target) || contains(i.pool.Name, f.Text) || contains(i.pool.Namespace, f.Text) || contains(i.pool.Cluster, f.Text) ||
		strings.Contains(f.Text, "/") && contains(i.pool.Namespace+"/"+i.pool.Name, f.Text) || f.findsInstance(i.pool)
}

// findsInstance reports whether the id of an instance of the pool begins with the text.
func (f poolFilter) findsInstance(p *plan.PoolStatus) bool {
	if len(f.Text) < len("i-0") || !strings.EqualFold(f.Text[:2], "i-") {
		return false
	}
	return slices.ContainsFunc(p.Instances, func(i plan.Instance) bool {
		return len(i.ID) >= len(f.Text) && strings.EqualFold(i.ID[:len(f.Text)], f.Text)
	})
}

func (f poolFilter) findsTarget(t *current.TargetState) bool {
	return contains(t.Name, f.Text) || contains(t.Account, f.Text) || contains(t.Region, f.Text) || contains(t.Source, f.Text)
}

func (f poolFilter) wantsTarget(t *current.TargetState) bool {
	return (f.Target == "" || t.Name == f.Target) && (f.State == "" || string(t.Phase) == f.State)
}

// contains searches for a text, ignoring case. It avoids copies, because most names are lower-case ASCII.
func contains(s, part string) bool {
	if len(part) > len(s) {
		return false
	}
	for i := 0; i+len(part) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// order sorts pools as the filter requires.
func (f poolFilter) order(list []poolItem) {
	byName := func(x, y poolItem) int {
		return cmp.Or(cmp.Compare(x.pool.Namespace, y.pool.Namespace), cmp.Compare(x.pool.Name, y.pool.Name))
	}
	byTarget := func(x, y poolItem) int { return cmp.Compare(x.target.Name, y.target.Name) }
	slices.SortStableFunc(list, func(x, y poolItem) int {
		switch f.Sort {
		case "name":
			return cmp.Or(cmp.Compare(x.pool.Name, y.pool.Name), byName(x, y), byTarget(x, y))
		case "target":
			return cmp.Or(byTarget(x, y), byName(x, y))
		case "size":
			return cmp.Or(cmp.Compare(y.pool.DesiredReplicas, x.pool.DesiredReplicas), byName(x, y), byTarget(x, y))
		case "missing":
			return cmp.Or(cmp.Compare(missing(y.pool), missing(x.pool)), byName(x, y), byTarget(x, y))
		}
		return cmp.Or(cmp.Compare(attentionRank(x.mark), attentionRank(y.mark)), byTarget(x, y), byName(x, y))
	})
}

func missing(p *plan.PoolStatus) int32 { return max(0, p.DesiredReplicas-p.ReadyReplicas) }
