package reconciler

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler/imageupdates"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

// Newer returns the present and the newest image of each pool of a batch. It sends all lookups
// together. plans contains the plans of the batch's targets, by target; targets without a plan are
// skipped. since is the minimum time of the answers.
func (b Batch) Newer(ctx context.Context, plans map[string]*plan.Plan, since time.Time) ([]imageupdates.Pool, error) {
	var out []imageupdates.Pool
	var requests []resolve.Request
	var put []func(observed.Answer)
	for i := range b.Targets {
		t := &b.Targets[i]
		p := plans[t.Policy.Target]
		if p == nil || t.Set == nil {
			continue
		}
		clusters := clustersOf(t.Set)
		for j := range t.Set.Pools {
			pool := &t.Set.Pools[j]
			image, release := p.Image(pool.Key.String())
			ask, at := pool.Newest(release.Version)
			if ask.Kind == "" {
				continue
			}
			out = append(out, imageupdates.Pool{Target: t.Policy.Target, Region: p.Region, Name: pool.Key.String(), At: at, Ask: ask, Has: image})
			n := len(out) - 1
			switch {
			case at.Written:
				out[n].Has = at.Has
			case ask.Kind == intent.NodegroupRelease:
				out[n].Has = release.Name
				out[n].Moves = model.MinorOf(release.Version) != model.MinorOf(ask.Version)
			}
			if out[n].Has == "" {
				out[n].Unknown = p.Unplanned(pool.Key.String())
				continue
			}
			requests = append(requests, resolve.Request{Lookup: ask, Cluster: clusters(pool), Network: t.Network, Since: since})
			put = append(put, func(a observed.Answer) { out[n].Newest = a })
			if ask.Kind != intent.NodegroupRelease {
				requests = append(requests, resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByID, Name: out[n].Has}})
				put = append(put, func(a observed.Answer) { out[n].Image = a.Image })
			}
		}
	}
	if len(requests) == 0 {
		return out, nil
	}
	answers, err := b.Scope.Resolver.Answer(ctx, requests)
	if err != nil {
		return nil, fmt.Errorf("ask for newer images: %w", err)
	}
	for i, a := range answers {
		put[i](a)
	}
	return out, nil
}
