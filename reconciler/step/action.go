package step

import (
	"cmp"
	"maps"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Action is the request of a step, one of the types below. An executor does it with one call to AWS
// (not counting tags that it sets and removes). To add an action, add a type that says what it is
// about, and the case that does it in the adapter's Execute. An action that launches machines from
// a template version also implements versioned, and an action that writes tags implements Tagging.
// An action whose cause AWS's scaling activities may explain implements Explained.
type Action interface {
	About() About
}

// About holds what callers ask of an action without knowing its type. Members are zero
// where they do not concern the action.
type About struct {
	// Group, Nodegroup and Template are the present resources that are changed or ended.
	Group     string
	Nodegroup observed.NodegroupName
	Template  observed.TemplateRef // without a version
	// Cluster is the EKS cluster of the new resource.
	Cluster string
	// Ends is set where a resource that is gone already is no failure: the action
	// removes it.
	Ends bool
	// Makes is the content of the new template version, in the form of content.Of.
	Makes string
	// Launches is the template version from which machines are to be launched.
	Launches *observed.TemplateRef
	// Starts says that machines of another launch configuration may start at once,
	// Configures that the action is a step on the way of a launch configuration to the
	// machines.
	Starts, Configures bool
	// Refresh says what becomes of the instance refresh of Group.
	Refresh RefreshUse
	// Put and Remove are the tags that are written and those that go.
	Put    map[string]string
	Remove []string
}

// RefreshUse says what an action has to do with the newest instance refresh of a group.
type RefreshUse string

// Uses of an instance refresh. A change that a refresh would undo depends on it.
const (
	StartsRefresh  RefreshUse = "starts"
	CancelsRefresh RefreshUse = "cancels"
	RollsBack      RefreshUse = "rolls-back"
	GoesByRefresh  RefreshUse = "goes-by"
)

// EndsRefresh reports whether the action ends the refresh that runs.
func (a About) EndsRefresh() bool { return a.Refresh == CancelsRefresh || a.Refresh == RollsBack }

// Subjects are the names and ids that AWS has to see before the action can be done.
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

// RefreshOf names the group whose newest instance refresh the action depends on, "" for none: it
// starts or ends one, or a refresh would undo it.
func (a About) RefreshOf() string {
	if a.Refresh == "" {
		return ""
	}
	return a.Group
}

// GroupSubject is a group among the subjects of an action.
func GroupSubject(name string) string { return "group/" + name }

// NodegroupSubject is a nodegroup among the subjects of an action.
func NodegroupSubject(name observed.NodegroupName) string { return "nodegroup/" + name.String() }

// EksCluster is the EKS cluster of the nodegroup, or of its new template, that an action
// is about.
func (a About) EksCluster() string { return cmp.Or(a.Cluster, a.Nodegroup.Cluster) }

// Unmade is the version that an action needs and that has not been made, zero for none.
func (a About) Unmade() MadeKey {
	switch {
	case a.Template.Name != "" && a.Template.ID == "":
		return MadeKey{Name: a.Template.Name}
	case a.Launches != nil && a.Launches.Name != "" && a.Launches.Version == "":
		return MadeKey{Name: a.Launches.Name, Content: a.Launches.Content}
	}
	return MadeKey{}
}

// Unmade reports whether an action needs a template version that has not been
// made: a step before it that was to make it did not run.
func Unmade(a Action) bool { return a.About().Unmade() != MadeKey{} }

// Makes is the content of a further template version that the step makes, "" for none:
// a template that is made with its first version needs no other.
func (s Step) Makes() string {
	if s.Verb == Create {
		return ""
	}
	return s.About().Makes
}

// About holds what callers ask of a step's action; a step that stands for what cannot
// be planned yet has none.
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
	// A Patient step runs only where AWS's limits leave a spare call: nothing launches
	// from the default version of weir's templates, and other changes wait behind it.
	// The error is ErrLater otherwise.
	Patient bool
}

// DeleteLaunchTemplateVersions deletes versions of a template, 200 at most. One
// that is gone already is done; AWS's refusal for any other instance is the error.
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

// CreateGroup makes an Auto Scaling group with everything that CreateAutoScalingGroup takes.
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
	intent.GroupSettings // those that change, and that this call can change
	Template             *observed.TemplateRef
	MixedInstancesPolicy *intent.MixedInstances // sent with Template
}

// LongestDelay is for how long, in seconds, AWS can be told to wait at a checkpoint.
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
	// RefreshID is the refresh that was observed, for weir's memory.
	RefreshID string
}

// RollbackRefresh turns the group's running instance refresh around: AWS replaces the
// machines that it has launched by ones of the configuration that the group is set to.
type RollbackRefresh struct {
	Group string
	// RefreshID is the refresh that was observed: no other one is taken for it.
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

// PutWarmPool makes a group's warm pool, which is New, or changes it.
type PutWarmPool struct {
	Group    string
	WarmPool intent.WarmPool
	New      bool
}

// DeleteWarmPool deletes a group's warm pool with its instances.
type DeleteWarmPool struct {
	Group string
}

// SetMetrics makes a group collect some metrics, and stop collecting others.
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

// Tags are a group's once it is done.
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

// DeleteGroup deletes a group. Force ends the machines that it has, without their
// lifecycle hooks (ForceDelete); without it AWS deletes an empty group only.
type DeleteGroup struct {
	Name  string
	Force bool
}

// CreateNodegroup makes a managed nodegroup.
type CreateNodegroup struct {
	Nodegroup observed.Nodegroup // what CreateNodegroup takes; Template.Version may be ""
	Token     string
}

// UpdateNodegroupConfig changes what one UpdateNodegroupConfig call can change.
type UpdateNodegroupConfig struct {
	observed.NodegroupName
	MinSize, MaxSize, DesiredSize *int32
	PutLabels                     map[string]string
	RemoveLabels                  []string // sorted
	PutTaints                     []intent.Taint
	RemoveTaints                  []intent.Taint
	// Settings are the other members that are sent, each whole; absent ones stay.
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
	// Force ends pods that a disruption budget protects.
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
