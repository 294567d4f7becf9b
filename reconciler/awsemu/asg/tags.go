package asg

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// sentTag is a tag of a request with the group that it is for.
type sentTag struct {
	GroupTag
	group    string
	hasValue bool
}

func parseGroupTag(p *wire.Params) sentTag {
	t := sentTag{
		GroupTag: GroupTag{Key: p.Text("Key"), Value: p.Text("Value"), Propagate: p.Boolean("PropagateAtLaunch")},
		group:    p.Text("ResourceId"), hasValue: p.Has("Value"),
	}
	if kind := p.Text("ResourceType"); kind != "" && kind != "auto-scaling-group" {
		p.Bad("ResourceType", kind, "The only resource type is auto-scaling-group")
	}
	if fault := world.TagFault(t.Key, t.Value); fault != "" {
		p.Reject(wire.Fail("ValidationError", "%s: %s", fault, t.Key))
	}
	return t
}

func parseGroupTags(p *wire.Params) []sentTag {
	var out []sentTag
	for _, it := range p.List("Tags") {
		t := parseGroupTag(it)
		if t.group == "" {
			p.Reject(wire.Fail("ValidationError", "Resource id is required for tag %s", t.Key))
		}
		out = append(out, t)
	}
	return out
}

// taggedGroups finds the groups of a request's tags.
func (r *Region) taggedGroups(sent []sentTag) (map[string]*Group, error) {
	groups := map[string]*Group{}
	for _, t := range sent {
		g := r.Groups.Get(t.group)
		if g == nil {
			return nil, wire.Fail("ValidationError", "No AutoScalingGroup found: AutoScalingGroup %s not found", t.group)
		}
		groups[t.group] = g
	}
	return groups, nil
}

func createOrUpdateTags(rq *request, sent []sentTag) error {
	groups, err := rq.Region.taggedGroups(sent)
	if err != nil {
		return err
	}
	added := map[string]int{}
	for _, t := range sent {
		if _, there := groups[t.group].tagIndex(t.Key); !there {
			added[t.group]++
		}
	}
	limit := rq.Region.Quota("tags")
	for name, n := range added {
		if len(groups[name].Tags)+n > limit {
			return wire.Fail("LimitExceeded", "The maximum number of tags for a resource has been reached: %d", limit)
		}
	}
	for _, t := range sent {
		groups[t.group].SetTag(t.GroupTag)
	}
	return nil
}

// deleteGroupTags removes tags by key. One that is not there is no fault.
func deleteGroupTags(rq *request, sent []sentTag) error {
	groups, err := rq.Region.taggedGroups(sent)
	if err != nil {
		return err
	}
	for _, t := range sent {
		g := groups[t.group]
		if i, ok := g.tagIndex(t.Key); ok && (!t.hasValue || t.Value == "" || g.Tags[i].Value == t.Value) {
			g.Tags = append(append([]GroupTag(nil), g.Tags[:i]...), g.Tags[i+1:]...)
		}
	}
	return nil
}

type describeTagsInput struct {
	filters []groupFilter
	token   string
	limit   int
}

func parseDescribeGroupTags(p *wire.Params) describeTagsInput {
	return describeTagsInput{
		filters: parseGroupFilters(p, "auto-scaling-group", "key", "value", "propagate-at-launch"),
		token:   p.Text("NextToken"), limit: pageLimit(p, 50, 100),
	}
}

func describeGroupTags(rq *request, in describeTagsInput) error {
	groups := &rq.Region.Groups
	var keys []string
	rows := map[string]GroupTag{}
	for _, name := range groups.Sorted() {
		for _, t := range groups.Get(name).Tags {
			if !in.accept(name, t) {
				continue
			}
			key := name + "\x00" + t.Key
			keys = append(keys, key)
			rows[key] = t
		}
	}
	w := &rq.XML
	w.Open("Tags")
	next, err := rq.Page(keys, in.token, in.limit, func(key string) bool {
		name, _, _ := strings.Cut(key, "\x00")
		w.Open("member")
		writeGroupTag(w, name, rows[key])
		w.Close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.Close("Tags")
	w.Optional("NextToken", next)
	return nil
}

func (in *describeTagsInput) accept(group string, t GroupTag) bool {
	for _, f := range in.filters {
		text := group
		switch f.name {
		case "key":
			text = t.Key
		case "value":
			text = t.Value
		case "propagate-at-launch":
			text = "false"
			if t.Propagate {
				text = "true"
			}
		}
		if !slices.Contains(f.values, text) {
			return false
		}
	}
	return true
}

func writeGroupTag(w *wire.XML, group string, t GroupTag) {
	w.Text("ResourceId", group)
	w.Text("ResourceType", "auto-scaling-group")
	w.Text("Key", t.Key)
	w.Text("Value", t.Value)
	w.Boolean("PropagateAtLaunch", t.Propagate)
}
