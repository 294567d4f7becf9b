package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// explain reads additional facts for people: why machines are missing, which launches failed, and
// which images the plans change. No plan depends on them.
func (ps *passState) explain(ctx context.Context) error {
	if err := ps.explainShortages(ctx); err != nil {
		return err
	}
	nameImages(ctx, ps.Resolver, ps.plans)
	return nil
}

// explainShortages reads why machines are missing from pools, and which launches failed if gates
// need that.
func (ps *passState) explainShortages(ctx context.Context) error {
	short, watched := launch.Short(ps.inputs), launch.Watched(ps.inputs)
	if len(short)+len(watched) == 0 {
		return nil
	}
	explained, err := ps.Cloud.Fill(ctx, *ps.state, observed.Needs{Short: short, Failures: watched})
	if err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	*ps.state = explained
	return nil
}

// nameImages describes the images that plans change. If an image cannot be read, the plan shows
// only its id: no step depends on the description.
func nameImages(ctx context.Context, r Resolver, plans []*plan.Plan) {
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
	answers, err := r.Answer(ctx, requests)
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
