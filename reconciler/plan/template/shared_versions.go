package template

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// versionsOf plans the versions of a shared template: for each content that its pools want, it
// finds an existing version or makes one.
func (c Planner) versionsOf(s *Shared, pool *intent.Pool) {
	wants := wantedOf(c.In, s)
	if len(wants) == 0 {
		return
	}
	name := wants[0].want.name
	t, found := c.In.State.Templates[name]
	if !found {
		if !c.In.State.Absent.Templates[name] {
			c.Needs.TemplateNames = append(c.Needs.TemplateNames, name)
			return
		}
		c.makeShared(s, wants, observed.Template{Name: name}, nil)
		return
	}
	claim := model.Claim{Resource: step.LaunchTemplate, Name: name}
	if o := c.In.Policy.Owns(t.Tags, c.In.Fleet.Wanted[claim], c.In.Fleet.Whole); !o.Ours && !c.adoptTemplate(pool, wants[0].want, &t, &o) {
		c.Conflict(pool, step.LaunchTemplate, name, o)
		return
	}
	if c.Unread(pool, "the versions of the launch template "+t.Name, c.In.State.Unread.Versions[t.Name]) {
		return
	}
	inUse := inUseBy(c.In, s.Users)
	candidates, read := c.candidates(t, inUse)
	if !read {
		return
	}
	slices.SortFunc(candidates, func(a, b observed.TemplateVersion) int { return cmp.Compare(b.Number, a.Number) })
	missing, candidates, read := c.findVersions(pool, t, wants, candidates)
	if !read {
		return
	}
	p := pruning{makes: len(missing) > 0, inUse: inUse}
	var all []*Want
	for _, x := range wants {
		all = append(all, x.want)
		if x.Known {
			c.noteNewerImage(pool, x.want, t, t.Versions[x.Version.Number])
			c.noteUnkept(pool, x.want, t, t.Versions[x.Version.Number])
			noteReviewed(c.Pools, x.users, x.want, t.Versions[x.Version.Number])
			p.wanted = append(p.wanted, x.Version.Number)
		}
	}
	p.wanted = slices.Compact(slices.Sorted(slices.Values(p.wanted)))
	if !p.makes {
		c.noteForeignVersion(pool, t, all, p.wanted)
	}
	// A pool whose lookups have no answer may want any of the versions.
	if !slices.ContainsFunc(s.Users, func(u *intent.Pool) bool { x := s.Of[u.Key]; return x == nil || x.want == nil }) {
		c.prune(pool, wants[0].want, t, p)
	}
	c.tagTemplate(pool, wants[0].want, t)
	c.makeShared(s, missing, t, candidates)
}

// wantedOf returns the contents that pools want of a shared template. Contents without a hold come
// first, so that versions made in this pass get the numbers that the plan shows.
func wantedOf(in *model.Input, s *Shared) []*SharedContent {
	wants := slices.DeleteFunc(slices.Clone(s.contents), func(x *SharedContent) bool { return x.want == nil })
	held := func(x *SharedContent) bool { return in.HoldOfAll(x.users) != "" }
	return append(slices.DeleteFunc(slices.Clone(wants), held), slices.DeleteFunc(wants, func(x *SharedContent) bool { return !held(x) })...)
}

// inUseBy returns the versions that pools, and their machines, have.
func inUseBy(in *model.Input, users []*intent.Pool) (refs []observed.TemplateRef) {
	for _, u := range users {
		refs = append(refs, refsOf(*in, u)...)
	}
	return slices.DeleteFunc(refs, func(r observed.TemplateRef) bool { return r == observed.TemplateRef{} })
}

// findVersions looks for a version with each wanted content, and returns the contents that no version
// has. If several versions match, it prefers one that a pool with this content already has, so that no
// pool moves between equal versions. Otherwise it takes the newest, which was made and not rolled out
// yet, or to which the pools return.
//
// It first searches candidates, which are read already. Then it searches the other versions by the
// hashes that weir recorded, and requests those that match and are not read yet: read is false until
// they are. searched is candidates and the versions whose content does not match their hashes.
func (c Planner) findVersions(pool *intent.Pool, t observed.Template, wants []*SharedContent, candidates []observed.TemplateVersion) (missing []*SharedContent, searched []observed.TemplateVersion, read bool) {
	matching := mayHold(candidates)
	for _, x := range wants {
		var refs []observed.TemplateRef
		has := map[int64]bool{}
		for _, u := range x.users {
			for _, r := range refsOf(*c.In, u) {
				if n := model.VersionOf(t, r); !has[n] {
					has[n], refs = true, append(refs, r)
				}
			}
		}
		matches := matching(x.want)
		v, ok := x.want.findIn(t, slices.DeleteFunc(slices.Clone(matches), func(v observed.TemplateVersion) bool { return !has[v.Number] }), refs)
		if !ok {
			v, ok = x.want.findIn(t, matches, refs)
		}
		if ok {
			x.Version, x.Known = x.want.have(t, v), true
		} else {
			missing = append(missing, x)
		}
	}
	if len(missing) == 0 || t.LatestVersion <= int64(len(candidates)) {
		return missing, candidates, true
	}
	if t.Contents == nil {
		if !c.Unread(pool, "the versions of the launch template "+t.Name, c.In.State.Unread.VersionUsers[t.Name]) {
			c.Needs.Numbers = append(c.Needs.Numbers, t.Name)
		}
		return missing, candidates, false
	}
	numbers := slices.Sorted(maps.Keys(t.Contents))
	slices.Reverse(numbers)
	read = true
	missing = slices.DeleteFunc(missing, func(x *SharedContent) bool {
		for _, n := range numbers {
			hashes, ok := content.Hashes(t.Contents[n])
			if !ok || !x.want.named(hashes) || t.Missing[n] {
				continue
			}
			v, known := c.Version(t, n)
			if !known {
				read = false
				return false
			}
			if x.want.is(v) {
				x.Version, x.Known = x.want.have(t, v), true
				return true
			}
			candidates = append(candidates, v) // its description does not match its content
		}
		return false
	})
	return missing, candidates, read
}

// mayHold returns a function that selects the versions that may have a content, newest first:
// versions whose description names it, and versions that weir did not make.
func mayHold(versions []observed.TemplateVersion) func(*Want) []observed.TemplateVersion {
	bySource, byBody := map[string][]observed.TemplateVersion{}, map[string][]observed.TemplateVersion{}
	var foreign []observed.TemplateVersion
	for _, v := range versions {
		if s, ours := content.DescriptionHashes(v.Description); ours {
			bySource[s.Source], byBody[s.Body] = append(bySource[s.Source], v), append(byBody[s.Body], v)
		} else {
			foreign = append(foreign, v)
		}
	}
	return func(w *Want) []observed.TemplateVersion {
		named := byBody
		key := w.body()
		if w.keepsImage() {
			named, key = bySource, w.source
		}
		out := slices.Concat(named[key], foreign)
		slices.SortStableFunc(out, func(a, b observed.TemplateVersion) int { return cmp.Compare(b.Number, a.Number) })
		return out
	}
}

// makeShared plans the missing versions, each once. If the template does not exist, the first
// version creates it.
func (c Planner) makeShared(s *Shared, missing []*SharedContent, t observed.Template, candidates []observed.TemplateVersion) {
	number := t.LatestVersion
	there := candidates
	for len(missing) > 0 {
		x := missing[0]
		pool, part := s.AsPool(x.users), c.Fork()
		part.Hold = c.In.HoldOfAll(x.users)
		var refs []observed.TemplateRef
		for _, u := range x.users {
			refs = append(refs, refsOf(*c.In, u)...)
		}
		// The other versions are for pools that want other content.
		x.want.keepPresent(t, slices.DeleteFunc(slices.Clone(there), func(v observed.TemplateVersion) bool {
			return !slices.ContainsFunc(refs, func(r observed.TemplateRef) bool { return model.VersionOf(t, r) == v.Number })
		}), refs)
		var version Version
		if number++; number == 1 {
			version = part.createTemplate(pool, x.want)
		} else {
			version = part.makeVersion(pool, x.want, t, number, candidates, refs)
		}
		made := observed.TemplateVersion{Number: number, Description: x.want.description(c.In.Commit, ""), Data: x.want.Data, Body: x.want.body()}
		var users []*intent.Pool
		missing = slices.DeleteFunc(missing, func(y *SharedContent) bool {
			if y != x && !y.want.is(made) {
				return false
			}
			y.Version, y.Known = version, true
			users = append(users, y.users...)
			return true
		})
		if len(candidates) == 0 {
			candidates = append(candidates, made) // the next version is compared with it
		}
		s.Attribute(users, part.Hold, part.Steps, nil)
		c.Take(part.Result)
	}
}
