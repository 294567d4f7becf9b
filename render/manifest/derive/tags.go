package derive

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// mostTags bounds the number of cluster tags that are copied to its pools. It is four times AWS's limit, so
// that each pool still gets the fault about too many tags, without a million copies.
const mostTags = 200

func fewTags(tags map[string]string) map[string]string {
	if len(tags) <= mostTags {
		return tags
	}
	out := make(map[string]string, mostTags)
	for _, k := range slices.Sorted(maps.Keys(tags))[:mostTags] {
		out[k] = tags[k]
	}
	return out
}

// additionalTags merges the tags of a pool and its cluster. The pool's tags have priority.
func additionalTags(c *cluster, pool map[string]string) map[string]string {
	out := maps.Clone(c.tags)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, pool)
	return out
}

// capaTags returns the tags that CAPA puts on a pool's resources: the name, then additional tags, which may
// replace it, then ownership and role.
func capaTags(name, cluster string, additional map[string]string) map[string]string {
	out := map[string]string{"Name": name}
	maps.Copy(out, additional)
	out[kinds.TagCloudCluster+cluster] = "owned"
	out[kinds.TagCAPACluster+cluster] = "owned"
	out[kinds.TagCAPARole] = "node"
	return out
}

// specifications returns the tags of the instances and volumes that a template launches.
func specifications(tags map[string]string) []intent.TemplateTagSpecification {
	var list []intent.Tag
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, intent.Tag{Key: k, Value: tags[k]})
	}
	return []intent.TemplateTagSpecification{{ResourceType: "instance", Tags: list}, {ResourceType: "volume", Tags: slices.Clone(list)}}
}
