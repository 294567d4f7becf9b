package awsemu

import (
	"strings"
)

// sentTag is a tag of a request with the group that it is for.
type sentTag struct {
	groupTag
	group    string
	hasValue bool
}

func parseGroupTag(p *params) sentTag {
	t := sentTag{
		groupTag: groupTag{Key: p.text("Key"), Value: p.text("Value"), Propagate: p.boolean("PropagateAtLaunch")},
		group:    p.text("ResourceId"), hasValue: p.has("Value"),
	}
	if kind := p.text("ResourceType"); kind != "" && kind != "auto-scaling-group" {
		p.bad("ResourceType", kind, "The only resource type is auto-scaling-group")
	}
	if fault := tagFault(t.Key, t.Value); fault != "" {
		p.reject(fail("ValidationError", "%s: %s", fault, t.Key))
	}
	return t
}

func parseGroupTags(p *params) []sentTag {
	var out []sentTag
	for _, it := range p.list("Tags") {
		t := parseGroupTag(it)
		if t.group == "" {
			p.reject(fail("ValidationError", "Resource id is required for tag %s", t.Key))
		}
		out = append(out, t)
	}
	return out
}

// taggedGroups finds the groups of a request's tags.
func (r *region) taggedGroups(sent []sentTag) (map[string]*asgGroup, error) {
	groups := map[string]*asgGroup{}
	for _, t := range sent {
		g := r.AutoScaling.Groups.get(t.group)
		if g == nil {
			return nil, fail("ValidationError", "No AutoScalingGroup found: AutoScalingGroup %s not found", t.group)
		}
		groups[t.group] = g
	}
	return groups, nil
}

func createOrUpdateTags(rq *request, sent []sentTag) error {
	groups, err := rq.region.taggedGroups(sent)
	if err != nil {
		return err
	}
	added := map[string]int{}
	for _, t := range sent {
		if _, there := groups[t.group].tagIndex(t.Key); !there {
			added[t.group]++
		}
	}
	limit := rq.region.quota("tags")
	for name, n := range added {
		if len(groups[name].Tags)+n > limit {
			return fail("LimitExceeded", "The maximum number of tags for a resource has been reached: %d", limit)
		}
	}
	for _, t := range sent {
		groups[t.group].setTag(t.groupTag)
	}
	return nil
}

// deleteGroupTags removes tags by key. One that is not there is no fault.
func deleteGroupTags(rq *request, sent []sentTag) error {
	groups, err := rq.region.taggedGroups(sent)
	if err != nil {
		return err
	}
	for _, t := range sent {
		g := groups[t.group]
		if i, ok := g.tagIndex(t.Key); ok && (!t.hasValue || t.Value == "" || g.Tags[i].Value == t.Value) {
			g.Tags = append(append([]groupTag(nil), g.Tags[:i]...), g.Tags[i+1:]...)
		}
	}
	return nil
}

type describeTagsInput struct {
	filters []groupFilter
	token   string
	limit   int
}

func parseDescribeGroupTags(p *params) describeTagsInput {
	return describeTagsInput{
		filters: parseGroupFilters(p, "auto-scaling-group", "key", "value", "propagate-at-launch"),
		token:   p.text("NextToken"), limit: pageLimit(p, 50, 100),
	}
}

func describeGroupTags(rq *request, in describeTagsInput) error {
	groups := &rq.region.AutoScaling.Groups
	var keys []string
	rows := map[string]groupTag{}
	for _, name := range groups.sorted() {
		for _, t := range groups.get(name).Tags {
			if !in.accept(name, t) {
				continue
			}
			key := name + "\x00" + t.Key
			keys = append(keys, key)
			rows[key] = t
		}
	}
	w := &rq.xml
	w.open("Tags")
	next, err := rq.page(keys, in.token, in.limit, func(key string) bool {
		name, _, _ := strings.Cut(key, "\x00")
		w.open("member")
		w.writeGroupTag(name, rows[key])
		w.close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.close("Tags")
	w.optional("NextToken", next)
	return nil
}

func (in *describeTagsInput) accept(group string, t groupTag) bool {
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
		if !contains(f.values, text) {
			return false
		}
	}
	return true
}

func (w *xmlWriter) writeGroupTag(group string, t groupTag) {
	w.text("ResourceId", group)
	w.text("ResourceType", "auto-scaling-group")
	w.text("Key", t.Key)
	w.text("Value", t.Value)
	w.boolean("PropagateAtLaunch", t.Propagate)
}
