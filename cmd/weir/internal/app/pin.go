package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/proposal/reverts"
	"github.com/weir-gitops/weir/status/pulls"
)

// Pin implements reverts.Fleet.
func (r reverter) Pin(ctx context.Context, s snapshot.Snapshot, was map[rollout.ID]rollout.Version) (out reverts.Pinned, err error) {
	base := r.g.base.Load()
	if base == nil {
		return out, pulls.ErrEarly
	}
	review, err := base.Review(ctx, r.g.app.planAccounts, fleet.Proposal{Source: r.source, Snapshot: s, Owner: "reverts", All: true})
	if err != nil {
		return out, err
	}
	var places []edit.Place
	for _, p := range review.Places {
		places = append(places, edit.Place{Name: p.Name, Dir: p.Dir, Options: p.Options})
	}
	sets := setsOf(review)
	var wishes []edit.Wish
	pools := map[string][]rollout.ID{} // by the place of a wish
	for _, id := range slices.SortedFunc(maps.Keys(was), func(a, b rollout.ID) int { return strings.Compare(a.String(), b.String()) }) {
		w, why := pinWish(sets[id.Target], id, was[id])
		if why != "" {
			out.Left = append(out.Left, reverts.LeftPool{ID: id, Text: why})
			continue
		}
		at := wishKey(w)
		i := slices.IndexFunc(wishes, func(o edit.Wish) bool { return wishKey(o) == at })
		switch {
		case i < 0:
			wishes = append(wishes, w)
		case wishes[i].Value != w.Value:
			out.Left = append(out.Left, reverts.LeftPool{ID: id, Text: "it shares " + w.Object.String() + " with " + pools[at][0].String() + ", which ran " + fmt.Sprint(wishes[i].Value)})
			continue
		}
		pools[at] = append(pools[at], id)
	}
	if len(wishes) == 0 {
		return out, nil
	}
	set, err := edit.Set(ctx, s.Tree, places, wishes)
	if err != nil {
		return out, err
	}
	out.Files = set.Files
	for _, p := range set.Placed {
		for _, id := range pools[wishKey(p.Wish)] {
			out.Places = append(out.Places, reverts.PinnedPool{ID: id, Field: p.Field.String(), Value: fmt.Sprint(p.Value), At: p.At.String()})
		}
	}
	for _, l := range set.Refused {
		for _, id := range pools[wishKey(l.Wish)] {
			out.Left = append(out.Left, reverts.LeftPool{ID: id, Text: l.Text})
		}
	}
	return out, nil
}

func wishKey(w edit.Wish) string {
	return w.Place + " " + w.Object.APIVersion + " " + w.Object.String() + " " + w.Field.String()
}

// pinWish is the field that has a pool launch what it ran before, or why there is none.
func pinWish(set *intent.Set, id rollout.ID, was rollout.Version) (w edit.Wish, why string) {
	if set == nil {
		return w, "its target does not render"
	}
	p := set.Pool(id.Pool)
	if p == nil {
		return w, "Git has no such pool"
	}
	if was.Pin == "" {
		return w, "what it ran before is not known"
	}
	w = edit.Wish{Place: id.Target, Value: was.Pin}
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
