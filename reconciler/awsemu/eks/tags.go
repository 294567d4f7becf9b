package eks

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// checkEKSTags checks tags against EKS's rules.
func checkEKSTags(tags map[string]string, limit int) *wire.Error {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if fault := world.TagFault(key, tags[key]); fault != "" {
			return invalid("%s: %s", fault, key)
		}
	}
	if len(tags) > limit {
		return invalid("A resource can have at most %d tags", limit)
	}
	return nil
}

// taggedEKS finds the tags of the cluster or nodegroup with the ARN.
func (r *Region) taggedEKS(arn string) (map[string]string, *wire.Error) {
	kind, path, _ := strings.Cut(strings.TrimPrefix(arn, r.ARN("eks", "")), "/")
	if !strings.HasPrefix(arn, r.ARN("eks", "")) {
		return nil, wire.Fail("BadRequestException", "The ARN %s is not one of EKS in this account and region", arn)
	}
	cluster, rest, _ := strings.Cut(path, "/")
	c := r.Clusters.Get(cluster)
	switch {
	case kind == "cluster" && rest == "" && c != nil:
		return c.Tags, nil
	case kind == "nodegroup" && c != nil:
		name, _, _ := strings.Cut(rest, "/")
		if ng := c.Nodegroups.Get(name); ng != nil && ng.ARN == arn {
			return ng.Tags, nil
		}
	}
	return nil, wire.Fail("NotFoundException", "Specified resource not found: %s", arn)
}

type tagEKSInput struct {
	Tags map[string]string `json:"tags"`
}

func tagEKS(rq *request, in tagEKSInput) (any, error) {
	tags, err := rq.Region.taggedEKS(rq.Label("resourceArn"))
	if err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, wire.Fail("BadRequestException", "No tags were given")
	}
	all := map[string]string{}
	for k, v := range tags {
		all[k] = v
	}
	for k, v := range in.Tags {
		all[k] = v
	}
	if fault := checkEKSTags(all, rq.Region.Quota("tags")); fault != nil {
		return nil, wire.Fail("BadRequestException", "%s", fault.Message)
	}
	for k, v := range in.Tags {
		tags[k] = v
	}
	return nil, nil
}

func untagEKS(rq *request, _ nothing) (any, error) {
	tags, err := rq.Region.taggedEKS(rq.Label("resourceArn"))
	if err != nil {
		return nil, err
	}
	keys := rq.Query["tagKeys"]
	for _, key := range keys {
		delete(tags, key)
	}
	return nil, nil
}

func listEKSTags(rq *request, _ nothing) (any, error) {
	tags, err := rq.Region.taggedEKS(rq.Label("resourceArn"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"tags": tags}, nil
}
