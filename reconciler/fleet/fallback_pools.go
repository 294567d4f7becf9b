package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/secret"
)

// If the followed commit breaks some pools of a target, the healthy pools follow it, and each
// broken pool is held to the last revision in which it is complete. Each pool has its own
// revision, as one pool may change while another is already broken.

// poolSearch is the search for the last good revision of one pool.
type poolSearch struct {
	// next is the index of the first revision that was not tried for the pool.
	next int
	// found is the revision, and pool the pool in it. Both are nil if none is known.
	found *candidate
	pool  *intent.Pool
	// sum identifies the last pool found, so that revisions with the same pool are skipped.
	sum string
	// gone says that AWS has nothing of the pool, so weir can hold nothing.
	gone bool
}

// poolJob looks for the next revision of some pools. Its fields may be read only after it has ended.
type poolJob struct {
	order []string
	pools map[string]*poolSearch
	err   error
	done  chan struct{}
}

// merged is the set of the followed commit with pools of earlier commits.
type merged struct {
	base  *render.Kept
	found []*candidate
	set   *intent.Set
	sum   string
	held  map[string]*model.Fallback
}

// brokenPools returns the pools that the followed commit breaks. It is empty if the commit breaks the whole
// target.
func (it *item) brokenPools() []intent.Unplanned {
	if it.desired.Set == nil || it.err != nil || it.proposed || it.render.result == nil || it.desired.Set != &it.render.result.Set {
		return nil
	}
	return it.render.result.Set.Broken()
}

// holdPools holds the broken pools of an item to earlier revisions.
func (h *fallbacks) holdPools(ctx context.Context, it *item, broken []intent.Unplanned) {
	s, behind := h.searches[it.name], !it.since.IsZero()
	switch {
	case behind && s == nil:
		return // the newest commit may repair them
	case s == nil || !behind && !it.rendersLike(&s.of) || !s.ended.IsZero() && time.Since(s.ended) > searchEvery:
		s = h.newSearch(it, s)
	}
	if s.pools == nil {
		s.pools = map[string]*poolSearch{}
	}
	if !behind {
		h.advancePools(ctx, it, s, broken)
	}
	h.fillPools(it, s, broken)
}

// advancePools takes a job's result and the reports' verdicts on it, and starts the next job.
func (h *fallbacks) advancePools(ctx context.Context, it *item, s *search, broken []intent.Unplanned) {
	if j := s.poolJob; j != nil {
		select {
		case <-j.done:
		default:
			return
		}
		s.poolJob = nil
		if j.err != nil {
			return // ctx has ended
		}
		s.order = j.order
		for key, p := range j.pools {
			s.pools[key] = p
		}
	}
	open := map[string]*poolSearch{}
	for _, u := range broken {
		key := u.Key.String()
		p := s.pools[key]
		if p == nil {
			p = &poolSearch{}
			s.pools[key] = p
		}
		h.judgePool(it, s, p)
		if s.order == nil || p.found == nil && !p.gone && p.next < len(s.order) {
			open[key] = p
		}
	}
	if len(open) > 0 {
		s.ended = time.Time{}
		s.poolJob = h.seekPools(ctx, s, broken, open)
	} else if s.ended.IsZero() {
		s.ended = time.Now()
	}
}

// judgePool drops the found revision of a pool if AWS does not match it, or has nothing of the pool.
func (h *fallbacks) judgePool(it *item, s *search, p *poolSearch) {
	if p.found == nil || s.order == nil {
		return
	}
	v, known := h.verdicts[it.name]
	of := v.Pools[p.pool.Key.String()]
	if !known || v.Head != s.of.view.Snapshot.Revision || v.Wanted != h.desired[it.name] || of.Revision != p.found.revision {
		return
	}
	switch of.Answer {
	case lastgood.Nothing:
		p.gone, p.found = true, nil
	case lastgood.Differs:
		p.found = nil
	}
}

// seekPools starts a job that renders revisions of a search until each open pool is found in one and differs
// from its last version.
func (h *fallbacks) seekPools(ctx context.Context, s *search, broken []intent.Unplanned, open map[string]*poolSearch) *poolJob {
	it := s.of
	it.budget = h.budget.forReview()
	j := &poolJob{order: s.order, pools: map[string]*poolSearch{}, done: make(chan struct{})}
	for key, p := range open {
		own := poolSearch{next: p.next, sum: p.sum}
		j.pools[key] = &own
	}
	var tried []*render.Kept
	if s.of.render.result != nil {
		tried = append(tried, s.of.render.result)
	}
	record := s.record
	h.runs.start(ctx, j.done, &j.err, func() error {
		if j.order == nil {
			parents, _ := it.view.Parents(ctx, it.view.Snapshot.Revision, lastgood.MaxParents) // the recorded revisions are tried anyway
			j.order = append([]string{}, record.Order(it.view.Snapshot.Revision, parents)...)
		}
		j.seek(ctx, &it, broken, tried)
		return ctx.Err()
	})
	return j
}

// seek tries revisions in order, and skips those that were already tried for a pool.
func (j *poolJob) seek(ctx context.Context, it *item, broken []intent.Unplanned, tried []*render.Kept) {
	for i := range j.order {
		if !slices.ContainsFunc(broken, func(u intent.Unplanned) bool {
			p := j.pools[u.Key.String()]
			return p != nil && p.found == nil && p.next <= i
		}) {
			continue
		}
		c, _ := it.renderEarlier(ctx, j.order[i], tried)
		if ctx.Err() != nil {
			return
		}
		for k := range broken {
			p := j.pools[broken[k].Key.String()]
			if p == nil || p.found != nil || p.next > i {
				continue
			}
			p.next = i + 1
			if c != nil {
				p.consider(c, poolOf(&c.kept.Set, &broken[k]))
			}
		}
		if c != nil {
			tried = append(tried[:min(len(tried), 1)], c.kept) // the followed revision and the last tried one
		}
	}
}

// consider uses the pool of a candidate if it is complete there and differs from the pool's last version.
func (p *poolSearch) consider(c *candidate, pool *intent.Pool) {
	if pool == nil || len(pool.Blocked) > 0 {
		return
	}
	sum := sumOfSet(nil, &intent.Set{Pools: []intent.Pool{*pool}})
	if sum != p.sum {
		p.found, p.pool, p.sum = c, pool, sum
	}
}

// poolOf returns the pool of an earlier set that is broken in the followed one, or nil.
func poolOf(set *intent.Set, u *intent.Unplanned) *intent.Pool {
	for _, key := range u.Pools {
		if p := set.Pool(key); p != nil {
			return p
		}
	}
	i := slices.IndexFunc(set.Pools, func(p intent.Pool) bool {
		return p.Infrastructure.Namespace == u.Key.Namespace && slices.Contains(u.Names, p.Infrastructure.Name)
	})
	if i < 0 {
		return nil
	}
	return &set.Pools[i]
}

// fillPools puts the broken pools into the item's Desired, as they are in the earlier revisions.
func (h *fallbacks) fillPools(it *item, s *search, broken []intent.Unplanned) {
	d, base := &it.desired, it.render.result
	var found []*candidate
	for _, u := range broken {
		var c *candidate
		if p := s.pools[u.Key.String()]; p != nil {
			c = p.found
		}
		found = append(found, c)
	}
	if s.merged.base != base || !slices.Equal(s.merged.found, found) {
		s.merged = h.merge(it, s, broken)
		s.merged.base, s.merged.found = base, found
	}
	for i := range d.Unplanned {
		u := &d.Unplanned[i]
		if p := s.pools[u.Key.String()]; p != nil && p.pool != nil && p.found != nil {
			key := p.pool.Key.String()
			if !slices.Contains(u.Pools, key) { // its MachinePool is missing
				u.Pools = append(slices.Clone(u.Pools), key)
			}
		}
	}
	if len(s.merged.held) == 0 {
		h.o.hide("held "+it.name, nil)
		return
	}
	d.Set, d.Policy.FallbackPools, it.heldSum = s.merged.set, s.merged.held, s.merged.sum
	h.desired[it.name] = it.wanted() + it.configured()
	hidden, origins, options := []*secret.Set{}, d.Origins, it.options()
	of := map[intent.ObjectRef]*candidate{}
	for i, u := range broken {
		c := found[i]
		if c == nil || s.merged.held[s.pools[u.Key.String()].pool.Key.String()] == nil {
			continue
		}
		hidden = append(hidden, c.kept.Hidden)
		d.Policy.Secretless = d.Policy.Secretless || c.kept.Secretless
		p := s.pools[u.Key.String()].pool
		of[p.MachinePool], of[p.Infrastructure], of[p.Bootstrap], of[p.Options] = c, c, c, c
	}
	h.o.hide("held "+it.name, secret.Union(hidden...))
	path := it.path
	d.Origins = func(ctx context.Context, asked []intent.Question) []diag.Position {
		return originsOf(ctx, asked, origins, of, func(c *candidate, own []intent.Question) []diag.Position {
			return c.kept.Origins(ctx, c.snap.Tree, path, options, own)
		})
	}
}

// originsOf returns where fields were set. It asks the revision from which each object comes.
func originsOf(ctx context.Context, asked []intent.Question, followed func(context.Context, []intent.Question) []diag.Position, of map[intent.ObjectRef]*candidate, earlier func(*candidate, []intent.Question) []diag.Position) []diag.Position {
	out := make([]diag.Position, len(asked))
	places, questions := map[*candidate][]int{}, map[*candidate][]intent.Question{}
	var order []*candidate
	for i, q := range asked {
		c := of[q.Object]
		if _, known := places[c]; !known {
			order = append(order, c)
		}
		places[c], questions[c] = append(places[c], i), append(questions[c], q)
	}
	for _, c := range order {
		var got []diag.Position
		switch {
		case c != nil:
			got = earlier(c, questions[c])
		case followed != nil:
			got = followed(ctx, questions[c])
		}
		for n, at := range places[c] {
			if n < len(got) {
				out[at] = got[n]
			}
		}
	}
	return out
}

// merge adds the pools that a search has found to the followed set. It leaves out a pool if another
// pool of the followed set has its names, or if its cluster names another role.
func (h *fallbacks) merge(it *item, s *search, broken []intent.Unplanned) merged {
	base := &it.render.result.Set
	set := *base
	set.Unplanned = nil // the Desired has the unplanned pools
	set.Pools, set.Clusters = slices.Clone(base.Pools), slices.Clone(base.Clusters)
	taken := map[model.Claim]bool{}
	for _, c := range model.Claims(base) {
		taken[c] = true
	}
	out := merged{held: map[string]*model.Fallback{}}
	for _, u := range broken {
		p := s.pools[u.Key.String()]
		if p == nil || p.found == nil || set.Pool(p.pool.Key.String()) != nil {
			continue
		}
		own := intent.Set{Pools: []intent.Pool{*p.pool}}
		if slices.ContainsFunc(model.Claims(&own), func(c model.Claim) bool { return taken[c] && p.pool.LaunchConfig == nil }) {
			continue
		}
		if _, known := base.Cluster(p.pool.ClusterKey); !known {
			if c, ok := p.found.kept.Set.Cluster(p.pool.ClusterKey); ok && c.RoleARN != "" && c.RoleARN != it.key.RoleARN {
				continue
			} else if ok && !slices.ContainsFunc(set.Clusters, func(o intent.Cluster) bool { return o.Key == c.Key }) {
				set.Clusters = append(set.Clusters, c)
			}
		}
		set.Pools = append(set.Pools, *p.pool)
		out.held[p.pool.Key.String()] = &model.Fallback{Revision: p.found.revision, Why: faultOf(diag.List{u.Fault}), Recorded: true, Reached: h.reached(it, s, p.found)}
		set.Sort()
	}
	if len(out.held) > 0 {
		out.set, out.sum = &set, sumOfSet(it.desired.Policy.DigestKey, &set)
	}
	return out
}

// reached reports whether the target had converged with the intents of a revision.
func (h *fallbacks) reached(it *item, s *search, c *candidate) bool {
	if c.wants == "" {
		c.wants = sumOfSet(it.desired.Policy.DigestKey, &c.kept.Set)
	}
	sum := it.heldSum
	it.heldSum = c.wants
	defer func() { it.heldSum = sum }()
	return s.record.Reached.Wants == it.wanted()
}
