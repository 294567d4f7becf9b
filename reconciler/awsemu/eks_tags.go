package awsemu

import (
	"strings"
)

// checkEKSTags applies the rules of tags.
func checkEKSTags(tags map[string]string, limit int) *apiError {
	for _, key := range sortedKeys(tags) {
		if fault := tagFault(key, tags[key]); fault != "" {
			return eksInvalid("%s: %s", fault, key)
		}
	}
	if len(tags) > limit {
		return eksInvalid("A resource can have at most %d tags", limit)
	}
	return nil
}

// taggedEKS finds the tags of the cluster or nodegroup that an ARN names.
func (r *region) taggedEKS(arn string) (map[string]string, *apiError) {
	kind, path, _ := strings.Cut(strings.TrimPrefix(arn, r.arn("eks", "")), "/")
	if !strings.HasPrefix(arn, r.arn("eks", "")) {
		return nil, fail("BadRequestException", "The ARN %s is not one of EKS in this account and region", arn)
	}
	cluster, rest, _ := strings.Cut(path, "/")
	c := r.EKS.Clusters.get(cluster)
	switch {
	case kind == "cluster" && rest == "" && c != nil:
		return c.Tags, nil
	case kind == "nodegroup" && c != nil:
		name, _, _ := strings.Cut(rest, "/")
		if ng := c.Nodegroups.get(name); ng != nil && ng.ARN == arn {
			return ng.Tags, nil
		}
	}
	return nil, fail("NotFoundException", "Specified resource not found: %s", arn)
}

type tagEKSInput struct {
	Tags map[string]string `json:"tags"`
}

func tagEKS(rq *request, in tagEKSInput) (any, error) {
	tags, err := rq.region.taggedEKS(rq.label("resourceArn"))
	if err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, fail("BadRequestException", "No tags were given")
	}
	all := map[string]string{}
	for k, v := range tags {
		all[k] = v
	}
	for k, v := range in.Tags {
		all[k] = v
	}
	if fault := checkEKSTags(all, rq.region.quota("tags")); fault != nil {
		return nil, fail("BadRequestException", "%s", fault.Message)
	}
	for k, v := range in.Tags {
		tags[k] = v
	}
	return nil, nil
}

func untagEKS(rq *request, _ nothing) (any, error) {
	tags, err := rq.region.taggedEKS(rq.label("resourceArn"))
	if err != nil {
		return nil, err
	}
	keys := rq.query["tagKeys"]
	for _, key := range keys {
		delete(tags, key)
	}
	return nil, nil
}

func listEKSTags(rq *request, _ nothing) (any, error) {
	tags, err := rq.region.taggedEKS(rq.label("resourceArn"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"tags": tags}, nil
}
