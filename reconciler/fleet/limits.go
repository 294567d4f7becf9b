package fleet

import (
	"fmt"
	"maps"
	"sync"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust"
)

// tooManyTargets reports that a path matches more targets than its source has room for. found is 0
// if too many names exist to count them.
func tooManyTargets(t *targetspec.Target, limits targetspec.Limits, found, room int) diag.Diagnostic {
	stands := fmt.Sprintf("matches %d targets", found)
	if found == 0 {
		stands = "matches too many directories to count its targets"
	}
	others := ""
	if n := int(limits.Targets) - room; n > 0 {
		others = fmt.Sprintf(", in addition to %d of other paths,", n)
	}
	return diag.Diagnostic{
		Severity: diag.Error, Code: "too-many-targets",
		Summary: fmt.Sprintf("path %s %s%s and limits.targets allows %d for each source", t.Path, stands, others, limits.Targets),
		Detail:  "Until then weir changes and deletes none of them. Remove directories, use a more specific targets.path, or raise limits.targets in weir's configuration.",
	}
}

// How many bytes count as a node of what is kept, and how many times limits.nodes there
// may be: for all renders, and for what a review adds to them.
const (
	nodeBytes    = 64
	fleetShares  = 8
	reviewShares = 3
)

// idle bounds the shared bytes that no render uses any more.
const idle = 1 << 20

// budget holds the limits of renders, and what they use.
type budget struct {
	limits targetspec.Limits
	// shared holds the parts that several renders share.
	shared *render.Shared
	// shares is the number of fractions of limits.nodes, and beside names their users.
	shares int
	beside string
	// retries says that an oversized render is repeated once it fits.
	retries bool

	mu sync.Mutex
	// renders are those of the last composition, by target, and made those that will
	// take the place of some: beside compositions, others are made.
	renders, made map[string]*rendered
	pools         int
	// swept is the number of shared bytes after the last sweep. dropped says that a render of that
	// time is no longer kept.
	swept   int
	dropped bool
}

// newBudget makes room for a fleet.
func newBudget(limits targetspec.Limits, shared *render.Shared) *budget {
	o := &budget{limits: limits, shared: shared, made: map[string]*rendered{}, shares: fleetShares, beside: "of other targets", retries: true}
	shared.Limit(o.bytes(), o.live)
	return o
}

// forReview makes room for what a review adds to a fleet. It ignores what was too much
// before, unless it changes that.
func (o *budget) forReview() *budget {
	r := &budget{limits: o.limits, shared: render.NewShared(o.shared), made: map[string]*rendered{}, shares: reviewShares, beside: "of other targets that the proposal changes"}
	r.shared.Limit(r.bytes(), nil)
	return r
}

func (o *budget) bytes() int { return int(o.limits.Nodes) * o.shares * nodeBytes }

// build are the limits of one build.
func (o *budget) build() kust.Limits { return kust.Limits{Nodes: int(o.limits.Nodes)} }

// hold says which targets there are, with their renders.
func (o *budget) hold(renders map[string]*rendered) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range o.renders {
		o.dropped = o.dropped || renders[name] == nil
	}
	maps.DeleteFunc(o.made, func(name string, _ *rendered) bool { return renders[name] == nil })
	o.renders, o.pools = renders, 0
	for name := range renders {
		o.pools += o.newest(name).pools()
	}
}

// newest returns a target's next render if it is made already, else its last one.
func (o *budget) newest(name string) *rendered {
	if r := o.made[name]; r != nil {
		return r
	}
	return o.renders[name]
}

// pools returns the number of pools that the render wants.
func (r *rendered) pools() int {
	if r.result == nil {
		return 0
	}
	return len(r.result.Set.Pools)
}

// live are the renders that are held, nil if all are that were.
func (o *budget) live() []*render.Kept {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.dropped {
		return nil
	}
	return o.held()
}

func (o *budget) held() []*render.Kept {
	out := []*render.Kept{}
	for name := range o.renders {
		if r := o.newest(name); r.result != nil {
			out = append(out, r.result)
		}
	}
	return out
}

// reserve puts a new result into a target's render. If the budget has no room for it, reserve puts in
// only the facts that show whether a new render would differ. full says why nothing else was kept.
func (o *budget) reserve(name string, r *rendered, k *render.Kept, full *render.FullError) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.renders[name] != r {
		o.made[name] = r
	}
	o.pools -= r.pools()
	o.dropped = o.dropped || r.result != nil
	r.result, r.over = k, nil
	switch n := r.pools(); {
	case full != nil:
		r.over = &excess{limits: o.limits, full: full}
	case o.pools+n > int(o.limits.Pools):
		r.over = &excess{limits: o.limits, pools: n, others: o.pools}
		r.result = &render.Kept{Reads: k.Reads, Retry: k.Retry}
	}
	o.pools += r.pools()
}

// put puts a target's render in the place of an earlier one.
func (o *budget) put(name string, into, r *rendered) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*into = *r
	delete(o.made, name)
}

// fits reports whether there is room by now for what was too much.
func (o *budget) fits(e *excess) bool {
	if !o.retries {
		return false
	}
	o.mu.Lock()
	pools := o.pools
	o.mu.Unlock()
	if e.full != nil {
		return o.shared.Bytes()+e.full.Bytes <= e.full.Limit || e.limits != o.limits
	}
	return pools+e.pools <= int(o.limits.Pools)
}

// sweep forgets what no render holds any more, once that may be half of it, or takes
// the room of what was refused.
func (o *budget) sweep() {
	bytes := o.shared.Bytes()
	live := o.littered(bytes)
	if live == nil {
		return
	}
	o.shared.Sweep(live)
	bytes = o.shared.Bytes()
	o.mu.Lock()
	o.swept = bytes
	o.mu.Unlock()
}

// littered returns the renders in memory, nil if so many shared bytes are not worth a sweep.
// Concurrent renders may drop others during the sweep.
func (o *budget) littered(bytes int) []*render.Kept {
	o.mu.Lock()
	defer o.mu.Unlock()
	crowded := false
	for _, r := range o.renders {
		crowded = crowded || r.over != nil && r.over.full != nil
	}
	if !o.dropped || !crowded && bytes < 2*o.swept+idle {
		return nil
	}
	o.dropped = false
	return o.held()
}

// excess is by how much a render is more than there may be.
type excess struct {
	limits        targetspec.Limits
	pools, others int
	full          *render.FullError
}

// diagnostic says what there is too much of for a budget.
func (e *excess) diagnostic(o *budget) diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, Code: "too-many-pools"}
	setting := "limits.pools"
	if e.full == nil {
		d.Summary = fmt.Sprintf("the target has %d pools, in addition to %d of other targets, and limits.pools allows %d", e.pools, e.others, e.limits.Pools)
	} else {
		d.Code, setting = "too-large", "limits.nodes"
		d.Summary = fmt.Sprintf("the target needs memory for %d nodes, in addition to %d %s, and limits.nodes allows %d times %d",
			e.full.Bytes/nodeBytes, e.full.Held/nodeBytes, o.beside, o.shares, e.limits.Nodes)
	}
	d.Detail = "Until then weir changes and deletes nothing of the target. Remove pools, or raise " + setting + " in weir's configuration."
	return d
}
