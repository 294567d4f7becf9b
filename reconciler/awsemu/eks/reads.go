package eks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Addon is an add-on of a cluster in a seed.
type Addon struct {
	Name    string `json:"name"`
	Version string `json:"version"` // "": the newest for the cluster's version
	RoleARN string `json:"roleArn"`
}

// addonNames maps EKS's own add-ons to the start of their versions.
var addonNames = map[string]string{"vpc-cni": "v1.20.", "coredns": "v1.12.", "kube-proxy": "", "eks-pod-identity-agent": "v1.3.", "aws-ebs-csi-driver": "v1.50."}

// addonVersions returns an add-on's versions for a Kubernetes version, newest first. The version of
// kube-proxy starts with the cluster's version.
func addonVersions(name, kubernetes string) []string {
	prefix := cmp.Or(addonNames[name], "v"+kubernetes+".")
	return []string{prefix + "1-eksbuild.2", prefix + "0-eksbuild.1"}
}

func listAddons(rq *request, _ nothing) (any, error) {
	c, err := findCluster(rq.Region.Clusters, rq.Label("name"))
	if err != nil {
		return nil, err
	}
	page, next, err := namesPage(rq, slices.Sorted(maps.Keys(c.Addons)))
	if err != nil {
		return nil, err
	}
	return listOut("addons", page, next), nil
}

func describeAddon(rq *request, _ nothing) (any, error) {
	c, err := findCluster(rq.Region.Clusters, rq.Label("name"))
	if err != nil {
		return nil, err
	}
	a, ok := c.Addons[rq.Label("addonName")]
	if !ok {
		return nil, wire.Fail("ResourceNotFoundException", "No addon: %s found in cluster: %s", rq.Label("addonName"), c.Name).With("clusterName", c.Name).With("addonName", rq.Label("addonName"))
	}
	out := map[string]any{
		"addonName": a.Name, "clusterName": c.Name, "status": active, "addonVersion": a.Version, "health": map[string]any{"issues": []any{}},
		"addonArn":  rq.Region.ARN("eks", "addon/"+c.Name+"/"+a.Name+"/"+world.UUID(world.Hash("addon|"+c.ARN+"|"+a.Name, 32))),
		"createdAt": wire.Epoch(c.Created), "modifiedAt": wire.Epoch(c.Created), "owner": "aws", "publisher": "eks", "tags": map[string]string{},
	}
	if a.RoleARN != "" {
		out["serviceAccountRoleArn"] = a.RoleARN
	}
	return map[string]any{"addon": out}, nil
}

func describeAddonVersions(rq *request, _ nothing) (any, error) {
	wanted, kubernetes := rq.QueryValue("addonName"), rq.QueryValue("kubernetesVersion")
	if _, known := addonNames[wanted]; wanted != "" && !known {
		return nil, wire.Fail("ResourceNotFoundException", "No addon versions found for: %s", wanted).With("addonName", wanted)
	}
	addons := []map[string]any{}
	page, next, err := namesPage(rq, slices.Sorted(maps.Keys(addonNames)))
	if err != nil {
		return nil, err
	}
	for _, name := range page {
		if wanted != "" && wanted != name {
			continue
		}
		fits := map[string][]map[string]any{} // by add-on version
		for _, k := range ec2.KubernetesVersions() {
			for i, v := range addonVersions(name, k) {
				if kubernetes == "" || kubernetes == k {
					fits[v] = append(fits[v], map[string]any{"clusterVersion": k, "defaultVersion": i == 0, "platformVersions": []string{"*"}})
				}
			}
		}
		versions := []map[string]any{}
		for _, v := range slices.Backward(slices.Sorted(maps.Keys(fits))) {
			versions = append(versions, map[string]any{"addonVersion": v, "architecture": []string{"amd64", "arm64"}, "compatibilities": fits[v]})
		}
		addons = append(addons, map[string]any{"addonName": name, "type": "networking", "owner": "aws", "publisher": "eks", "addonVersions": versions})
	}
	out := map[string]any{"addons": addons}
	if next != "" {
		out["nextToken"] = next
	}
	return out, nil
}

// supportOf returns the support status of a Kubernetes version. The four newest are in standard support.
func supportOf(version string) (status string, newest bool) {
	age := minorOf(ec2.NewestKubernetes()) - minorOf(version)
	if age < 4 {
		return "STANDARD_SUPPORT", age == 0
	}
	return "EXTENDED_SUPPORT", false
}

func describeClusterVersions(rq *request, _ nothing) (any, error) {
	named, want := rq.Query["clusterVersions"], cmp.Or(rq.QueryValue("versionStatus"), strings.ToUpper(strings.ReplaceAll(rq.QueryValue("status"), "-", "_")))
	for _, v := range named {
		if !slices.Contains(ec2.KubernetesVersions(), v) {
			return nil, invalid("Unsupported Kubernetes version: %s", v)
		}
	}
	keys := map[string]string{} // newest first
	for _, v := range ec2.KubernetesVersions() {
		status, newest := supportOf(v)
		if (len(named) == 0 || slices.Contains(named, v)) && (want == "" || want == status) && (newest || rq.QueryValue("defaultOnly") != "true") {
			keys[wire.NewestFirst(uint64(minorOf(v)))] = v
		}
	}
	page, next, err := namesPage(rq, slices.Sorted(maps.Keys(keys)))
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, key := range page {
		v := keys[key]
		status, newest := supportOf(v)
		released := world.SeedTime().AddDate(0, -4*int(minorOf(ec2.NewestKubernetes())-minorOf(v)), 0)
		rows = append(rows, map[string]any{
			"clusterVersion": v, "clusterType": "eks", "defaultVersion": newest, "defaultPlatformVersion": "eks.1", "kubernetesPatchVersion": v + ".1",
			"status": strings.ToLower(strings.ReplaceAll(status, "_", "-")), "versionStatus": status, "releaseDate": wire.Epoch(released),
			"endOfStandardSupportDate": wire.Epoch(released.AddDate(0, 14, 0)), "endOfExtendedSupportDate": wire.Epoch(released.AddDate(0, 26, 0)),
		})
	}
	out := map[string]any{"clusterVersions": rows}
	if next != "" {
		out["nextToken"] = next
	}
	return out, nil
}

// kubeletInsight returns EKS's insight about nodes with an older version than their cluster, which EKS
// checks before a version update.
func (r *Region) kubeletInsight(c *Cluster) (summary map[string]any, resources []map[string]any) {
	status, reason := "PASSING", "Node kubelet versions match the cluster control plane version."
	resources = []map[string]any{}
	for _, name := range c.Nodegroups.Sorted() {
		ng := c.Nodegroups.Get(name)
		behind, one := minorOf(c.Version)-minorOf(ng.Version), "PASSING"
		switch {
		case behind >= 3:
			one, status, reason = "ERROR", "ERROR", "Node kubelet versions are three minor versions behind the control plane."
		case behind >= 2 && status == "PASSING":
			one, status, reason = "WARNING", "WARNING", "Node kubelet versions are two minor versions behind the control plane."
		}
		resources = append(resources, map[string]any{"arn": ng.ARN, "insightStatus": map[string]any{"status": one, "reason": fmt.Sprintf("The nodes run Kubernetes %s.", ng.Version)}})
	}
	return map[string]any{
		"id": world.UUID(world.Hash("insight|"+c.ARN, 32)), "name": "Kubelet version skew", "category": "UPGRADE_READINESS", "kubernetesVersion": c.Version,
		"lastRefreshTime": wire.Epoch(r.Now().Truncate(24 * time.Hour)), "lastTransitionTime": wire.Epoch(c.Created), "insightStatus": map[string]any{"status": status, "reason": reason},
		"description": "Checks for kubelet minor versions of worker nodes in the cluster to see if upgrade would cause non compliance with supported Kubernetes kubelet version skew policy.",
	}, resources
}

type listInsightsInput struct {
	Filter struct {
		Categories []string `json:"categories"`
		Versions   []string `json:"kubernetesVersions"`
		Statuses   []string `json:"statuses"`
	} `json:"filter"`
	MaxResults *int   `json:"maxResults"`
	NextToken  string `json:"nextToken"`
}

func listInsights(rq *request, in listInsightsInput) (any, error) {
	c, err := findCluster(rq.Region.Clusters, rq.Label("name"))
	if err != nil {
		return nil, err
	}
	if in.NextToken != "" {
		return nil, invalid("Invalid token") // a second page never exists
	}
	one, _ := rq.Region.kubeletInsight(c)
	status, _ := one["insightStatus"].(map[string]any)["status"].(string)
	fits := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	out := []map[string]any{}
	if fits(in.Filter.Categories, "UPGRADE_READINESS") && fits(in.Filter.Versions, c.Version) && fits(in.Filter.Statuses, status) {
		out = append(out, one)
	}
	return map[string]any{"insights": out}, nil
}

func describeInsight(rq *request, _ nothing) (any, error) {
	c, err := findCluster(rq.Region.Clusters, rq.Label("name"))
	if err != nil {
		return nil, err
	}
	one, resources := rq.Region.kubeletInsight(c)
	if one["id"] != rq.Label("id") {
		return nil, wire.Fail("ResourceNotFoundException", "No insight found for ID: %s", rq.Label("id"))
	}
	one["resources"] = resources
	one["recommendation"] = "Upgrade your worker nodes to match the Kubernetes version of your cluster control plane."
	return map[string]any{"insight": one}, nil
}
