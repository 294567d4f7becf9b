package template

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// chooseImage selects the image of a version if AWS publishes newer ones: the reviewed image.
// Without a review, a commit's own plan keeps the pool's present image if only the published image
// has changed. Otherwise it is the newest image.
func (c Planner) chooseImage(pool *intent.Pool, w *Want) {
	if c.In.Earlier(pool.Key.String()) != nil {
		w.follow, w.keeps = false, true
		return
	}
	r, known := c.In.Reviewed[w.source]
	if !known || r.Lookup != w.lookup {
		if c.In.Own && w.follow && (c.In.Base == nil || asksAsBefore(*c.In, pool)) {
			w.follow, w.keeps = false, c.In.Base != nil
		}
		return
	}
	w.was = &r
	checked := c.In.Checked[model.ImageCheck{Lookup: r.Lookup, ID: r.ID}]
	switch {
	case r.Outdated:
	case r.ID == "":
		w.follow, w.keeps = false, true
	case checked.Image != nil:
		w.setImage(checked.Image)
	default:
		w.was.Outdated = true
	}
}

// asksAsBefore reports whether the followed commit already makes the pool follow the same image. A
// move to that image is then not caused by the proposal.
func asksAsBefore(in model.Input, pool *intent.Pool) bool {
	now := in.Answers[pool.LaunchTemplate.Image].Image
	return now != nil && slices.ContainsFunc(in.Base.Pools, func(b intent.Pool) bool {
		if b.LaunchTemplate == nil || (b.LaunchConfig == nil) != (pool.LaunchConfig == nil) {
			return false
		}
		follows := b.FollowImages
		if b.LaunchConfig != nil {
			if b.LaunchConfig.Key != pool.LaunchConfig.Key {
				return false
			}
			follows = b.LaunchConfig.FollowImages
		} else if b.Key != pool.Key {
			return false
		}
		before := in.Answers[b.LaunchTemplate.Image].Image
		return follows && before != nil && before.ID == now.ID
	})
}

// BaseImages returns the image lookups that pools of the followed commit follow.
func BaseImages(set *intent.Set) []intent.Lookup {
	var out []intent.Lookup
	for i := range set.Pools {
		p := &set.Pools[i]
		if t := p.LaunchTemplate; t != nil && t.Image.Kind != "" && (p.FollowImages || p.LaunchConfig != nil && p.LaunchConfig.FollowImages) {
			out = append(out, t.Image)
		}
	}
	return out
}

// keepPresent sets the image of a new version to the one that the pool has: the image of the newest
// version that weir made, else of a version in use.
func (w *Want) keepPresent(t observed.Template, candidates []observed.TemplateVersion, inUse []observed.TemplateRef) {
	if !w.keeps {
		return
	}
	w.keeps = false
	has := func(v observed.TemplateVersion) bool {
		return v.Data.ImageID != "" && (MadeByWeir(v) || slices.ContainsFunc(inUse, func(r observed.TemplateRef) bool { return model.VersionOf(t, r) == v.Number }))
	}
	if i := slices.IndexFunc(candidates, has); i >= 0 {
		w.Data, w.hash, w.keeps = w.with(candidates[i]), "", true
	}
}

// noteImage reports how the image of a new version relates to a review. It also records the image
// for a review of this plan.
func (c Planner) noteImage(pool *intent.Pool, want *Want) {
	if !want.published() || want.newest == nil {
		return
	}
	shown := model.ReviewedImage{Lookup: want.lookup, ID: want.Data.ImageID}
	if want.keeps {
		shown.ID = ""
	} else if shown.ID == want.newest.ID {
		shown.Words = want.newest.Words()
	} else if want.was != nil {
		shown.Words = want.was.Words
	}
	c.Resolved[want.source] = shown
	path := intent.Path{"spec", "awsLaunchTemplate"}
	newest := named(want.newest.ID, want.newest.Words())
	switch r := want.was; {
	case r == nil || want.newest.ID == want.Data.ImageID && (r.ID == want.Data.ImageID || r.ID == ""):
	case !r.Outdated && r.ID != "":
		c.Note(diag.Info, pool, path, "newer-image", "weir uses the image "+named(r.ID, r.Words)+", as "+r.By+" showed; AWS now publishes "+newest, "")
	case r.Outdated && r.ID != "":
		why := "the plan was made on " + r.At.UTC().Format(time.DateOnly) + ", which is too long ago"
		if a, asked := c.In.Checked[model.ImageCheck{Lookup: r.Lookup, ID: r.ID}]; asked && a.Image == nil {
			why = a.Problem
		}
		c.Note(diag.Warning, pool, path, "reviewed-image-gone", "weir does not use the image "+named(r.ID, r.Words)+", which "+r.By+" showed: "+why+"; it uses "+newest+" instead", "")
	}
}

func named(id, words string) string {
	if words == "" {
		return id
	}
	return id + " (" + words + ")"
}

// noteReviewed notes, for pools whose version exists, whether a newer image is left to a later
// plan, and whether AWS has the reviewed image, if that is still usable.
func noteReviewed(all model.PoolPlans, pools []*intent.Pool, want *Want, v observed.TemplateVersion) {
	if want.follows && want.newest != nil && want.newest.ID != v.Data.ImageID {
		for _, p := range pools {
			all.Of(p.Key).Behind = true
		}
	}
	r := want.was
	if r == nil || !r.Outdated && r.ID != "" && r.ID != v.Data.ImageID {
		return
	}
	for _, p := range pools {
		all.Of(p.Key).Reviewed = want.source
	}
}

// noteUnkept reports how EC2 changed the content of a version that weir made a second time for that
// reason. It is a warning if EC2 added content or changed the case of letters. It is an error if a
// value in Git is missing.
func (c Planner) noteUnkept(pool *intent.Pool, want *Want, t observed.Template, v observed.TemplateVersion) {
	s, ours := content.DescriptionHashes(v.Description)
	if !ours || s.Confirmed == "" || want.matches(v, s) {
		return
	}
	sev := diag.Warning
	changes := templateChanges(c.In, pool, v, want.with(v))
	if slices.ContainsFunc(changes, func(ch step.Change) bool {
		return ch.To != nil && !strings.EqualFold(string(content.Canonical(ch.From)), string(content.Canonical(ch.To)))
	}) {
		sev = diag.Error
	}
	c.Note(sev, pool, intent.Path{"spec", "awsLaunchTemplate"}, model.CodeNotTaken, "AWS took version "+strconv.FormatInt(v.Number, 10)+" of the launch template "+t.Name+
		" and answers with different content, as for the version before (AWS's answer → written value): "+model.ChangeWords(changes),
		"the pool stays on that version, and no further one is made; write in Git what AWS answers")
}
