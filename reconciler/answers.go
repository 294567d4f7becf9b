package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/render/intent"
)

// questions contains the lookups of the targets of a pass, each once, and the destinations of their
// answers.
type questions struct {
	requests []resolve.Request
	put      []func(observed.Answer)
	answers  []observed.Answers
	checked  []map[model.ImageCheck]observed.Answer
}

// answers resolves the lookups of all targets in one batch. Answers about reviewed images are no
// older than the review, and each reviewed image is looked up.
func (ps *passState) answers(ctx context.Context) ([]observed.Answers, []map[model.ImageCheck]observed.Answer, error) {
	targets := ps.batch.Targets
	q := &questions{answers: make([]observed.Answers, len(targets)), checked: make([]map[model.ImageCheck]observed.Answer, len(targets))}
	for i := range targets {
		if targets[i].Set != nil {
			q.addTarget(i, &targets[i])
		}
	}
	if len(q.requests) == 0 { // the resolver still drops its unused answers
		_, err := ps.Resolver.Answer(ctx, nil)
		return q.answers, q.checked, err
	}
	ctx, sp := span.Start(ctx, "resolve")
	got, err := ps.Resolver.Answer(ctx, q.requests)
	span.End(sp, err)
	if err != nil {
		return nil, nil, fmt.Errorf("resolve lookups: %w", err)
	}
	if ps.batch.Inputs != nil {
		ps.batch.Inputs.Requests, ps.batch.Inputs.Answers = q.requests, got
	}
	for i, put := range q.put {
		put(got[i])
	}
	return q.answers, q.checked, nil
}

// addTarget adds the lookups of one target. A target has one network, so a lookup has one answer for all
// of its pools.
func (q *questions) addTarget(i int, t *Desired) {
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
	q.answers[i], q.checked[i] = observed.Answers{}, map[model.ImageCheck]observed.Answer{}
	ask := func(l intent.Lookup, c intent.Cluster) {
		if _, asked := q.answers[i][l]; asked {
			return
		}
		q.answers[i][l] = observed.Answer{}
		q.add(resolve.Request{Lookup: l, Cluster: c, Network: t.Network, Since: since[l]}, func(a observed.Answer) { q.answers[i][l] = a })
		for _, id := range byLookup[l] {
			check := model.ImageCheck{Lookup: l, ID: id}
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
			ask(l, intent.Cluster{}) // images do not depend on the cluster
		}
	}
}

func (q *questions) add(r resolve.Request, put func(observed.Answer)) {
	q.requests, q.put = append(q.requests, r), append(q.put, put)
}
