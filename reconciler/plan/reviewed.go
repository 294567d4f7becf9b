package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// A reviewed plan is applied with the images that it showed, whatever was published
// since: the content of a version, with its image as Git names it, says which version of
// which review it is. So it does not matter how a pull request was merged, nor whether
// its forge has told of that yet.

// ReviewedImage is the image of a version in a plan that somebody reviewed.
type ReviewedImage struct {
	Lookup intent.Lookup `json:"lookup"`
	// ID is the image's; empty where the version keeps the image that the pool has. Words
	// names it for people.
	ID    string `json:"id,omitempty"`
	Words string `json:"words,omitempty"`
	// By says who showed the plan, At when it was made. Outdated says that this is too
	// long ago.
	By       string    `json:"-"`
	At       time.Time `json:"-"`
	Outdated bool      `json:"-"`
}

// ImageCheck asks whether an image is an answer to a lookup.
type ImageCheck struct {
	Lookup intent.Lookup
	ID     string
}

// chooseImage says which image the version has where AWS publishes newer ones: the one
// that was reviewed; else, in a commit's own plan, the one that the pool has where only
// what is published has moved; else the newest.
func (c templates) chooseImage(pool *intent.Pool, w *wantTemplate) {
	r, known := c.in.Reviewed[w.source]
	if !known || r.Lookup != w.lookup {
		if c.in.Own && w.follow && (c.in.Base == nil || c.in.asksAsBefore(pool)) {
			w.follow, w.keeps = false, c.in.Base != nil
		}
		return
	}
	w.was = &r
	checked := c.in.Checked[ImageCheck{Lookup: r.Lookup, ID: r.ID}]
	switch {
	case r.Outdated:
	case r.ID == "":
		w.follow, w.keeps = false, true
	case checked.Image != nil:
		w.take(checked.Image)
	default:
		w.was.Outdated = true
	}
}

// asksAsBefore reports whether what is followed has the pool follow the image that it
// would be given now: then a proposal does not cause that it moves.
func (in Input) asksAsBefore(pool *intent.Pool) bool {
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

// BaseImages are the lookups of images that pools of what is followed ask and follow.
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
func (w *wantTemplate) keepPresent(t observed.Template, candidates []observed.TemplateVersion, inUse []observed.TemplateRef) {
	if !w.keeps {
		return
	}
	w.keeps = false
	has := func(v observed.TemplateVersion) bool {
		return v.Data.ImageID != "" && (madeByWeir(v) || slices.ContainsFunc(inUse, func(r observed.TemplateRef) bool { return versionOf(t, r) == v.Number }))
	}
	if i := slices.IndexFunc(candidates, has); i >= 0 {
		w.data, w.hash, w.keeps = w.with(candidates[i]), "", true
	}
}

// tellImage says what a version that is made has to do with a review, and keeps what a
// review of this plan has to remember.
func (c templates) tellImage(pool *intent.Pool, want *wantTemplate) {
	if !want.published() || want.newest == nil {
		return
	}
	shown := ReviewedImage{Lookup: want.lookup, ID: want.data.ImageID}
	if want.keeps {
		shown.ID = ""
	} else if shown.ID == want.newest.ID {
		shown.Words = want.newest.Words()
	} else if want.was != nil {
		shown.Words = want.was.Words
	}
	if c.resolved == nil {
		c.resolved = map[string]ReviewedImage{}
	}
	c.resolved[want.source] = shown
	path := intent.Path{"spec", "awsLaunchTemplate"}
	newest := named(want.newest.ID, want.newest.Words())
	switch r := want.was; {
	case r == nil || want.newest.ID == want.data.ImageID && (r.ID == want.data.ImageID || r.ID == ""):
	case !r.Outdated && r.ID != "":
		c.note(diag.Info, pool, path, "newer-image", "the image "+named(r.ID, r.Words)+" is taken, as "+r.By+" showed it; AWS publishes "+newest+" by now", "")
	case r.Outdated && r.ID != "":
		why := "the plan is of " + r.At.UTC().Format(time.DateOnly) + ", which is too long ago"
		if a, asked := c.in.Checked[ImageCheck{Lookup: r.Lookup, ID: r.ID}]; asked && a.Image == nil {
			why = a.Problem
		}
		c.note(diag.Warning, pool, path, "reviewed-image-gone", "the image "+named(r.ID, r.Words)+", which "+r.By+" showed, is not taken: "+why+"; it is "+newest+" instead", "")
	}
}

func named(id, words string) string {
	if words == "" {
		return id
	}
	return id + " (" + words + ")"
}

// Resolved are the images of the versions that the plan makes, by SourceHash, as AWS
// answered: what a review of the plan has shown.
func (p *Plan) Resolved() map[string]ReviewedImage { return p.resolved }

// Realized are those of in.Reviewed that AWS holds as they were reviewed, for pools that
// have converged: what is published next is a decision of its own.
func (p *Plan) Realized(pools []PoolStatus) []string {
	converged := map[string]bool{}
	for _, s := range pools {
		converged[s.Namespace+"/"+s.Name] = s.Converged
	}
	out := map[string]bool{}
	for pool, source := range p.reviewed {
		if was, known := out[source]; !known || was {
			out[source] = converged[pool]
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(out)), func(source string) bool { return !out[source] })
}

// holds notes of pools whose version is there that a newer image is left to a later plan,
// and that AWS holds what was reviewed, or as much of it as can be had.
func (c templates) holds(pools []*intent.Pool, want *wantTemplate, v observed.TemplateVersion) {
	if want.follows && want.newest != nil && want.newest.ID != v.Data.ImageID {
		if c.behind == nil {
			c.behind = map[string]bool{}
		}
		for _, p := range pools {
			c.behind[p.Key.String()] = true
		}
	}
	r := want.was
	if r == nil || !r.Outdated && r.ID != "" && r.ID != v.Data.ImageID {
		return
	}
	if c.reviewed == nil {
		c.reviewed = map[string]string{}
	}
	for _, p := range pools {
		c.reviewed[p.Key.String()] = want.source
	}
}
