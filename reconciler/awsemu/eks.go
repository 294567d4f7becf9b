package awsemu

import (
	"regexp"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// eksState is EKS's part of a region.
type eksState struct {
	Clusters table[*eksCluster] // by name
}

// The timer kinds of EKS; the key names cluster and nodegroup with their
// creation's UUID.
const (
	timerCluster   = "eks.cluster"
	timerNodegroup = "eks.nodegroup"
)

// The states of clusters and nodegroups.
const (
	eksCreating     = "CREATING"
	eksActive       = "ACTIVE"
	eksUpdating     = "UPDATING"
	eksDeleting     = "DELETING"
	eksCreateFailed = "CREATE_FAILED"
	eksDegraded     = "DEGRADED"
)

// eksService is EKS: clusters and managed nodegroups.
func eksService() *service {
	sv := &service{
		Service: model.Services()["eks"], dialect: jsonDialect("InvalidParameterException"),
		seed:   seedDemoCluster,
		timers: map[string]timerFunc{timerCluster: runCluster, timerNodegroup: runNodegroup},
	}
	sv.register(
		jsonOp("CreateCluster", writes, createCluster),
		jsonOp("DescribeCluster", reads, describeCluster),
		jsonOp("ListClusters", reads, listClusters),
		jsonOp("DeleteCluster", writes, deleteCluster),
		jsonOp("UpdateClusterVersion", writes, updateClusterVersion),
		jsonOp("ListUpdates", reads, listUpdates),
		jsonOp("DescribeUpdate", reads, describeUpdate),
		jsonOp("CreateNodegroup", writes, createNodegroup),
		jsonOp("ListNodegroups", reads, listNodegroups),
		jsonOp("DescribeNodegroup", reads, describeNodegroup),
		jsonOp("DeleteNodegroup", writes, deleteNodegroup),
		jsonOp("UpdateNodegroupConfig", writes, updateNodegroupConfig),
		jsonOp("UpdateNodegroupVersion", writes, updateNodegroupVersion),
		jsonOp("TagResource", writes, tagEKS),
		jsonOp("UntagResource", writes, untagEKS),
		jsonOp("ListTagsForResource", reads, listEKSTags),
	)
	return sv
}

// nothing is the body of a request that has none.
type nothing struct{}

// eksInvalid is EKS's fault for a parameter that breaks a rule.
func eksInvalid(format string, args ...any) *apiError {
	return fail("InvalidParameterException", format, args...)
}

// eksRefused is EKS's fault for a request that does not fit the resource's state.
func eksRefused(format string, args ...any) *apiError {
	return fail("InvalidRequestException", format, args...)
}

// findCluster finds a cluster by name.
func (r *region) findCluster(name string) (*eksCluster, error) {
	if c := r.EKS.Clusters.get(name); c != nil {
		return c, nil
	}
	return nil, fail("ResourceNotFoundException", "No cluster found for name: %s.", name).with("clusterName", name)
}

// eksUpdate is an update of a cluster or a nodegroup.
type eksUpdate struct {
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

// updateOut is an update as answers show it.
type updateOut struct {
	ID      string        `json:"id"`
	Status  string        `json:"status"`
	Type    string        `json:"type"`
	Params  []updateParam `json:"params"`
	Created float64       `json:"createdAt"`
	Errors  []updateError `json:"errors"`
}

func (u *eksUpdate) out() map[string]any {
	return map[string]any{"update": updateOut{
		ID: u.ID, Status: u.Status, Type: u.Type, Created: epoch(u.Created),
		Params: append([]updateParam{}, u.Params...), Errors: append([]updateError{}, u.Errors...),
	}}
}

// newUpdate starts an update.
func (r *region) newUpdate(kind string, params []updateParam) *eksUpdate {
	return &eksUpdate{ID: r.newUUID("eks-update"), Status: "InProgress", Type: kind, Params: params, Created: r.now()}
}

// finish ends an update, with a fault or without.
func (u *eksUpdate) finish(fault *updateError) {
	u.Status = "Successful"
	if fault != nil {
		u.Status, u.Errors = "Failed", []updateError{*fault}
	}
}

// updatesOf finds the updates that a request is about: the cluster's or, with the
// query parameter nodegroupName, a nodegroup's.
func (rq *request) updatesOf() ([]*eksUpdate, error) {
	c, err := rq.region.findCluster(rq.label("name"))
	if err != nil {
		return nil, err
	}
	name := rq.queryValue("nodegroupName")
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
	updates, err := rq.updatesOf()
	if err != nil {
		return nil, err
	}
	for _, u := range updates {
		if u.ID == rq.label("updateId") {
			return u.out(), nil
		}
	}
	return nil, fail("ResourceNotFoundException", "No update found for ID: %s", rq.label("updateId")).with("clusterName", rq.label("name"))
}

// listUpdates lists the ids of updates, newest first.
func listUpdates(rq *request, _ nothing) (any, error) {
	updates, err := rq.updatesOf()
	if err != nil {
		return nil, err
	}
	rows := map[string]string{}
	for i, u := range updates {
		rows[newestFirst(uint64(i))] = u.ID
	}
	ids, next, err := rq.names(sortedKeys(rows))
	if err != nil {
		return nil, err
	}
	for i := range ids {
		ids[i] = rows[ids[i]]
	}
	return listOut("updateIds", ids, next), nil
}

// names is a page of sorted keys, by the query parameters maxResults and nextToken.
func (rq *request) names(keys []string) (page []string, next string, err error) {
	limit := int64(100)
	if n, err := strconv.ParseInt(rq.queryValue("maxResults"), 10, 64); err == nil {
		limit = n // the model has bounds
	}
	page = []string{}
	next, err = rq.page(keys, rq.queryValue("nextToken"), int(limit), func(key string) bool {
		page = append(page, key)
		return true
	})
	return page, next, err
}

// listOut is the answer of a List call.
func listOut(name string, list []string, next string) map[string]any {
	out := map[string]any{name: list}
	if next != "" {
		out["nextToken"] = next
	}
	return out
}

// validEKSName says whether a cluster or nodegroup name has EKS's form.
func validEKSName(name string, longest int) bool {
	return len(name) <= longest && regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9\-_]*$`).MatchString(name)
}
