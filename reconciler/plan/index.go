package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Index arranges a state by the target in its tags. It is made once for a state,
// whatever the number of targets that are planned against it.
type Index struct {
	owned map[ownerKey]owned
	// inUse holds the ids and names of templates that something launches from.
	inUse map[string]bool
	// ofPool and behind hold nodegroups, and the groups behind some, by the pool
	// in their tags.
	ofPool map[string][]observed.NodegroupName
	// replacements holds nodegroups by what comes before the suffix of their names.
	replacements map[observed.NodegroupName][]observed.NodegroupName
	behind       map[string][]string
}

// ownerKey is what three of weir's tags say together.
type ownerKey struct{ instance, source, target string }

// owned is what carries one target's tags, each list in order.
type owned struct {
	groups, templates []string
	nodegroups        []observed.NodegroupName
	pools             map[string]bool
}

// NewIndex arranges s.
func NewIndex(s *observed.State) *Index {
	x := &Index{owned: map[ownerKey]owned{}, inUse: map[string]bool{}, ofPool: map[string][]observed.NodegroupName{}, replacements: map[observed.NodegroupName][]observed.NodegroupName{}, behind: map[string][]string{}}
	note := func(tags map[string]string, put func(*owned)) {
		if tags[observed.TagOwner] == "" {
			return
		}
		key := ownerKey{tags[observed.TagOwner], tags[observed.TagSource], tags[observed.TagTarget]}
		o := x.owned[key]
		if o.pools == nil {
			o.pools = map[string]bool{}
		}
		if tags[observed.TagLaunchConfig] == "" {
			o.pools[tags[observed.TagPool]] = true
		}
		put(&o)
		x.owned[key] = o
	}
	use := func(r observed.TemplateRef) { x.inUse[r.ID], x.inUse[r.Name] = r.ID != "", r.Name != "" }
	for _, name := range slices.Sorted(maps.Keys(s.Groups)) {
		g := s.Groups[name]
		use(g.Template)
		for _, i := range g.Instances {
			use(i.Template)
		}
		own := map[string]string{observed.TagOwner: g.Tags[observed.TagOwner].Value, observed.TagSource: g.Tags[observed.TagSource].Value,
			observed.TagTarget: g.Tags[observed.TagTarget].Value, observed.TagPool: g.Tags[observed.TagPool].Value}
		if pool := own[observed.TagPool]; pool != "" && g.Tags[observed.TagNodegroup].Value != "" {
			x.behind[pool] = append(x.behind[pool], name)
		}
		note(own, func(o *owned) { o.groups = append(o.groups, name) })
	}
	names := make([]observed.NodegroupName, 0, len(s.Nodegroups))
	for n := range s.Nodegroups {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b observed.NodegroupName) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		n := s.Nodegroups[name]
		use(n.Template)
		if base, _, ok := cutSuffix(name.Name); ok {
			at := observed.NodegroupName{Cluster: name.Cluster, Name: base}
			x.replacements[at] = append(x.replacements[at], name)
		}
		if pool := n.Tags[observed.TagPool]; pool != "" {
			x.ofPool[pool] = append(x.ofPool[pool], name)
		}
		note(n.Tags, func(o *owned) { o.nodegroups = append(o.nodegroups, name) })
	}
	for _, name := range slices.Sorted(maps.Keys(s.Templates)) {
		note(s.Templates[name].Tags, func(o *owned) { o.templates = append(o.templates, name) })
	}
	return x
}
