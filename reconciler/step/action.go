package step

import (
	"cmp"
	"maps"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Action is the request of a step, one of the types below. An executor executes it with one call to
// AWS (not counting tags that it sets and removes). To add an action, add a type with its About,
// and its case in the adapter's Execute. An action that launches machines from a template version
// also implements versioned. An action that writes tags implements Tagging. An action whose cause
// AWS's scaling activities may explain implements Explained.
type Action interface {
	About() About
}

// About describes an action to callers that do not know its type. Fields that do not apply to the
// action are zero.
type About struct {
	// Group, Nodegroup and Template are the existing resources that the action changes or ends.
	Group     string
	Nodegroup observed.NodegroupName
	Template  observed.TemplateRef // without a version
	// Cluster is the EKS cluster of the new resource.
	Cluster string
	// Ends is set if the action removes something. If that is gone already, the action has
	// succeeded.
	Ends bool
	// Makes is the content of the new template version, in the form of content.Of.
	Makes string
	// Launches is the template version from which machines will be launched.
	Launches *observed.TemplateRef
	// Starts reports whether machines with another launch configuration may start at once.
	// Configures reports whether the action brings a launch configuration closer to the machines.
	Starts, Configures bool
	// Refresh is the effect of the action on the instance refresh of Group.
	Refresh RefreshUse
	// Put contains the tags to write, and Remove the tags to delete.
	Put    map[string]string
	Remove []string
}

// RefreshUse is the relation of an action to the newest instance refresh of a group.
type RefreshUse string

// Uses of an instance refresh. GoesByRefresh is for a change that a refresh would undo.
const (
	StartsRefresh  RefreshUse = "starts"
	CancelsRefresh RefreshUse = "cancels"
	RollsBack      RefreshUse = "rolls-back"
	GoesByRefresh  RefreshUse = "goes-by"
)

// EndsRefresh reports whether the action ends the running refresh.
func (a About) EndsRefresh() bool { return a.Refresh == CancelsRefresh || a.Refresh == RollsBack }

// Subjects returns the names and ids of the resources that must exist in AWS before the action.
func (a About) Subjects() []string {
	if a.Ends {
		return nil
	}
	var out []string
	if a.Group != "" {
		out = append(out, GroupSubject(a.Group))
	}
	if a.Nodegroup != (observed.NodegroupName{}) {
		out = append(out, NodegroupSubject(a.Nodegroup))
	}
	for _, t := range []*observed.TemplateRef{&a.Template, a.Launches} {
		if t != nil && *t != (observed.TemplateRef{}) {
			out = append(out, t.ID, t.Name)
		}
	}
	return out
}

// RefreshOf returns the group whose newest instance refresh the action depends on, "" for none: the
// action starts or ends one, or a refresh would undo it.
func (a About) RefreshOf() string {
	if a.Refresh == "" {
		return ""
	}
	return a.Group
}

// GroupSubject returns the subject of a group.
func GroupSubject(name string) string { return "group/" + name }

// NodegroupSubject returns the subject of a nodegroup.
func NodegroupSubject(name observed.NodegroupName) string { return "nodegroup/" + name.String() }

// EksCluster returns the EKS cluster of the action's nodegroup, or of its new template.
func (a About) EksCluster() string { return cmp.Or(a.Cluster, a.Nodegroup.Cluster) }

// Unmade returns the version that the action needs and that does not exist yet, zero for none.
func (a About) Unmade() MadeKey {
	switch {
	case a.Template.Name != "" && a.Template.ID == "":
		return MadeKey{Name: a.Template.Name}
	case a.Launches != nil && a.Launches.Name != "" && a.Launches.Version == "":
		return MadeKey{Name: a.Launches.Name, Content: a.Launches.Content}
	}
	return MadeKey{}
}

// Unmade reports whether an action needs a template version that does not exist, because the step
// that makes it did not run.
func Unmade(a Action) bool { return a.About().Unmade() != MadeKey{} }

// Makes returns the content of an additional template version that the step makes, "" for none. The
// first version of a new template does not count.
func (s Step) Makes() string {
	if s.Verb == Create {
		return ""
	}
	return s.About().Makes
}

// About describes the step's action. It is zero for a step that stands for work that cannot be
// planned yet.
func (s Step) About() About {
	if s.Do == nil {
		return About{}
	}
	return s.Do.About()
}

// CreateLaunchTemplate makes a template with version 1.
type CreateLaunchTemplate struct {
	Name        string
	Description string
	Data        intent.TemplateData
	Tags        map[string]string
	Token       string
}

// CreateLaunchTemplateVersion adds a version to a template.
type CreateLaunchTemplateVersion struct {
	Template    observed.TemplateRef // Version is empty
	Description string
	Data        intent.TemplateData
	Token       string
}

// SetDefaultVersion moves a template's default version.
type SetDefaultVersion struct {
	Template observed.TemplateRef
	Token    string
	// A Patient step runs only if AWS's rate limits leave a spare call: nothing launches from the
	// default version of weir's templates, and other changes would wait behind it. Otherwise the
	// error is ErrLater.
	Patient bool
}

// DeleteLaunchTemplateVersions deletes up to 200 versions of a template. A version that is gone
// already counts as deleted. AWS's refusal for any other version is the error.
type DeleteLaunchTemplateVersions struct {
	Template observed.TemplateRef // Version is empty
	Versions []int64              // ascending
}

// DeleteLaunchTemplate deletes a template with all of its versions.
type DeleteLaunchTemplate struct {
	Template observed.TemplateRef
}

// TagLaunchTemplate sets and removes tags of a template.
type TagLaunchTemplate struct {
	Template observed.TemplateRef
	Put      map[string]string
	Remove   []string // sorted
}

// CreateGroup makes an Auto Scaling group with all settings that CreateAutoScalingGroup accepts.
type CreateGroup struct {
	Group          observed.Group // Name, sizes, subnets, cooldown, warmup, Template, policy, Tags
	LifecycleHooks []intent.LifecycleHook
}

// UpdateGroup changes the members of a group that are not nil.
type UpdateGroup struct {
	Name                 string
	MinSize              *int32
	MaxSize              *int32
	DesiredCapacity      *int32
	SubnetIDs            []string
	intent.GroupSettings // the changed settings that this call accepts
	Template             *observed.TemplateRef
	MixedInstancesPolicy *intent.MixedInstances // sent with Template
}

// LongestDelay is the longest time, in seconds, that AWS can wait at a checkpoint.
const LongestDelay int32 = 172800

// StartRefresh starts an instance refresh with SkipMatching and the desired configuration.
type StartRefresh struct {
	Group                string
	Template             observed.TemplateRef
	MixedInstancesPolicy *intent.MixedInstances
	Preferences          intent.Refresh
}

// CancelRefresh cancels the group's running instance refresh.
type CancelRefresh struct {
	Group string
	// RefreshID is the observed refresh. weir remembers that it cancelled it.
	RefreshID string
}

// RollbackRefresh rolls back the group's running instance refresh: AWS replaces the machines that
// it has launched by machines with the configuration to which the group is set.
type RollbackRefresh struct {
	Group string
	// RefreshID is the observed refresh. No other refresh is rolled back.
	RefreshID string
}

// SetProcesses suspends and resumes scaling processes; both lists are sorted.
type SetProcesses struct {
	Group   string
	Suspend []string
	Resume  []string
}

// SetTrafficSources attaches and detaches load balancers and target groups.
type SetTrafficSources struct {
	Group                    string
	Attach                   []intent.TrafficSource
	Detach                   []intent.TrafficSource
	SkipZonalShiftValidation *bool
}

// PutWarmPool creates a group's warm pool if New is set, else changes it.
type PutWarmPool struct {
	Group    string
	WarmPool intent.WarmPool
	New      bool
}

// DeleteWarmPool deletes a group's warm pool with its instances.
type DeleteWarmPool struct {
	Group string
}

// SetMetrics enables and disables the collection of group metrics.
type SetMetrics struct {
	Group       string
	Granularity string
	Enable      []string
	Disable     []string
}

// TagGroup sets and removes tags of a group.
type TagGroup struct {
	Group  string
	Put    map[string]observed.GroupTag
	Remove []string // sorted
}

// Tags returns the group's tags after the action.
func (t TagGroup) Tags(have map[string]observed.GroupTag) map[string]observed.GroupTag {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]observed.GroupTag{}
	}
	maps.Copy(out, t.Put)
	for _, k := range t.Remove {
		delete(out, k)
	}
	return out
}

// DeleteGroup deletes a group. Force ends its machines without their lifecycle hooks (ForceDelete).
// Without Force, AWS deletes only an empty group.
type DeleteGroup struct {
	Name  string
	Force bool
}

// CreateNodegroup makes a managed nodegroup.
type CreateNodegroup struct {
	Nodegroup observed.Nodegroup // the fields that CreateNodegroup accepts; Template.Version may be ""
	Token     string
}

// UpdateNodegroupConfig changes settings with one UpdateNodegroupConfig call.
type UpdateNodegroupConfig struct {
	observed.NodegroupName
	MinSize, MaxSize, DesiredSize *int32
	PutLabels                     map[string]string
	RemoveLabels                  []string // sorted
	PutTaints                     []intent.Taint
	RemoveTaints                  []intent.Taint
	// Settings contains all other fields to send, each as a whole. Absent fields stay unchanged.
	Settings intent.NodegroupSettings
	Token    string
}

// UpdateNodegroupVersion moves a nodegroup to a template version, a Kubernetes
// version or a release version.
type UpdateNodegroupVersion struct {
	observed.NodegroupName
	Template       *observed.TemplateRef
	Version        string
	ReleaseVersion string
	// Force ends pods even if a disruption budget protects them.
	Force bool
	Token string
}

// TagNodegroup sets and removes tags of a nodegroup.
type TagNodegroup struct {
	observed.NodegroupName
	ARN    string
	Put    map[string]string
	Remove []string // sorted
}

// DeleteNodegroup deletes a nodegroup.
type DeleteNodegroup struct {
	observed.NodegroupName
}
