package asg

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// sentTag is a tag in a request, with its group.
type sentTag struct {
	ResourceID, ResourceType, Key, Value string
	PropagateAtLaunch                    bool
}

func (t *sentTag) check() error {
	if t.ResourceType != "" && t.ResourceType != "auto-scaling-group" {
		return badValue("ResourceType", t.ResourceType, "The only resource type is auto-scaling-group")
	}
	if fault := world.TagFault(t.Key, t.Value); fault != "" {
		return invalid("%s: %s", fault, t.Key)
	}
	return nil
}

// tag returns the tag in the form of a group.
func (t *sentTag) tag() GroupTag {
	return GroupTag{Key: t.Key, Value: t.Value, Propagate: t.PropagateAtLaunch}
}

type tagsInput struct{ Tags []sentTag }

func (in *tagsInput) Check() error {
	for _, t := range in.Tags {
		if err := t.check(); err != nil {
			return err
		}
		if t.ResourceID == "" {
			return invalid("Resource id is required for tag %s", t.Key)
		}
	}
	return nil
}

// taggedGroups finds the groups of a request's tags.
func (r *Region) taggedGroups(sent []sentTag) (map[string]*Group, error) {
	groups := map[string]*Group{}
	for _, t := range sent {
		g := r.Groups.Get(t.ResourceID)
		if g == nil {
			return nil, invalid("No AutoScalingGroup found: AutoScalingGroup %s not found", t.ResourceID)
		}
		groups[t.ResourceID] = g
	}
	return groups, nil
}

func createOrUpdateTags(rq *request, in tagsInput) error {
	groups, err := rq.Region.taggedGroups(in.Tags)
	if err != nil {
		return err
	}
	added := map[string]int{}
	for _, t := range in.Tags {
		if _, there := groups[t.ResourceID].tagIndex(t.Key); !there {
			added[t.ResourceID]++
		}
	}
	limit := rq.Region.Quota("tags")
	for name, n := range added {
		if len(groups[name].Tags)+n > limit {
			return wire.Fail("LimitExceeded", "The maximum number of tags for a resource has been reached: %d", limit)
		}
	}
	for _, t := range in.Tags {
		groups[t.ResourceID].SetTag(t.tag())
	}
	return nil
}

// deleteGroupTags removes tags by key. It ignores missing ones.
func deleteGroupTags(rq *request, in tagsInput) error {
	groups, err := rq.Region.taggedGroups(in.Tags)
	if err != nil {
		return err
	}
	for _, t := range in.Tags {
		g := groups[t.ResourceID]
		if i, ok := g.tagIndex(t.Key); ok && (t.Value == "" || g.Tags[i].Value == t.Value) {
			g.Tags = append(append([]GroupTag(nil), g.Tags[:i]...), g.Tags[i+1:]...)
		}
	}
	return nil
}

type describeTagsInput struct {
	paging
	Filters []groupFilter
}

func (in *describeTagsInput) Check() error {
	return cmp.Or(in.bound(50, 100), checkFilters(in.Filters, "auto-scaling-group", "key", "value", "propagate-at-launch"))
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
	next, err := rq.Page(keys, in.NextToken, in.limit, func(key string) bool {
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
	for _, f := range in.Filters {
		text := group
		switch f.Name {
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
		if !slices.Contains(f.Values, text) {
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
