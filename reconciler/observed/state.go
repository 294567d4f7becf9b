// Package observed holds the answers of AWS. State holds the resources of an account and region,
// and Answers holds the answers to lookups. Absent holds names that do not exist, Unread and Error
// what AWS refused to show. Tags say who owns a resource, and Needs names the facts that planning
// still needs.
//
// Everything here is a value: the reader of AWS makes it, planning compares it with what Git wants,
// and neither changes it afterwards. Three states of a resource are distinct, because nothing may
// be deleted or made on a guess: it exists, weir asked for it and it does not exist (Absent), and
// weir did not ask for it, which is neither. A resource that AWS would not show (Unread) is a
// fourth: it is unknown, and never counts as absent.
package observed

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/render/intent"
)

// State holds AWS's resources in one account and region, as far as they were read. It
// is shared by all targets there and is not changed by planning.
type State struct {
	Account string
	Region  string
	// Templates, Groups and Nodegroups hold the resources that were found, by name. For a name in
	// Absent, weir asked and the resource does not exist. For a name in neither, weir did not ask.
	Templates  map[string]Template
	Groups     map[string]Group
	Nodegroups map[NodegroupName]Nodegroup
	Absent     Absent
	// Refreshes holds the newest instance refresh of the groups for which it
	// was read, in this pass or in an earlier one of the process, by group name. A
	// group without refreshes gives a zero ID.
	Refreshes map[string]Refresh
	// Hooks holds the lifecycle hooks of the groups for which they were read.
	Hooks map[string]GroupHooks
	// Activities holds the scaling activities that were asked for.
	Activities map[ActivityQuery]Activities
	// Launches holds why machines of groups do not come that are short of some.
	Launches map[string]Launches
	// Updates holds the newest update of the nodegroups for which it was read.
	Updates map[NodegroupName]NodegroupUpdate
	// Clusters holds the EKS clusters whose nodegroups were listed; false
	// means that the cluster does not exist.
	Clusters map[string]bool
	// Unread holds what AWS would not let weir read.
	Unread Unread
	// TemplateUsers names every group of the account and region, of any owner, that launches from a
	// template, by template id and by name. It is nil until it was read.
	TemplateUsers map[string][]string
	// VersionUsers holds the users, of any owner, of each version of a template, by the template's
	// name: groups, active instance refreshes, nodegroups and live instances. If a template is
	// missing, weir did not ask for it.
	VersionUsers map[string][]VersionUser
	// LaunchConfigurations holds the content of launch configurations that were asked for,
	// as that of a launch template which starts the same machines. One that does not
	// exist, or may not be read, is Unknown.
	LaunchConfigurations map[string]TemplateVersion
	// Launched holds the launch times of the requested instances. An instance that no longer exists
	// has a zero time.
	Launched map[string]time.Time
	// Alarms holds the states of those alarms of CloudWatch that were asked for, "" for one
	// that does not exist; AlarmsUnknown says why others of them are not in it. Both are
	// empty until alarms were asked for.
	Alarms        map[string]string
	AlarmsUnknown string
}

// VersionUser is something that uses a template's version.
type VersionUser struct {
	// User names it for people, such as "the group web".
	User string
	// Version is a number, "$Latest", "$Default" or "" for the default.
	Version string
}

// Absent holds names that were asked for one by one and do not exist.
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
	// Versions holds the versions that were read: they are immutable. Missing
	// holds numbers that were asked for and do not exist (any more).
	Versions map[int64]TemplateVersion
	Missing  map[int64]bool
	// Numbers holds the numbers of all existing versions, ascending; nil if weir did not read them.
	// Contents describes the contents of weir's own versions, in the form of content.Of.
	Numbers  []int64
	Contents map[int64]string
}

// TemplateVersion is one immutable version of a launch template.
type TemplateVersion struct {
	Number      int64
	Description string
	Data        intent.TemplateData
	// Unknown says that the version holds members which weir does not know,
	// so Data is not all of it.
	Unknown bool
	// Body is BodyHash(Data), worked out once when the version is read; with "", weir
	// works it out where it is needed.
	Body string
}

// Hash is BodyHash of what the version holds.
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
	// GroupSettings holds all traffic sources in Options.TrafficSources;
	// Options.DeleteWarmPool says that AWS is deleting the warm pool.
	intent.GroupSettings
	// Template is the group's launch template, of the mixed instances policy
	// where there is one.
	Template TemplateRef
	// LaunchConfiguration names what the group launches from where it has no template.
	LaunchConfiguration  string
	MixedInstancesPolicy *intent.MixedInstances
	// UnknownPolicy says that the mixed instances policy holds members which
	// weir does not know.
	UnknownPolicy      bool
	SuspendedProcesses []string // sorted
	Tags               map[string]GroupTag
	Instances          []Instance
	CreatedAt          time.Time
}

// GroupTag is a tag's value on a group, and whether launches copy it.
type GroupTag struct {
	Value             string
	PropagateAtLaunch bool
}

// TemplateRef names a version of a launch template. In a step, Version "" means
// the version that an earlier step of the same plan makes. In observed state it
// may also be "$Latest" or "$Default".
type TemplateRef struct {
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	// Content stands, in a reference to a version that is yet to be made, for
	// what it will hold: a template may get several versions in one pass.
	Content string `json:"-"`
}

// Instance is one instance of a group.
type Instance struct {
	ID             string
	Type           string
	Zone           string
	LifecycleState string // Pending, InService, Terminating…, as AWS writes it
	Health         string // Healthy or Unhealthy
	Protected      bool   // from scale-in
	Template       TemplateRef
	// LaunchConfiguration names the launch configuration of an instance without a template.
	LaunchConfiguration string
	// ImageID is the image of a machine that has another one than its launch template
	// version: that of an override.
	// Assumed of AWS: override-images-shown.
	ImageID string
}

// Refresh is an instance refresh of a group.
type Refresh struct {
	ID         string
	Status     string // AWS's, such as InProgress or RollbackSuccessful
	Reason     string
	Percentage int32
	// InstancesLeft is InstancesToUpdate.
	InstancesLeft int32
	// Template and MixedInstancesPolicy are the desired configuration, zero
	// where the refresh was started without one.
	Template             TemplateRef
	MixedInstancesPolicy *intent.MixedInstances
	Preferences          intent.Refresh
	StartedAt            time.Time
	EndedAt              time.Time
	// ReadAt is the time when AWS reported this, or accepted the request that made it so.
	ReadAt time.Time
	// Earlier lists the earlier refreshes that were started within Lately before the read, as far
	// as they are known.
	Earlier []Refresh
}

// Brings reports whether the refresh brings a group to a policy. A request without overrides
// holds no empty list (convert.Refreshes says why), and AWS may answer with those that the
// group has.
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

// Lately is the age up to which ended refreshes are of interest.
const Lately = time.Hour

// Active reports whether the refresh still moves. The states are those of
// the Auto Scaling API's InstanceRefreshStatus.
func (r Refresh) Active() bool {
	switch r.Status {
	case "Pending", "InProgress", "Baking", "Cancelling", "RollbackInProgress":
		return true
	}
	return false
}

// Moving reports whether the refresh is on its way to its configuration.
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

// String prints cluster/name.
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
	DescribedAtPass bool // false: remembered from an earlier pass
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
	// TemplateVersion is that of its launch template to which it leads, empty for none.
	TemplateVersion string
}
