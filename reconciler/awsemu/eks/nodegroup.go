package eks

import (
	"cmp"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// nodegroup is a managed nodegroup. Its nodes are the members of an Auto Scaling group that launches from
// EKS's own template.
type nodegroup struct {
	Name, UUID, ARN string
	Cluster         string
	Created         time.Time
	Modified        time.Time
	Status          string
	Version         string
	Release         string // AMI release version; for a custom image, the image id
	AMIType         string
	CapacityType    string
	InstanceTypes   []string
	Subnets         []string
	NodeRole        string
	Labels          map[string]string
	Taints          []taint
	RemoteAccess    *remoteAccess
	DiskGiB         *int64
	Scaling         scaling
	UpdateConfig    updateConfig
	Repair          *repairConfig
	WarmPool        *warmPoolConfig
	Template        *Template // the user's
	CustomImage     bool      // the user's template names the image
	Tags            map[string]string
	Group           string // the Auto Scaling group
	Hidden          string // EKS's own launch template
	Issues          []healthIssue
	Updates         []*Update // oldest first
	Started         time.Time // when the state started
	Tick            int64     // the valid timer; older ones are void
	Next            *Target   // of a version update in progress
}

// Target is the destination of a version update, with the original configuration.
type Target struct {
	Version, Release string
	Template         *Template
	Config           asg.GroupConfig // of the Auto Scaling group
	Before           asg.GroupConfig
	FailuresSeen     int64
	Progress         time.Time
	Batch            []string // members that end after the surge is in service
	Started          bool
	Force            bool
}

type taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

type remoteAccess struct {
	Key    string   `json:"ec2SshKey,omitempty"`
	Groups []string `json:"sourceSecurityGroups,omitempty"`
}

type scaling struct {
	Min     *int64 `json:"minSize"`
	Max     *int64 `json:"maxSize"`
	Desired *int64 `json:"desiredSize"`
}

type updateConfig struct {
	Max        *int64 `json:"maxUnavailable,omitempty"`
	Percentage *int64 `json:"maxUnavailablePercentage,omitempty"`
	Strategy   string `json:"updateStrategy,omitempty"`
}

type repairConfig struct {
	Enabled             *bool            `json:"enabled,omitempty"`
	ThresholdCount      *int64           `json:"maxUnhealthyNodeThresholdCount,omitempty"`
	ThresholdPercentage *int64           `json:"maxUnhealthyNodeThresholdPercentage,omitempty"`
	ParallelCount       *int64           `json:"maxParallelNodesRepairedCount,omitempty"`
	ParallelPercentage  *int64           `json:"maxParallelNodesRepairedPercentage,omitempty"`
	Overrides           []repairOverride `json:"nodeRepairConfigOverrides,omitempty"`
}

type repairOverride struct {
	Condition string `json:"nodeMonitoringCondition"`
	Reason    string `json:"nodeUnhealthyReason"`
	Wait      *int64 `json:"minRepairWaitTimeMins,omitempty"`
	Action    string `json:"repairAction"`
}

type warmPoolConfig struct {
	Enabled     *bool  `json:"enabled,omitempty"`
	Min         *int64 `json:"minSize,omitempty"`
	MaxPrepared *int64 `json:"maxGroupPreparedCapacity,omitempty"`
	State       string `json:"poolState,omitempty"`
	Reuse       *bool  `json:"reuseOnScaleIn,omitempty"`
}

type Template struct {
	Name    string `json:"name,omitempty"`
	ID      string `json:"id,omitempty"`
	Version string `json:"version,omitempty"`
}

type healthIssue struct {
	Code      string   `json:"code"`
	Message   string   `json:"message"`
	Resources []string `json:"resourceIds"`
}

// findNodegroup finds a nodegroup by name.
func (c *Cluster) findNodegroup(name string) (*nodegroup, error) {
	if ng := c.Nodegroups.Get(name); ng != nil {
		return ng, nil
	}
	return nil, wire.Fail("ResourceNotFoundException", "No node group found for name: %s.", name).
		With("clusterName", c.Name).With("nodegroupName", name)
}

// nodegroupOf finds the nodegroup in the request's path.
func nodegroupOf(rq *request) (*Cluster, *nodegroup, error) {
	c, err := findCluster(rq.Region.Clusters, rq.Label("name"))
	if err != nil {
		return nil, nil, err
	}
	ng, err := c.findNodegroup(rq.Label("nodegroupName"))
	return c, ng, err
}

// key returns the name of the nodegroup in timers.
func (ng *nodegroup) key() string { return ng.Cluster + "/" + ng.Name + "/" + ng.UUID }

// group returns the nodegroup's Auto Scaling group, or nil if it does not exist.
func (ng *nodegroup) group(r *Region) *asg.Group { return r.asg.Groups.Get(ng.Group) }

// health returns the recorded issues and the issues of the current state.
func (ng *nodegroup) health(r *Region) []healthIssue {
	issues := append([]healthIssue{}, ng.Issues...)
	if ng.Status != active && ng.Status != updating {
		return issues
	}
	issues = append(issues, ng.scripted(r)...)
	if g := ng.group(r); g == nil || g.Deleting {
		issues = append(issues, healthIssue{"AutoScalingGroupNotFound", "We couldn't find the Auto Scaling group associated with the managed node group. You may be able to recreate an Auto Scaling group with the same settings to recover.", []string{ng.Group}})
	}
	if !r.ec2.LaunchTemplates.Has(ng.Hidden) {
		issues = append(issues, healthIssue{"Ec2LaunchTemplateNotFound", "The launch template associated with the managed node group was not found.", []string{ng.Hidden}})
	}
	if ng.Template != nil && !r.ec2.LaunchTemplates.Has(ng.Template.ID) {
		issues = append(issues, healthIssue{"SourceEc2LaunchTemplateNotFound", "The launch template that the managed node group was made from was not found.", []string{ng.Template.ID}})
	}
	return issues
}

// out returns the nodegroup in the form of answers. Its desired size is the Auto Scaling group's, which
// others can change.
func (ng *nodegroup) out(r *Region) map[string]any {
	issues, status := ng.health(r), ng.Status
	if status == active && len(issues) > 0 {
		status = degraded
	}
	desired := ng.Scaling.Desired
	if g := ng.group(r); g != nil && !g.Deleting {
		desired = &g.Desired
	}
	out := map[string]any{
		"nodegroupName": ng.Name, "nodegroupArn": ng.ARN, "clusterName": ng.Cluster, "version": ng.Version, "releaseVersion": ng.Release,
		"createdAt": wire.Epoch(ng.Created), "modifiedAt": wire.Epoch(ng.Modified), "status": status, "capacityType": ng.CapacityType,
		"scalingConfig": scaling{ng.Scaling.Min, ng.Scaling.Max, desired}, "subnets": orEmpty(ng.Subnets), "amiType": ng.AMIType,
		"nodeRole": ng.NodeRole, "labels": ng.Labels, "health": map[string]any{"issues": issues},
		"updateConfig": ng.UpdateConfig, "tags": ng.Tags,
		"resources": map[string]any{"autoScalingGroups": []map[string]string{{"name": ng.Group}}},
	}
	if len(ng.InstanceTypes) > 0 {
		out["instanceTypes"] = ng.InstanceTypes
	}
	if len(ng.Taints) > 0 {
		out["taints"] = ng.Taints
	}
	if ng.DiskGiB != nil {
		out["diskSize"] = *ng.DiskGiB
	}
	for name, part := range map[string]any{"remoteAccess": ng.RemoteAccess, "nodeRepairConfig": ng.Repair, "warmPoolConfig": ng.WarmPool, "launchTemplate": ng.Template} {
		if !isNil(part) {
			out[name] = part
		}
	}
	return map[string]any{"nodegroup": out}
}

// isNil reports whether one of the nodegroup's optional parts is absent.
func isNil(part any) bool {
	switch p := part.(type) {
	case *remoteAccess:
		return p == nil
	case *repairConfig:
		return p == nil
	case *warmPoolConfig:
		return p == nil
	case *Template:
		return p == nil
	}
	return false
}

func describeNodegroup(rq *request, _ nothing) (any, error) {
	_, ng, err := nodegroupOf(rq)
	if err != nil {
		return nil, err
	}
	return ng.out(rq.Region), nil
}

func listNodegroups(rq *request, _ nothing) (any, error) {
	c, err := findCluster(rq.Region.Clusters, rq.Label("name"))
	if err != nil {
		return nil, err
	}
	page, next, err := namesPage(rq, c.Nodegroups.Sorted())
	if err != nil {
		return nil, err
	}
	return listOut("nodegroups", page, next), nil
}

func deleteNodegroup(rq *request, _ nothing) (any, error) {
	r := rq.Region
	_, ng, err := nodegroupOf(rq)
	if err != nil {
		return nil, err
	}
	switch ng.Status {
	case creating, updating:
		return nil, wire.Fail("ResourceInUseException", "Nodegroup cannot be deleted as it is currently in %s state", ng.Status).
			With("clusterName", ng.Cluster).With("nodegroupName", ng.Name)
	case deleting:
	default:
		ng.enter(r, deleting)
		if g := ng.group(r); g != nil && !g.Deleting {
			r.asg.DeleteGroup(g)
		}
		r.tickNodegroup(ng, r.Timings().NodegroupDelete)
	}
	return ng.out(r), nil
}

// enter sets the nodegroup's state.
func (ng *nodegroup) enter(r *Region, status string) {
	ng.Status, ng.Modified, ng.Started = status, r.Now(), r.Now()
}

// tickNodegroup sets the timer of the next step. Earlier timers become void.
func (r *Region) tickNodegroup(ng *nodegroup, d time.Duration) {
	ng.Tick++
	r.After(d, timerNodegroup, ng.key()+"/"+wire.Decimal(ng.Tick))
}

func runNodegroup(r *Region, key string) {
	parts := strings.Split(key, "/")
	c := r.Clusters.Get(parts[0])
	if c == nil {
		return
	}
	ng := c.Nodegroups.Get(parts[1])
	if ng == nil || ng.UUID != parts[2] || wire.Decimal(ng.Tick) != parts[3] {
		return
	}
	again := r.stepNodegroup(c, ng)
	if again > 0 {
		r.tickNodegroup(ng, again)
	}
}

// applyWarm sets the warm pool of the nodegroup's Auto Scaling group from the EKS settings.
func (r *Region) applyWarm(ng *nodegroup) {
	g, want := ng.group(r), ng.WarmPool
	switch {
	case g == nil || g.Deleting:
		return
	case want != nil:
		pool := asg.WarmPool{Reuse: want.Reuse, State: map[string]string{"RUNNING": "Running", "HIBERNATED": "Hibernated"}[want.State]}
		pool.State = cmp.Or(pool.State, "Stopped")
		asg.Set(&pool.Min, want.Min)
		if want.MaxPrepared != nil && *want.MaxPrepared >= 0 {
			pool.MaxPrepared = want.MaxPrepared
		}
		g.Warm = &pool
	case g.Warm != nil && !g.Warm.Deleting:
		asg.Warm(r.asg, g).Remove()
	}
	r.asg.Touch(g)
}
