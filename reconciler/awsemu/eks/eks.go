// Package eks emulates EKS: clusters and managed nodegroups.
//
// A nodegroup is created like in EKS: with an instance profile, EKS's own launch template, which contains
// the user's template and the settings that a node needs to join, and an Auto Scaling group. The nodegroup's
// states follow that group. A version update replaces nodes in batches, and rolls back if the new nodes do
// not start. No Kubernetes runs behind a cluster.
package eks

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/iam"
	"github.com/weir-gitops/weir/reconciler/awsemu/ssm"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Region is the EKS part of a region.
type Region struct {
	*world.Region   `json:"-"`
	iam             *iam.Region
	ssm             *ssm.Region
	ec2             *ec2.Region
	asg             *asg.Region
	nodegroupFaults *world.Script[NodegroupFault]

	Clusters world.Table[*Cluster] // by name
}

// The timer kinds of EKS. The key names the cluster, the nodegroup and its creation's UUID.
const (
	timerCluster   = "eks.cluster"
	timerNodegroup = "eks.nodegroup"
)

// The states of clusters and nodegroups.
const (
	creating     = "CREATING"
	active       = "ACTIVE"
	updating     = "UPDATING"
	deleting     = "DELETING"
	createFailed = "CREATE_FAILED"
	degraded     = "DEGRADED"
)

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns the EKS service: clusters and managed nodegroups.
func Service() *wire.Service {
	return wire.NewService("eks", wire.JSONDialect("InvalidParameterException"),
		wire.JSONOp("CreateCluster", wire.Writes, createCluster),
		wire.JSONOp("DescribeCluster", wire.Reads, describeCluster),
		wire.JSONOp("ListClusters", wire.Reads, listClusters),
		wire.JSONOp("DeleteCluster", wire.Writes, deleteCluster),
		wire.JSONOp("UpdateClusterVersion", wire.Writes, updateClusterVersion),
		wire.JSONOp("ListUpdates", wire.Reads, listUpdates),
		wire.JSONOp("DescribeUpdate", wire.Reads, describeUpdate),
		wire.JSONOp("CreateNodegroup", wire.Writes, createNodegroup),
		wire.JSONOp("ListNodegroups", wire.Reads, listNodegroups),
		wire.JSONOp("DescribeNodegroup", wire.Reads, describeNodegroup),
		wire.JSONOp("DeleteNodegroup", wire.Writes, deleteNodegroup),
		wire.JSONOp("UpdateNodegroupConfig", wire.Writes, updateNodegroupConfig),
		wire.JSONOp("UpdateNodegroupVersion", wire.Writes, updateNodegroupVersion),
		wire.JSONOp("ListAddons", wire.Reads, listAddons),
		wire.JSONOp("DescribeAddon", wire.Reads, describeAddon),
		wire.JSONOp("DescribeAddonVersions", wire.Reads, describeAddonVersions),
		wire.JSONOp("DescribeClusterVersions", wire.Reads, describeClusterVersions),
		wire.JSONOp("ListInsights", wire.Reads, listInsights),
		wire.JSONOp("DescribeInsight", wire.Reads, describeInsight),
		wire.JSONOp("ListAccessEntries", wire.Reads, listAccessEntries),
		wire.JSONOp("DescribeAccessEntry", wire.Reads, describeAccessEntry),
		wire.JSONOp("ListAssociatedAccessPolicies", wire.Reads, listAssociatedAccessPolicies),
		wire.JSONOp("ListAccessPolicies", wire.Reads, listAccessPolicies),
		wire.JSONOp("TagResource", wire.Writes, tagEKS),
		wire.JSONOp("UntagResource", wire.Writes, untagEKS),
		wire.JSONOp("ListTagsForResource", wire.Reads, listEKSTags),
	)
}

// Timers returns the timer functions of EKS, by kind.
func Timers() map[string]func(*Region, string) {
	return map[string]func(*Region, string){timerCluster: runCluster, timerNodegroup: runNodegroup}
}

// Join connects the region, which is new or was read from JSON, with the services that EKS uses to create
// nodes.
func (r *Region) Join(base *world.Region, accounts *iam.Region, parameters *ssm.Region, machines *ec2.Region, groups *asg.Region, nodegroups *world.Script[NodegroupFault]) {
	r.Region, r.iam, r.ssm, r.ec2, r.asg, r.nodegroupFaults = base, accounts, parameters, machines, groups, nodegroups
}

// nothing is the body of a request without a body.
type nothing struct{}

// invalid returns EKS's error for a parameter that breaks a rule.
func invalid(format string, args ...any) *wire.Error {
	return wire.Fail("InvalidParameterException", format, args...)
}

// refused returns EKS's error for a request that does not fit the resource's state.
func refused(format string, args ...any) *wire.Error {
	return wire.Fail("InvalidRequestException", format, args...)
}

// findCluster finds a cluster by name.
func findCluster(clusters world.Table[*Cluster], name string) (*Cluster, error) {
	if c := clusters.Get(name); c != nil {
		return c, nil
	}
	return nil, wire.Fail("ResourceNotFoundException", "No cluster found for name: %s.", name).With("clusterName", name)
}

// Update is an update of a cluster or a nodegroup.
type Update struct {
	ID      string
	Status  string // InProgress, Successful or Failed
	Type    string
	Params  []updateParam
	Created time.Time
	Errors  []updateError
}

type updateParam struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

type updateError struct {
	Code      string   `json:"errorCode"`
	Message   string   `json:"errorMessage"`
	Resources []string `json:"resourceIds"`
}

// updateOut is an update in the form of answers.
type updateOut struct {
	ID      string        `json:"id"`
	Status  string        `json:"status"`
	Type    string        `json:"type"`
	Params  []updateParam `json:"params"`
	Created float64       `json:"createdAt"`
	Errors  []updateError `json:"errors"`
}

func (u *Update) out() map[string]any {
	return map[string]any{"update": updateOut{
		ID: u.ID, Status: u.Status, Type: u.Type, Created: wire.Epoch(u.Created),
		Params: append([]updateParam{}, u.Params...), Errors: append([]updateError{}, u.Errors...),
	}}
}

// newUpdate starts an update.
func (r *Region) newUpdate(kind string, params []updateParam) *Update {
	return &Update{ID: r.NewUUID("eks-update"), Status: "InProgress", Type: kind, Params: params, Created: r.Now()}
}

// finish ends an update. A nil fault means success.
func (u *Update) finish(fault *updateError) {
	u.Status = "Successful"
	if fault != nil {
		u.Status, u.Errors = "Failed", []updateError{*fault}
	}
}

// updatesOf finds the updates that a request asks for: the cluster's or, with the query parameter
// nodegroupName, a nodegroup's.
func updatesOf(rq *request) ([]*Update, error) {
	c, err := findCluster(rq.Region.Clusters, rq.Label("name"))
	if err != nil {
		return nil, err
	}
	name := rq.QueryValue("nodegroupName")
	if name == "" {
		return c.Updates, nil
	}
	ng, err := c.findNodegroup(name)
	if err != nil {
		return nil, err
	}
	return ng.Updates, nil
}

func describeUpdate(rq *request, _ nothing) (any, error) {
	updates, err := updatesOf(rq)
	if err != nil {
		return nil, err
	}
	for _, u := range updates {
		if u.ID == rq.Label("updateId") {
			return u.out(), nil
		}
	}
	return nil, wire.Fail("ResourceNotFoundException", "No update found for ID: %s", rq.Label("updateId")).With("clusterName", rq.Label("name"))
}

// listUpdates lists the ids of updates, newest first.
func listUpdates(rq *request, _ nothing) (any, error) {
	updates, err := updatesOf(rq)
	if err != nil {
		return nil, err
	}
	rows := map[string]string{}
	for i, u := range updates {
		rows[wire.NewestFirst(uint64(i))] = u.ID
	}
	ids, next, err := namesPage(rq, slices.Sorted(maps.Keys(rows)))
	if err != nil {
		return nil, err
	}
	for i := range ids {
		ids[i] = rows[ids[i]]
	}
	return listOut("updateIds", ids, next), nil
}

// namesPage returns a page of sorted keys, selected by the query parameters maxResults and nextToken.
func namesPage(rq *request, keys []string) (page []string, next string, err error) {
	limit := int64(100)
	if n, err := strconv.ParseInt(rq.QueryValue("maxResults"), 10, 64); err == nil {
		limit = n // the model checks the limits
	}
	page = []string{}
	next, err = rq.Page(keys, rq.QueryValue("nextToken"), int(limit), func(key string) bool {
		page = append(page, key)
		return true
	})
	return page, next, err
}

// listOut returns the answer of a List call.
func listOut(name string, list []string, next string) map[string]any {
	out := map[string]any{name: list}
	if next != "" {
		out["nextToken"] = next
	}
	return out
}

// validEKSName reports whether a cluster or nodegroup name has EKS's form.
func validEKSName(name string, longest int) bool {
	return len(name) <= longest && regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9\-_]*$`).MatchString(name)
}
