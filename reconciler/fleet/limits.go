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
		Detail:  "weir changes and deletes none of these targets until there are few enough: remove directories, use a more specific targets.path, or raise limits.targets in weir's configuration.",
	}
}

// nodeBytes is the memory that counts as one node of limits.nodes. All builds of a fleet may use fleetShares
// times limits.nodes, and the builds that a review adds reviewShares times.
const (
	nodeBytes    = 64
	fleetShares  = 8
	reviewShares = 3
)

// idle bounds the shared bytes that no build uses any more.
const idle = 1 << 20

// budget has the limits of builds, and the memory and pools that they use.
type budget struct {
	limits targetspec.Limits
	// shared has the parts that several builds share.
	shared *render.Shared
	// shares is fleetShares or reviewShares. beside describes the other targets that use the budget, for messages.
	shares int
	beside string
	// retries says that an oversized build is rendered again once there is room for it.
	retries bool

	mu sync.Mutex
	// renders are the builds of the last composition, by target. made are newer ones, which the next
	// composition will take.
	renders, made map[string]*rendered
	pools         int
	// swept is the number of shared bytes after the last sweep. dropped says that a build has been dropped since.
	swept   int
	dropped bool
}

// newBudget returns the budget of a fleet.
func newBudget(limits targetspec.Limits, shared *render.Shared) *budget {
	o := &budget{limits: limits, shared: shared, made: map[string]*rendered{}, shares: fleetShares, beside: "of other targets", retries: true}
	shared.Limit(o.bytes(), o.live)
	return o
}

// forReview returns the budget for the builds that a review adds to a fleet. A target that exceeds a limit in
// the followed commit is no fault of the proposal, unless the proposal changes it.
func (o *budget) forReview() *budget {
	r := &budget{limits: o.limits, shared: render.NewShared(o.shared), made: map[string]*rendered{}, shares: reviewShares, beside: "of other targets that the proposal changes"}
	r.shared.Limit(r.bytes(), nil)
	return r
}

func (o *budget) bytes() int { return int(o.limits.Nodes) * o.shares * nodeBytes }

// build returns the limits of one build.
func (o *budget) build() kust.Limits { return kust.Limits{Nodes: int(o.limits.Nodes)} }

// setTargets sets the targets of a composition, with their last builds.
func (o *budget) setTargets(renders map[string]*rendered) {
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

// newest returns a target's next build if there is one already, else its last one.
func (o *budget) newest(name string) *rendered {
	if r := o.made[name]; r != nil {
		return r
	}
	return o.renders[name]
}

// pools returns the number of pools in the result.
func (b *build) pools() int {
	if b.result == nil {
		return 0
	}
	return len(b.result.Set.Pools)
}

// live returns the builds in use. It returns nil if none was dropped since the last sweep.
func (o *budget) live() []*render.Kept {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.dropped {
		return nil
	}
	return o.results()
}

func (o *budget) results() []*render.Kept {
	out := []*render.Kept{}
	for name := range o.renders {
		if r := o.newest(name); r.result != nil {
			out = append(out, r.result)
		}
	}
	return out
}

// reserve gives a target a new build. If the budget has no room for the build, reserve first reduces it to
// the facts that show whether another build would differ. full explains why the rest was dropped.
func (o *budget) reserve(name string, r *rendered, b *build, full *render.FullError) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.renders[name] != r {
		o.made[name] = r
	}
	o.pools -= r.pools()
	o.dropped = o.dropped || r.result != nil
	switch n := b.pools(); {
	case full != nil:
		b.over = &excess{limits: o.limits, full: full}
	case o.pools+n > int(o.limits.Pools):
		b.over = &excess{limits: o.limits, pools: n, others: o.pools}
		b.result = &render.Kept{Reads: b.result.Reads, Retry: b.result.Retry}
	}
	o.pools += b.pools()
	r.build = b
}

// put replaces a target's build by a newer one.
func (o *budget) put(name string, into, r *rendered) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*into = *r
	delete(o.made, name)
}

// fits reports whether there is room now for a build that exceeded a limit.
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

// sweep drops the shared parts that no build uses any more. It does so if they may be half of all parts, or
// if a build had no room.
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

// littered returns the builds in memory, or nil if a sweep is not worth it. Renders that run meanwhile may
// drop builds during the sweep.
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
	return o.results()
}

// excess says by how much a build exceeds a limit.
type excess struct {
	limits        targetspec.Limits
	pools, others int
	full          *render.FullError
}

// diagnostic reports the excess, and the limit to raise.
func (e *excess) diagnostic(o *budget) diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, Code: "too-many-pools"}
	setting := "limits.pools"
	if e.full == nil {
		d.Summary = fmt.Sprintf("the target has %d pools, in addition to %d of other targets, and limits.pools allows %d", e.pools, e.others, e.limits.Pools)
	} else {
		d.Code, setting = "too-large", "limits.nodes"
		d.Summary = fmt.Sprintf("the target needs memory for %d YAML nodes, in addition to %d %s, and limits.nodes allows %d times %d for all of them together",
			e.full.Bytes/nodeBytes, e.full.Held/nodeBytes, o.beside, o.shares, e.limits.Nodes)
	}
	d.Detail = "Remove pools, or raise " + setting + " in weir's configuration. Until then weir changes and deletes nothing of the target."
	return d
}
