package reconciler

import (
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// attachOrigins asks the render where the shown fields were set. The planner
// itself never asks.
func attachOrigins(p *plan.Plan, t Desired) {
	if t.Origin == nil {
		return
	}
	refs := map[string]intent.ObjectRef{}
	for i := range t.Set.Pools {
		pool := &t.Set.Pools[i]
		for _, r := range []intent.ObjectRef{pool.Infrastructure, pool.MachinePool, pool.Bootstrap} {
			refs[r.String()] = r
		}
		if pool.LaunchConfig != nil {
			refs[pool.LaunchConfig.Source.String()] = pool.LaunchConfig.Source
		}
	}
	for i := range p.Steps {
		for j := range p.Steps[i].Changes {
			ch := &p.Steps[i].Changes[j]
			if ch.Object.Kind == "" {
				continue
			}
			if pos, ok := t.Origin(ch.Object, ch.Path); ok {
				ch.Origin = &pos
			}
		}
	}
	for i := range p.Diagnostics {
		d := &p.Diagnostics[i]
		ref, known := refs[d.Object]
		if d.Known() || !known {
			continue
		}
		path, err := intent.ParsePath(d.Field)
		if err != nil {
			continue
		}
		if pos, ok := nearest(t.Origin, ref, path); ok {
			d.Position = pos
		}
	}
}

// nearest is the origin of a field, or of the closest field around it. What is
// about an object as a whole is shown where its name stands, or its kind where
// the name is put together from several places: every finding that names an
// object of the render can so be linked to.
func nearest(origin func(intent.ObjectRef, intent.Path) (diag.Position, bool), ref intent.ObjectRef, path intent.Path) (diag.Position, bool) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if pos, ok := origin(ref, path); ok {
			return pos, true
		}
	}
	if pos, ok := origin(ref, intent.Path{"metadata", "name"}); ok {
		return pos, true
	}
	return origin(ref, intent.Path{"kind"})
}
