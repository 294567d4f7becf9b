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

// chooseImage says which image the version has where AWS publishes newer ones: the one
// that was reviewed; else, in a commit's own plan, the pool's present one where only
// the published image has moved; else the newest.
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

// asksAsBefore reports whether the followed commit already makes the pool follow the
// image that it would get now: then a proposal does not cause that it moves.
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

// BaseImages are the lookups of images that the followed commit's pools ask and follow.
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

// keepPresent gives a version that is to be made the image that the pool has: that of
// the newest version of weir's, else of one in use.
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

// noteImage says what a version that is made has to do with a review, and keeps what a
// review of this plan has to remember.
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
		c.Note(diag.Info, pool, path, "newer-image", "the image "+named(r.ID, r.Words)+" is taken, as "+r.By+" showed it; AWS now publishes "+newest+" by now", "")
	case r.Outdated && r.ID != "":
		why := "the plan is of " + r.At.UTC().Format(time.DateOnly) + ", which is too old"
		if a, asked := c.In.Checked[model.ImageCheck{Lookup: r.Lookup, ID: r.ID}]; asked && a.Image == nil {
			why = a.Problem
		}
		c.Note(diag.Warning, pool, path, "reviewed-image-gone", "the image "+named(r.ID, r.Words)+", which "+r.By+" showed, is not taken: "+why+"; it is "+newest+" instead", "")
	}
}

func named(id, words string) string {
	if words == "" {
		return id
	}
	return id + " (" + words + ")"
}

// noteReviewed notes of pools whose version is there that a newer image is left to a later plan,
// and that AWS holds what was reviewed, or as much of it as can be had.
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

// noteUnkept says what EC2 keeps otherwise of a version that was made twice for that
// reason. Where it holds more than was asked for, or writes it in other letters, that is
// worth knowing; where it does not hold what Git asks for, the pool is not as Git says.
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
		" and answers with another content, as for the one before: what it answers → what was written: "+model.ChangeWords(changes),
		"the pool stays on that version, and no further one is made; write in Git what AWS answers")
}
