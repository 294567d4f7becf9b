package awsemu

import (
	"sort"
	"strings"
)

type tagsInput struct {
	resources []string
	tags      tags
	keys      []tagSelector
	all       bool // DeleteTags without a list of tags
}

// tagSelector names a tag to delete: with a value, only while it has that value.
type tagSelector struct {
	key   string
	value *string
}

func parseTagResources(p *params) tagsInput {
	in := tagsInput{resources: p.strings("ResourceId")}
	if len(in.resources) > 1000 {
		p.bad("ResourceId", decimal(int64(len(in.resources))), "At most 1000 resources can be tagged in one request.")
	}
	return in
}

func parseCreateTags(p *params) tagsInput {
	in := parseTagResources(p)
	for _, t := range p.list("Tag") {
		key, value := t.text("Key"), t.text("Value")
		if fault := tagFault(key, value); fault != "" {
			p.reject(fail("InvalidParameterValue", "Value ( %s ) for parameter key is invalid. %s", key, fault))
		}
		in.tags.set(key, value)
	}
	return in
}

func parseDeleteTags(p *params) tagsInput {
	in := parseTagResources(p)
	list := p.list("Tag")
	in.all = len(list) == 0
	if len(list) > 1000 {
		p.bad("Tag", decimal(int64(len(list))), "At most 1000 tags can be deleted in one request.")
	}
	for _, t := range list {
		sel := tagSelector{key: t.text("Key"), value: t.optional("Value")}
		if strings.HasPrefix(strings.ToLower(sel.key), "aws:") {
			p.reject(fail("InvalidParameterValue", "Value ( %s ) for parameter key is invalid. Tag keys starting with 'aws:' are reserved for internal use", sel.key))
		}
		in.keys = append(in.keys, sel)
	}
	return in
}

// taggable returns the tags of the EC2 resource with an id.
func (r *region) taggable(id string) (*tags, *apiError) {
	kind, _, _ := strings.Cut(id, "-")
	code := ""
	switch kind {
	case "lt":
		if t := r.EC2.LaunchTemplates.get(id); t != nil {
			return &t.Tags, nil
		}
		code = "InvalidLaunchTemplateId.NotFound"
	case "i":
		if in := r.EC2.Instances.get(id); in != nil {
			return &in.Tags, nil
		}
		code = "InvalidInstanceID.NotFound"
	case "vpc":
		if v := r.EC2.Vpcs.get(id); v != nil {
			return &v.Tags, nil
		}
		code = "InvalidVpcID.NotFound"
	case "subnet":
		if s := r.EC2.Subnets.get(id); s != nil {
			return &s.Tags, nil
		}
		code = "InvalidSubnetID.NotFound"
	case "sg":
		if g := r.EC2.SecurityGroups.get(id); g != nil {
			return &g.Tags, nil
		}
		code = "InvalidGroup.NotFound"
	case "ami":
		if im := r.EC2.Images.get(id); im != nil {
			return &im.Tags, nil
		}
		code = "InvalidAMIID.NotFound"
	case "key":
		if k := r.EC2.KeyPairs.get(id); k != nil {
			return &k.Tags, nil
		}
		code = "InvalidKeyPair.NotFound"
	default:
		return nil, fail("InvalidID", "The ID '%s' is not valid", id)
	}
	return nil, fail(code, "The ID '%s' does not exist", id)
}

func createTags(rq *request, in tagsInput) error {
	targets, err := rq.region.taggables(in.resources)
	if err != nil {
		return err
	}
	for _, target := range targets {
		after := target.clone()
		for _, t := range in.tags {
			after.set(t.Key, t.Value)
		}
		if after.userCount() > rq.region.quota("tags") {
			return tagLimit()
		}
	}
	for _, target := range targets {
		for _, t := range in.tags {
			target.set(t.Key, t.Value)
		}
	}
	rq.xml.boolean("return", true)
	return nil
}

// taggables finds all resources before any of them is changed.
func (r *region) taggables(ids []string) ([]*tags, error) {
	out := make([]*tags, 0, len(ids))
	for _, id := range ids {
		target, err := r.taggable(id)
		if err != nil {
			return nil, err
		}
		out = append(out, target)
	}
	return out, nil
}

func tagLimit() *apiError {
	return fail("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
}

// deleteTags removes tags; without a list of tags it removes all that users set.
func deleteTags(rq *request, in tagsInput) error {
	targets, err := rq.region.taggables(in.resources)
	if err != nil {
		return err
	}
	for _, target := range targets {
		if in.all {
			kept := tags{}
			for _, t := range *target {
				if strings.HasPrefix(t.Key, "aws:") {
					kept = append(kept, t)
				}
			}
			*target = kept
		}
		for _, sel := range in.keys {
			value, has := target.get(sel.key)
			if has && (sel.value == nil || *sel.value == value) {
				target.remove(sel.key)
			}
		}
	}
	rq.xml.boolean("return", true)
	return nil
}

// tagRow is one tag of one resource.
type tagRow struct {
	id, kind string
	tag      tag
}

func tagAttributes() attributes[tagRow] {
	return attributes[tagRow]{
		"key":           one(func(row tagRow) string { return row.tag.Key }),
		"value":         one(func(row tagRow) string { return row.tag.Value }),
		"resource-id":   one(func(row tagRow) string { return row.id }),
		"resource-type": one(func(row tagRow) string { return row.kind }),
	}
}

func parseDescribeTags(p *params) describe { return parseDescribe(p, "", 5, 1000, 1000) }

// describeTags lists the tags of all resources, by resource and key.
func describeTags(rq *request, in describe) error {
	match, err := matcher(in.filters, tagAttributes(), func(row tagRow) tags { return tags{row.tag} })
	if err != nil {
		return err
	}
	rows := rq.region.tagRows()
	keys := make([]string, 0, len(rows))
	for key := range rows {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	w := &rq.xml
	w.open("tagSet")
	next, err := rq.page(keys, in.token, in.limit, func(key string) bool {
		row := rows[key]
		if !match(row) {
			return false
		}
		w.open("item")
		w.text("resourceId", row.id)
		w.text("resourceType", row.kind)
		w.text("key", row.tag.Key)
		w.text("value", row.tag.Value)
		w.close("item")
		return true
	})
	if err != nil {
		return err
	}
	w.close("tagSet")
	w.optional("nextToken", next)
	return nil
}

func (r *region) tagRows() map[string]tagRow {
	kinds := map[string]string{
		"lt": "launch-template", "i": "instance", "vpc": "vpc", "subnet": "subnet", "sg": "security-group", "ami": "image", "key": "key-pair",
	}
	rows := map[string]tagRow{}
	for _, ids := range [][]string{
		r.EC2.LaunchTemplates.sorted(), r.EC2.Instances.sorted(), r.EC2.Vpcs.sorted(),
		r.EC2.Subnets.sorted(), r.EC2.SecurityGroups.sorted(), r.EC2.Images.sorted(), r.EC2.KeyPairs.sorted(),
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
