package propose

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/proposal/reverts"
)

// Reverts describes what commits launch, and writes the previous versions of pools. It implements
// reverts.Fleet.
type Reverts struct {
	Source
	// Rollouts returns the state of the rollouts at a commit.
	Rollouts func(head string) (reverts.Standing, error)
}

// Standing implements reverts.Fleet.
func (r Reverts) Standing(head string) (reverts.Standing, error) { return r.Rollouts(head) }

// Render implements reverts.Fleet.
func (r Reverts) Render(ctx context.Context, s snapshot.Snapshot, only []string) ([]reverts.Target, error) {
	review, err := r.render(ctx, s, "reverts", only, false)
	if err != nil {
		return nil, err
	}
	var out []reverts.Target
	for _, b := range review.Batches {
		for i := range b.Targets {
			d := &b.Targets[i]
			if !slices.Contains(review.Touched, d.Policy.Target) {
				continue
			}
			t := reverts.Target{Name: d.Policy.Target, Launches: map[string]string{}}
			switch {
			case d.Err != nil:
				t.Fault = d.Err.Error()
			case d.Set == nil || !d.Whole:
				t.Fault = partly(d)
			default:
				for k := range d.Set.Pools {
					t.Launches[d.Set.Pools[k].Key.String()] = launched(&d.Set.Pools[k])
				}
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// launched returns everything in Git that determines how a pool's machines are launched.
func launched(p *intent.Pool) string {
	var of struct {
		Template  *intent.LaunchTemplate
		Own       *intent.ForeignTemplate
		Overrides []intent.ForeignTemplate
		Version   string
		Nodegroup [3]string
	}
	if p.LaunchTemplate != nil {
		t := *p.LaunchTemplate
		t.Tags = nil
		of.Template = &t
	}
	of.Own, of.Overrides, of.Version = p.ForeignTemplate, p.ForeignOverrides, p.Version
	if n := p.Nodegroup; n != nil {
		of.Nodegroup = [3]string{n.AMIType, n.ReleaseVersion, n.Version}
	}
	text, err := json.Marshal(of)
	if err != nil {
		return "" // an empty value never counts as a difference
	}
	return string(text)
}

// Pin implements reverts.Fleet.
func (r Reverts) Pin(ctx context.Context, s snapshot.Snapshot, was map[rollout.ID]rollout.Version) (out reverts.Pinned, err error) {
	review, err := r.render(ctx, s, "reverts", nil, true)
	if err != nil {
		return out, err
	}
	sets := setsOf(review)
	var changes []edit.Change
	pools := map[string][]rollout.ID{} // by the position of a change
	for _, id := range slices.SortedFunc(maps.Keys(was), func(a, b rollout.ID) int { return strings.Compare(a.String(), b.String()) }) {
		w, why := pinWish(sets[id.Target], id, was[id])
		if why != "" {
			out.Left = append(out.Left, reverts.LeftPool{ID: id, Text: why})
			continue
		}
		at := changeKey(w)
		i := slices.IndexFunc(changes, func(o edit.Change) bool { return changeKey(o) == at })
		switch {
		case i < 0:
			changes = append(changes, w)
		case changes[i].Value != w.Value:
			out.Left = append(out.Left, reverts.LeftPool{ID: id, Text: "it shares " + w.Object.String() + " with " + pools[at][0].String() + ", which ran " + fmt.Sprint(changes[i].Value)})
			continue
		}
		pools[at] = append(pools[at], id)
	}
	if len(changes) == 0 {
		return out, nil
	}
	set, err := write(ctx, s.Tree, review, changes)
	if err != nil {
		return out, err
	}
	out.Files = set.Files
	for _, p := range set.Placed {
		for _, id := range pools[changeKey(p.Change)] {
			out.Places = append(out.Places, reverts.PinnedPool{ID: id, Field: p.Field.String(), Value: fmt.Sprint(p.Value), At: p.At.String()})
		}
	}
	for _, l := range set.Refused {
		for _, id := range pools[changeKey(l.Change)] {
			out.Left = append(out.Left, reverts.LeftPool{ID: id, Text: l.Text})
		}
	}
	return out, nil
}

func changeKey(w edit.Change) string {
	return w.Place + " " + w.Object.APIVersion + " " + w.Object.String() + " " + w.Field.String()
}

// pinWish returns the change that makes a pool launch its previous version again, or the reason why there
// is none.
func pinWish(set *intent.Set, id rollout.ID, was rollout.Version) (w edit.Change, why string) {
	if set == nil {
		return w, "its target does not render"
	}
	p := set.Pool(id.Pool)
	if p == nil {
		return w, "Git has no such pool"
	}
	if was.Pin == "" {
		return w, "its earlier version is unknown"
	}
	w = edit.Change{Place: id.Target, Value: was.Pin}
	if object, field, ok := edit.Image(p); ok {
		w.Object, w.Field = object, field
		return w, ""
	}
	if f := p.ForeignTemplate; f != nil && f.VersionField != nil {
		w.Object, w.Field = p.Infrastructure, f.VersionField
		return w, ""
	}
	if p.ForeignTemplate != nil {
		w.Object, w.Field = p.Infrastructure, intent.Path{"metadata", "annotations", "node.k8s.aws/launch-template-version"}
		return w, ""
	}
	return w, "EKS chooses its image"
}
