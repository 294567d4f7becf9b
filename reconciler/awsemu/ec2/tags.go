package ec2

import (
	"sort"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

type createTagsInput struct {
	Resources []string
	Tags      []world.Tag
}

func (in *createTagsInput) Check() error {
	for _, t := range in.Tags {
		if err := checkTag(t); err != nil {
			return err
		}
	}
	return checkTagged(in.Resources)
}

type deleteTagsInput struct {
	Resources []string
	Tags      []tagSelector // none: all
}

func (in *deleteTagsInput) Check() error {
	if len(in.Tags) > 1000 {
		return badValue("Tag", strconv.Itoa(len(in.Tags)), "At most 1000 tags can be deleted in one request.")
	}
	for _, t := range in.Tags {
		if strings.HasPrefix(strings.ToLower(t.Key), "aws:") {
			return badTag(t.Key, "Tag keys starting with 'aws:' are reserved for internal use")
		}
	}
	return checkTagged(in.Resources)
}

func checkTagged(resources []string) error {
	if len(resources) > 1000 {
		return badValue("ResourceId", strconv.Itoa(len(resources)), "At most 1000 resources can be tagged in one request.")
	}
	return nil
}

func checkTag(t world.Tag) error {
	if fault := world.TagFault(t.Key, t.Value); fault != "" {
		return badTag(t.Key, fault)
	}
	return nil
}

func badTag(key, why string) *wire.Error {
	return wire.Fail("InvalidParameterValue", "Value ( %s ) for parameter key is invalid. %s", key, why)
}

// tagSelector names a tag to delete. If Value is set, the tag must have that value.
type tagSelector struct {
	Key   string
	Value *string
}

// taggable returns the tags of the EC2 resource with the id.
func (r *Region) taggable(id string) (*world.Tags, *wire.Error) {
	kind, _, _ := strings.Cut(id, "-")
	code := ""
	switch kind {
	case "lt":
		if t := r.LaunchTemplates.Get(id); t != nil {
			return &t.Tags, nil
		}
		code = "InvalidLaunchTemplateId.NotFound"
	case "i":
		if in := r.Instances.Get(id); in != nil {
			return &in.Tags, nil
		}
		code = "InvalidInstanceID.NotFound"
	case "vpc":
		if v := r.Vpcs.Get(id); v != nil {
			return &v.Tags, nil
		}
		code = "InvalidVpcID.NotFound"
	case "subnet":
		if s := r.Subnets.Get(id); s != nil {
			return &s.Tags, nil
		}
		code = "InvalidSubnetID.NotFound"
	case "sg":
		if g := r.SecurityGroups.Get(id); g != nil {
			return &g.Tags, nil
		}
		code = "InvalidGroup.NotFound"
	case "ami":
		if im := r.Images.Get(id); im != nil {
			return &im.Tags, nil
		}
		code = "InvalidAMIID.NotFound"
	case "key":
		if k := r.KeyPairs.Get(id); k != nil {
			return &k.Tags, nil
		}
		code = "InvalidKeyPair.NotFound"
	case "pg":
		if g := r.PlacementGroups.Get(id); g != nil {
			return &g.Tags, nil
		}
		code = "InvalidPlacementGroupId.NotFound"
	case "cr":
		if c := r.Reservations.Get(id); c != nil {
			return &c.Tags, nil
		}
		code = "InvalidCapacityReservationId.NotFound"
	case "vol":
		if v := r.Volumes.Get(id); v != nil {
			return &v.Tags, nil
		}
		code = "InvalidVolume.NotFound"
	default:
		return nil, wire.Fail("InvalidID", "The ID '%s' is not valid", id)
	}
	return nil, wire.Fail(code, "The ID '%s' does not exist", id)
}

func createTags(rq *request, in createTagsInput) error {
	targets, err := rq.Region.taggables(in.Resources)
	if err != nil {
		return err
	}
	for _, target := range targets {
		after := target.Clone()
		for _, t := range in.Tags {
			after.Set(t.Key, t.Value)
		}
		if after.UserCount() > rq.Region.Quota("tags") {
			return tagLimit()
		}
	}
	for _, target := range targets {
		for _, t := range in.Tags {
			target.Set(t.Key, t.Value)
		}
	}
	rq.XML.Boolean("return", true)
	return nil
}

// taggables finds all resources before the caller changes any of them.
func (r *Region) taggables(ids []string) ([]*world.Tags, error) {
	out := make([]*world.Tags, 0, len(ids))
	for _, id := range ids {
		target, err := r.taggable(id)
		if err != nil {
			return nil, err
		}
		out = append(out, target)
	}
	return out, nil
}

func tagLimit() *wire.Error {
	return wire.Fail("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
}

// deleteTags removes tags. Without a list of tags, it removes all tags set by users.
func deleteTags(rq *request, in deleteTagsInput) error {
	targets, err := rq.Region.taggables(in.Resources)
	if err != nil {
		return err
	}
	for _, target := range targets {
		if len(in.Tags) == 0 {
			kept := world.Tags{}
			for _, t := range *target {
				if strings.HasPrefix(t.Key, "aws:") {
					kept = append(kept, t)
				}
			}
			*target = kept
		}
		for _, sel := range in.Tags {
			value, has := target.Get(sel.Key)
			if has && (sel.Value == nil || *sel.Value == value) {
				target.Remove(sel.Key)
			}
		}
	}
	rq.XML.Boolean("return", true)
	return nil
}

// tagRow is one tag of one resource.
type tagRow struct {
	id, kind string
	tag      world.Tag
}

func tagAttributes() attributes[tagRow] {
	return attributes[tagRow]{
		"key":           one(func(row tagRow) string { return row.tag.Key }),
		"value":         one(func(row tagRow) string { return row.tag.Value }),
		"resource-id":   one(func(row tagRow) string { return row.id }),
		"resource-type": one(func(row tagRow) string { return row.kind }),
	}
}

type describeTagsInput struct{ describe }

func (in *describeTagsInput) Check() error { return in.bound(5, 1000, 1000) }

// describeTags lists the tags of all resources, sorted by resource and key.
func describeTags(rq *request, in describeTagsInput) error {
	match, err := matcher(in.Filters, tagAttributes(), func(row tagRow) world.Tags { return world.Tags{row.tag} })
	if err != nil {
		return err
	}
	rows := rq.Region.tagRows()
	keys := make([]string, 0, len(rows))
	for key := range rows {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	w := &rq.XML
	w.Open("tagSet")
	next, err := rq.Page(keys, in.NextToken, in.limit, func(key string) bool {
		row := rows[key]
		if !match(row) {
			return false
		}
		w.Open("item")
		w.Text("resourceId", row.id)
		w.Text("resourceType", row.kind)
		w.Text("key", row.tag.Key)
		w.Text("value", row.tag.Value)
		w.Close("item")
		return true
	})
	if err != nil {
		return err
	}
	w.Close("tagSet")
	w.Optional("nextToken", next)
	return nil
}

func (r *Region) tagRows() map[string]tagRow {
	kinds := map[string]string{
		"lt": "launch-template", "i": "instance", "vpc": "vpc", "subnet": "subnet", "sg": "security-group", "ami": "image", "key": "key-pair", "pg": "placement-group", "vol": "volume", "cr": "capacity-reservation",
	}
	rows := map[string]tagRow{}
	for _, ids := range [][]string{
		r.LaunchTemplates.Sorted(), r.Instances.Sorted(), r.Vpcs.Sorted(),
		r.Subnets.Sorted(), r.SecurityGroups.Sorted(), r.Images.Sorted(), r.KeyPairs.Sorted(), r.PlacementGroups.Sorted(), r.Volumes.Sorted(), r.Reservations.Sorted(),
	} {
		for _, id := range ids {
			ts, err := r.taggable(id)
			if err != nil {
				continue
			}
			prefix, _, _ := strings.Cut(id, "-")
			for _, t := range *ts {
				rows[id+"\x00"+t.Key] = tagRow{id: id, kind: kinds[prefix], tag: t}
			}
		}
	}
	return rows
}
