package model

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Index groups the resources of a state by the target in their tags. It is built once for a state,
// regardless of the number of targets that are planned with it.
type Index struct {
	owned map[ownerKey]Owned
	// InUse is the set of ids and names of templates from which something launches.
	InUse map[string]bool
	// ofPool lists nodegroups, and Behind the groups behind nodegroups, by the pool in their tags.
	ofPool map[string][]observed.NodegroupName
	// Replacements lists nodegroups by the part of their names before the suffix of a replacement.
	Replacements map[observed.NodegroupName][]observed.NodegroupName
	Behind       map[string][]string
	// groupsOf lists all other groups by the pool in their tags.
	groupsOf map[string][]string
}

// ownerKey joins the values of three of weir's tags.
type ownerKey struct{ instance, source, target string }

// Owned lists the resources that carry one target's tags, each list in order.
type Owned struct {
	Groups, Templates []string
	Nodegroups        []observed.NodegroupName
}

// NewIndex returns the index of s.
func NewIndex(s *observed.State) *Index {
	x := &Index{owned: map[ownerKey]Owned{}, InUse: map[string]bool{}, ofPool: map[string][]observed.NodegroupName{}, Replacements: map[observed.NodegroupName][]observed.NodegroupName{}, Behind: map[string][]string{}, groupsOf: map[string][]string{}}
	note := func(tags map[string]string, put func(*Owned)) {
		if tags[observed.TagOwner] == "" {
			return
		}
		key := ownerKey{tags[observed.TagOwner], tags[observed.TagSource], tags[observed.TagTarget]}
		o := x.owned[key]
		put(&o)
		x.owned[key] = o
	}
	use := func(r observed.TemplateRef) { x.InUse[r.ID], x.InUse[r.Name] = r.ID != "", r.Name != "" }
	for _, name := range slices.Sorted(maps.Keys(s.Groups)) {
		g := s.Groups[name]
		use(g.Template)
		for _, i := range g.Instances {
			use(i.Template)
		}
		own := map[string]string{observed.TagOwner: g.Tags[observed.TagOwner].Value, observed.TagSource: g.Tags[observed.TagSource].Value,
			observed.TagTarget: g.Tags[observed.TagTarget].Value, observed.TagPool: g.Tags[observed.TagPool].Value}
		if pool := own[observed.TagPool]; pool != "" {
			of := x.groupsOf
			if g.Tags[observed.TagNodegroup].Value != "" {
				of = x.Behind
			}
			of[pool] = append(of[pool], name)
		}
		note(own, func(o *Owned) { o.Groups = append(o.Groups, name) })
	}
	names := make([]observed.NodegroupName, 0, len(s.Nodegroups))
	for n := range s.Nodegroups {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b observed.NodegroupName) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		n := s.Nodegroups[name]
		use(n.Template)
		if base, _, ok := CutSuffix(name.Name); ok {
			at := observed.NodegroupName{Cluster: name.Cluster, Name: base}
			x.Replacements[at] = append(x.Replacements[at], name)
		}
		if pool := n.Tags[observed.TagPool]; pool != "" {
			x.ofPool[pool] = append(x.ofPool[pool], name)
		}
		note(n.Tags, func(o *Owned) { o.Nodegroups = append(o.Nodegroups, name) })
	}
	for _, name := range slices.Sorted(maps.Keys(s.Templates)) {
		note(s.Templates[name].Tags, func(o *Owned) { o.Templates = append(o.Templates, name) })
	}
	return x
}

// Mine returns the resources that carry exactly this target's tags. Only these can be orphans of
// the target.
func (in Input) Mine() Owned {
	return in.Index.owned[ownerKey{in.Policy.Instance, in.Policy.Source, in.Policy.Target}]
}
