package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// questions are the lookups of the targets of a pass, each once, and where their
// answers go.
type questions struct {
	requests []resolve.Request
	put      []func(observed.Answer)
	answers  []observed.Answers
	checked  []map[basis.ImageCheck]observed.Answer
}

// answers resolves the lookups of all targets in one batch. Answers about reviewed images are no
// older than the review, and each reviewed image is looked up.
func (s *Scope) answers(ctx context.Context, targets []Desired) ([]observed.Answers, []map[basis.ImageCheck]observed.Answer, error) {
	q := &questions{answers: make([]observed.Answers, len(targets)), checked: make([]map[basis.ImageCheck]observed.Answer, len(targets))}
	for i := range targets {
		if targets[i].Set != nil {
			q.of(i, &targets[i])
		}
	}
	if len(q.requests) == 0 { // what was known is forgotten all the same
		_, err := s.Resolver.Answer(ctx, nil)
		return q.answers, q.checked, err
	}
	ctx, sp := span.Start(ctx, "resolve")
	got, err := s.Resolver.Answer(ctx, q.requests)
	span.End(sp, err)
	if err != nil {
		return nil, nil, fmt.Errorf("resolve lookups: %w", err)
	}
	if s.sight != nil {
		s.sight.Requests, s.sight.Answers = q.requests, got
	}
	for i, put := range q.put {
		put(got[i])
	}
	return q.answers, q.checked, nil
}

// of adds the questions of one target, which has one network: so within it a lookup
// has one answer, however many pools ask.
func (q *questions) of(i int, t *Desired) {
	clusters := clustersOf(t.Set)
	since := map[intent.Lookup]time.Time{}
	byLookup := map[intent.Lookup][]string{}
	for _, r := range t.Reviewed {
		if r.At.After(since[r.Lookup]) {
			since[r.Lookup] = r.At
		}
		if r.ID != "" && !r.Outdated && !slices.Contains(byLookup[r.Lookup], r.ID) {
			byLookup[r.Lookup] = append(byLookup[r.Lookup], r.ID)
		}
	}
	q.answers[i], q.checked[i] = observed.Answers{}, map[basis.ImageCheck]observed.Answer{}
	ask := func(l intent.Lookup, c intent.Cluster) {
		if _, asked := q.answers[i][l]; asked {
			return
		}
		q.answers[i][l] = observed.Answer{}
		q.add(resolve.Request{Lookup: l, Cluster: c, Network: t.Network, Since: since[l]}, func(a observed.Answer) { q.answers[i][l] = a })
		for _, id := range byLookup[l] {
			check := basis.ImageCheck{Lookup: l, ID: id}
			q.add(resolve.Request{Lookup: l, Cluster: c, Network: t.Network, Since: since[l], Image: id}, func(a observed.Answer) { q.checked[i][check] = a })
		}
	}
	for j := range t.Set.Pools {
		for l := range t.Set.Pools[j].Lookups() {
			ask(l, clusters(&t.Set.Pools[j]))
		}
	}
	if t.Base != nil {
		for _, l := range template.BaseImages(t.Base) {
			ask(l, intent.Cluster{}) // which an image does not depend on
		}
	}
}

func (q *questions) add(r resolve.Request, put func(observed.Answer)) {
	q.requests, q.put = append(q.requests, r), append(q.put, put)
}

// levels are those that the answers give, each known since its first answer.
func levels(before map[intent.Lookup]basis.Level, answers []observed.Answers, now time.Time) map[intent.Lookup]basis.Level {
	out := map[intent.Lookup]basis.Level{}
	for _, of := range answers {
		for l, a := range of {
			level, ok := plan.LevelOf(l, a)
			if !ok {
				continue
			}
			level.Since = now
			if old, known := before[l]; known && old.ID == level.ID {
				level.Since = old.Since
			}
			out[l] = level
		}
	}
	return out
}

// nameImages says of images that plans change which they are. A step that cannot be
// read shows only its id: a plan does not depend on it.
func (s *Scope) nameImages(ctx context.Context, plans []*plan.Plan) {
	images := map[string]*observed.Image{}
	each := func(do func(*step.Change)) {
		for _, p := range plans {
			if p != nil {
				p.ImageChanges(do)
			}
		}
	}
	each(func(c *step.Change) {
		for _, v := range []any{c.From, c.To} {
			if id, ok := v.(string); ok {
				images[id] = nil
			}
		}
	})
	if len(images) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(images))
	requests := make([]resolve.Request, len(ids))
	for i, id := range ids {
		requests[i].Lookup = intent.Lookup{Kind: intent.ImageByID, Name: id}
	}
	answers, err := s.Resolver.Answer(ctx, requests)
	if err != nil {
		return
	}
	for i, id := range ids {
		images[id] = answers[i].Image
	}
	each(func(c *step.Change) {
		from, _ := c.From.(string)
		to, _ := c.To.(string)
		c.Words = observed.ImageMove(images[from], images[to])
	})
}

// keepPlanned remembers the commits at which targets were planned: images that were
// published meanwhile are for the passes that follow.
func (s *Scope) keepPlanned(reports []*plan.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	planned := map[string]string{}
	for _, r := range reports {
		planned[r.Target] = s.planned[r.Target]
		if r.Plan != nil && !r.Plan.Waits() {
			planned[r.Target] = r.Revision
		}
	}
	s.planned = planned
}
