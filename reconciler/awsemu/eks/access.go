package eks

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// AccessEntry sets the rights of an IAM principal in a cluster.
type AccessEntry struct {
	Principal string   `json:"principalArn"`
	Type      string   `json:"type"` // "": STANDARD
	Groups    []string `json:"kubernetesGroups"`
	Policies  []string `json:"policies"` // names of EKS's access policies, for the whole cluster
}

// accessPolicies lists EKS's access policies.
var accessPolicies = []string{"AmazonEKSAdminPolicy", "AmazonEKSAdminViewPolicy", "AmazonEKSClusterAdminPolicy", "AmazonEKSEditPolicy", "AmazonEKSViewPolicy"}

func accessPolicyARN(region string, name string) string {
	return "arn:" + world.Partition(region) + ":eks::aws:cluster-access-policy/" + name
}

// entries returns a cluster's access entries: the entries of the seed, and one for the nodes of each
// nodegroup. A cluster that reads only the ConfigMap has no entries.
func entries(clusters world.Table[*Cluster], rq *request) (*Cluster, map[string]AccessEntry, error) {
	c, err := findCluster(clusters, rq.Label("name"))
	if err != nil {
		return nil, nil, err
	}
	if c.AuthMode == "CONFIG_MAP" {
		return nil, nil, refused("The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.").With("clusterName", c.Name)
	}
	all := maps.Clone(c.Access)
	if all == nil {
		all = map[string]AccessEntry{}
	}
	for _, name := range c.Nodegroups.Sorted() {
		role := c.Nodegroups.Get(name).NodeRole
		if _, there := all[role]; !there {
			all[role] = AccessEntry{Principal: role, Type: "EC2_LINUX", Groups: []string{"system:nodes"}}
		}
	}
	return c, all, nil
}

func entry(clusters world.Table[*Cluster], rq *request) (*Cluster, AccessEntry, error) {
	c, all, err := entries(clusters, rq)
	if err != nil {
		return nil, AccessEntry{}, err
	}
	principal := rq.Label("principalArn")
	e, ok := all[principal]
	if !ok {
		return nil, e, wire.Fail("ResourceNotFoundException", "The specified principalArn could not be found. You can view your available access entries with 'list-access-entries'.").With("clusterName", c.Name)
	}
	return c, e, nil
}

func listAccessEntries(rq *request, _ nothing) (any, error) {
	_, all, err := entries(rq.Region.Clusters, rq)
	if err != nil {
		return nil, err
	}
	if policy := rq.QueryValue("associatedPolicyArn"); policy != "" {
		maps.DeleteFunc(all, func(_ string, e AccessEntry) bool {
			return !slices.ContainsFunc(e.Policies, func(name string) bool { return accessPolicyARN(rq.Region.Name, name) == policy })
		})
	}
	page, next, err := namesPage(rq, slices.Sorted(maps.Keys(all)))
	if err != nil {
		return nil, err
	}
	return listOut("accessEntries", page, next), nil
}

func describeAccessEntry(rq *request, _ nothing) (any, error) {
	c, e, err := entry(rq.Region.Clusters, rq)
	if err != nil {
		return nil, err
	}
	name := e.Principal[strings.LastIndex(e.Principal, "/")+1:]
	user := e.Principal
	if e.Type == "EC2_LINUX" {
		user = "system:node:{{EC2PrivateDNSName}}"
	}
	return map[string]any{"accessEntry": map[string]any{
		"clusterName": c.Name, "principalArn": e.Principal, "kubernetesGroups": orEmpty(e.Groups), "type": e.Type, "username": user, "tags": map[string]string{},
		"accessEntryArn": rq.Region.ARN("eks", "access-entry/"+c.Name+"/role/"+rq.Region.Account+"/"+name+"/"+world.UUID(world.Hash("entry|"+c.ARN+"|"+e.Principal, 32))),
		"createdAt":      wire.Epoch(c.Created), "modifiedAt": wire.Epoch(c.Created),
	}}, nil
}

func listAssociatedAccessPolicies(rq *request, _ nothing) (any, error) {
	c, e, err := entry(rq.Region.Clusters, rq)
	if err != nil {
		return nil, err
	}
	page, next, err := namesPage(rq, slices.Sorted(slices.Values(e.Policies)))
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, name := range page {
		rows = append(rows, map[string]any{"policyArn": accessPolicyARN(rq.Region.Name, name), "accessScope": map[string]any{"type": "cluster", "namespaces": []string{}},
			"associatedAt": wire.Epoch(c.Created), "modifiedAt": wire.Epoch(c.Created)})
	}
	out := map[string]any{"clusterName": c.Name, "principalArn": e.Principal, "associatedAccessPolicies": rows}
	if next != "" {
		out["nextToken"] = next
	}
	return out, nil
}

func listAccessPolicies(rq *request, _ nothing) (any, error) {
	page, next, err := namesPage(rq, accessPolicies)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, name := range page {
		rows = append(rows, map[string]any{"name": name, "arn": accessPolicyARN(rq.Region.Name, name)})
	}
	out := map[string]any{"accessPolicies": rows}
	if next != "" {
		out["nextToken"] = next
	}
	return out, nil
}
