package reconciler

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// The limits of an applying pass for finding the positions at which fields were set: each queried
// render is built once more, and nothing is applied before. If a commit changes hundreds of
// targets, most positions are unknown in its passes. Each later pass finds some more for remaining
// findings. A plan that is only shown has no such limits.
const (
	originBuilds = 25
	originTime   = 5 * time.Second
)

// limitOriginSearch returns a context for the search for the positions in Git at which fields were set. In an
// applying pass it limits the time, and the renders built for the search.
func limitOriginSearch(ctx context.Context, mode Mode) (context.Context, context.CancelFunc) {
	if mode != Apply {
		return ctx, func() {}
	}
	return context.WithTimeout(intent.Sparing(ctx, originBuilds), originTime)
}

// attachOrigins requests from the render, in one call, the positions of the shown fields and of the
// diagnostics of the plan and of own. The planner itself never requests positions. The call is made
// even without questions, because the render then forgets its earlier answers.
func attachOrigins(ctx context.Context, p *plan.Plan, own diag.List, t Desired) {
	if t.Origins == nil {
		return
	}
	var asked []intent.Question
	var set []func(diag.Position)
	overridden := map[*step.Change]bool{} // changes whose origin is the file that sets a member of the value
	for i := range p.Steps {
		for j := range p.Steps[i].Changes {
			ch := &p.Steps[i].Changes[j]
			if ch.Object.Kind == "" {
				continue
			}
			asked = append(asked, intent.Question{Object: ch.Object, Paths: []intent.Path{ch.Path}})
			set = append(set, func(at diag.Position) {
				if at.Known() {
					ch.Origin = &at
				}
			})
			for _, path := range changedMembers(ch) {
				asked = append(asked, intent.Question{Object: ch.Object, Paths: []intent.Path{path}})
				set = append(set, func(at diag.Position) {
					if at.Known() && ch.Origin != nil && at.File != ch.Origin.File && !overridden[ch] {
						ch.Origin, overridden[ch] = &at, true
					}
				})
			}
		}
	}
	for _, list := range []diag.List{p.Diagnostics, own} {
		positions, setters := ofDiagnostics(t, list)
		asked, set = append(asked, positions...), append(set, setters...)
	}
	for i, at := range t.Origins(ctx, asked) {
		set[i](at)
	}
}

// changedMembers returns the paths of the members of a value that change. The position of a mapping
// is in the object itself, and a patch that sets one of its members is the more useful position.
func changedMembers(ch *step.Change) (out []intent.Path) {
	to, _ := ch.To.(map[string]any)
	from, _ := ch.From.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if before, had := from[name]; !had || !reflect.DeepEqual(before, to[name]) {
			out = append(out, ch.Path.Join(name))
		}
	}
	return out
}

// attachPositions requests the positions of diagnostics from the render.
func attachPositions(ctx context.Context, found diag.List, t Desired) {
	asked, set := ofDiagnostics(t, found)
	if t.Origins == nil || len(asked) == 0 {
		return
	}
	for i, at := range t.Origins(ctx, asked) {
		set[i](at)
	}
}

// ofDiagnostics requests the positions that are missing from diagnostics.
func ofDiagnostics(t Desired, found diag.List) (asked []intent.Question, set []func(diag.Position)) {
	if !slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return !d.Known() && d.Object != "" }) {
		return nil, nil
	}
	refs := objectsOf(t, found)
	for i := range found {
		d := &found[i]
		if d.Known() {
			continue
		}
		ref := refs[nameOf(d.Object)]
		if ref.Kind == "" {
			continue
		}
		path, err := intent.ParsePath(d.Field)
		if err != nil {
			continue
		}
		if d.Severity != diag.Error {
			asked = append(asked, intent.Question{Object: ref, Paths: nearest(path)})
			set = append(set, func(at diag.Position) { d.Position = at })
			continue
		}
		// For a field that Git does not have, an error names the closest field that Git has.
		for k, near := range nearest(path) {
			asked = append(asked, intent.Question{Object: ref, Paths: []intent.Path{near}})
			set = append(set, func(at diag.Position) {
				if d.Known() || !at.Known() {
					return
				}
				if d.Position = at; k > 0 {
					d.Field = path[:max(0, len(path)-k)].String()
				}
			})
		}
	}
	return asked, set
}

// objectsOf returns the objects of a target that diagnostics without a position name.
func objectsOf(t Desired, found diag.List) map[objectName]intent.ObjectRef {
	refs := map[objectName]intent.ObjectRef{}
	for i := range found {
		if !found[i].Known() {
			refs[nameOf(found[i].Object)] = intent.ObjectRef{}
		}
	}
	note := func(all ...intent.ObjectRef) {
		for _, r := range all {
			name := objectName{r.Kind, r.Namespace, r.Name}
			if _, asked := refs[name]; asked {
				refs[name] = r
			}
		}
	}
	for i := range t.Set.Pools {
		pool := &t.Set.Pools[i]
		note(pool.Infrastructure, pool.MachinePool, pool.Bootstrap, pool.Options)
		if pool.LaunchConfig != nil {
			note(pool.LaunchConfig.Source, pool.LaunchConfig.Options)
		}
	}
	for i := range t.Set.Rollouts {
		note(t.Set.Rollouts[i].Object)
	}
	return refs
}

// objectName identifies an object in a diagnostic.
type objectName struct{ kind, namespace, name string }

// nameOf parses the name from the string form of an intent.ObjectRef.
func nameOf(object string) objectName {
	kind, rest, _ := strings.Cut(object, " ")
	if namespace, name, ok := strings.Cut(rest, "/"); ok {
		return objectName{kind, namespace, name}
	}
	return objectName{kind: kind, name: rest}
}

// nearest returns a field and the fields that contain it, closest first. At the end come
// metadata.name and kind, so every finding about an object of the render gets a position. The kind
// is needed if the name is composed of several places.
func nearest(path intent.Path) []intent.Path {
	var out []intent.Path
	for ; len(path) > 0; path = path[:len(path)-1] {
		out = append(out, path)
	}
	return append(out, intent.Path{"metadata", "name"}, intent.Path{"kind"})
}
