// Package observed contains AWS's answers. State contains the resources of an account and region, and
// Answers the answers to lookups. Absent lists names that do not exist, and Unread and Error describe what
// AWS refused to show. Tags record the owner of a resource, and Needs lists the facts that planning still
// needs.
//
// Everything here is a value: the reader of AWS makes it, planning compares it with Git, and neither changes
// it afterwards. weir must not create or delete anything on a guess, so a resource has four distinct states:
// it exists; weir read it and it does not exist (Absent); weir did not read it; AWS refused to show it
// (Unread). The last two never count as absent.
package observed

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/render/intent"
)

// State contains AWS's resources in one account and region, as far as they were read. All targets there
// share it, and planning does not change it.
type State struct {
	Account string
	Region  string
	// Templates, Groups and Nodegroups contain the resources that were found, by name. A name in Absent was
	// read and does not exist. A name in neither was not read.
	Templates  map[string]Template
	Groups     map[string]Group
	Nodegroups map[NodegroupName]Nodegroup
	Absent     Absent
	// Refreshes has the newest instance refresh of groups, by group name, if this process has read it, now
	// or in an earlier pass. A group without refreshes has one with an empty ID.
	Refreshes map[string]Refresh
	// Hooks has the lifecycle hooks of the groups for which they were read.
	Hooks map[string]GroupHooks
	// Activities has the requested scaling activities.
	Activities map[ActivityQuery]Activities
	// Launches explains why groups are short of machines.
	Launches map[string]Launches
	// Updates has the newest update of the nodegroups for which it was read.
	Updates map[NodegroupName]NodegroupUpdate
	// Clusters has the EKS clusters whose nodegroups were listed. The value false means that the cluster
	// does not exist.
	Clusters map[string]bool
	// Unread lists what AWS did not let weir read.
	Unread Unread
	// TemplateUsers lists every group in the account and region, of any owner, that launches from a
	// template, by template id and by name. It is nil if it was not read.
	TemplateUsers map[string][]string
	// VersionUsers lists the users, of any owner, of each version of a template, by the template's name:
	// groups, active instance refreshes, nodegroups and live instances. A template without an entry was not
	// read.
	VersionUsers map[string][]VersionUser
	// LaunchConfigurations has the content of the requested launch configurations, as launch template data
	// that starts the same machines. A launch configuration that does not exist or may not be read is
	// Unknown.
	LaunchConfigurations map[string]TemplateVersion
	// Launched has the launch times of the requested instances. An instance that no longer exists has a zero
	// time.
	Launched map[string]time.Time
	// Alarms has the states of the requested CloudWatch alarms; a missing alarm has "". AlarmsUnknown
	// explains why requested alarms have no entry. Both are empty if no alarms were requested.
	Alarms        map[string]string
	AlarmsUnknown string
}

// VersionUser is a user of a template's version.
type VersionUser struct {
	// User names the user for people, such as "the group web".
	User string
	// Version is a number, "$Latest", "$Default" or "" for the default.
	Version string
}

// Absent lists names that were read one by one and do not exist.
type Absent struct {
	Templates  map[string]bool
	Groups     map[string]bool
	Nodegroups map[NodegroupName]bool
}

// Template is an EC2 launch template.
type Template struct {
	ID             string
	Name           string
	DefaultVersion int64
	LatestVersion  int64
	Tags           map[string]string
	// Versions has the versions that were read, which never change. Missing has numbers that were read and
	// do not exist, or no longer.
	Versions map[int64]TemplateVersion
	Missing  map[int64]bool
	// Numbers lists the numbers of all existing versions, ascending. It is nil if weir did not read them.
	// Contents has the hashes of the contents of weir's own versions, in the form of content.Of.
	Numbers  []int64
	Contents map[int64]string
}

// TemplateVersion is one immutable version of a launch template.
type TemplateVersion struct {
	Number      int64
	Description string
	Data        intent.TemplateData
	// Unknown says that the version has members that weir does not know, so Data is incomplete.
	Unknown bool
	// Body is BodyHash(Data), computed when the version is read. If it is empty, Hash computes it.
	Body string
}

// Hash returns the BodyHash of the version's data.
func (v TemplateVersion) Hash() string {
	if v.Body != "" {
		return v.Body
	}
	return content.BodyHash(v.Data)
}

// Group is an Auto Scaling group.
type Group struct {
	Name string
	ARN  string
	// Deleting is set while AWS is deleting the group.
	Deleting        bool
	MinSize         int32
	MaxSize         int32
	DesiredCapacity int32
	SubnetIDs       []string // sorted
	// GroupSettings includes all traffic sources, in Options.TrafficSources. Options.DeleteWarmPool says
	// that AWS is deleting the warm pool.
	intent.GroupSettings
	// Template is the group's launch template. If the group has a mixed instances policy, it is the
	// policy's.
	Template TemplateRef
	// LaunchConfiguration names the launch configuration of a group without a template.
	LaunchConfiguration  string
	MixedInstancesPolicy *intent.MixedInstances
	// UnknownPolicy says that the mixed instances policy has members that weir does not know.
	UnknownPolicy      bool
	SuspendedProcesses []string // sorted
	Tags               map[string]GroupTag
	Instances          []Instance
	CreatedAt          time.Time
}

// GroupTag is the value of a group's tag, and whether instances get the tag.
type GroupTag struct {
	Value             string
	PropagateAtLaunch bool
}

// TemplateRef names a version of a launch template. In a step, an empty Version means the version that an
// earlier step of the same plan makes. In observed state, Version may also be "$Latest" or "$Default".
type TemplateRef struct {
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	// Content identifies the future content of a version that does not exist yet, because a template may get
	// several versions in one pass.
	Content string `json:"-"`
}

// Instance is one instance of a group.
type Instance struct {
	ID             string
	Type           string
	Zone           string
	LifecycleState string // Pending, InService, Terminating…, in AWS's spelling
	Health         string // Healthy or Unhealthy
	Protected      bool   // from scale-in
	Template       TemplateRef
	// LaunchConfiguration names the launch configuration of an instance without a template.
	LaunchConfiguration string
	// ImageID is the image of a machine whose image differs from its launch template version's: the image of
	// an override.
	// Assumed of AWS: override-images-shown.
	ImageID string
}

// Refresh is an instance refresh of a group.
type Refresh struct {
	ID         string
	Status     string // AWS's status, such as InProgress or RollbackSuccessful
	Reason     string
	Percentage int32
	// InstancesLeft is AWS's InstancesToUpdate.
	InstancesLeft int32
	// Template and MixedInstancesPolicy are the desired configuration, zero if the refresh was started
	// without one.
	Template             TemplateRef
	MixedInstancesPolicy *intent.MixedInstances
	Preferences          intent.Refresh
	StartedAt            time.Time
	EndedAt              time.Time
	// ReadAt is the time at which AWS reported this, or accepted the request that caused it.
	ReadAt time.Time
	// Earlier lists the known earlier refreshes that started within Lately before the read.
	Earlier []Refresh
}

// Brings reports whether the refresh sets a group to a policy. A request without overrides leaves them out
// (see convert.Refreshes), so AWS may answer with the group's own overrides.
func (r Refresh) Brings(policy *intent.MixedInstances) bool {
	if r.MixedInstancesPolicy.Same(policy) {
		return true
	}
	if r.MixedInstancesPolicy == nil || policy == nil || len(policy.Overrides) > 0 {
		return false
	}
	bare := *r.MixedInstancesPolicy
	bare.Overrides = nil
	return bare.Same(policy)
}

// Lately is the maximum age of ended refreshes that matter.
const Lately = time.Hour

// Active reports whether the refresh is in progress. The states are values of InstanceRefreshStatus in the
// Auto Scaling API.
func (r Refresh) Active() bool {
	switch r.Status {
	case "Pending", "InProgress", "Baking", "Cancelling", "RollbackInProgress":
		return true
	}
	return false
}

// Moving reports whether the refresh is progressing towards its configuration.
func (r Refresh) Moving() bool {
	return r.Active() && r.Status != "Cancelling" && r.Status != "RollbackInProgress"
}

// Failed reports whether the refresh ended without reaching its configuration.
func (r Refresh) Failed() bool {
	switch r.Status {
	case "Failed", "RollbackFailed", "RollbackSuccessful":
		return true
	}
	return false
}

// NodegroupName identifies a managed nodegroup in an account and region.
type NodegroupName struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
}

// String returns cluster/name.
func (n NodegroupName) String() string { return n.Cluster + "/" + n.Name }

// Nodegroup is an EKS managed nodegroup.
type Nodegroup struct {
	NodegroupName
	ARN         string
	Status      string // CREATING, ACTIVE, UPDATING, DELETING, CREATE_FAILED, DELETE_FAILED, DEGRADED
	NodeRole    string
	SubnetIDs   []string // sorted
	MinSize     int32
	MaxSize     int32
	DesiredSize int32
	intent.NodegroupSettings
	Template        TemplateRef // zero without a launch template
	Tags            map[string]string
	GroupNames      []string // Auto Scaling groups behind it
	HealthIssues    []HealthIssue
	CreatedAt       time.Time
	DescribedAtPass bool // false if from an earlier pass
}

// HealthIssue is one entry of a nodegroup's health.
type HealthIssue struct {
	Code        string
	Message     string
	ResourceIDs []string
}

// NodegroupUpdate is an EKS update of a nodegroup.
type NodegroupUpdate struct {
	ID        string
	Type      string // ConfigUpdate or VersionUpdate
	Status    string // InProgress, Failed, Cancelled, Successful
	Errors    []HealthIssue
	CreatedAt time.Time
	// TemplateVersion is the launch template version that the update sets, or empty.
	TemplateVersion string
}
