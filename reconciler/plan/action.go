package plan

import (
	"maps"

	"github.com/weir-gitops/weir/render/intent"
)

// Action is the request of a step, one of the types below. An executor does it
// with one call to AWS (tags that are set and removed aside).
type Action interface{ action() }

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
	Template    TemplateRef // Version is empty
	Description string
	Data        intent.TemplateData
	Token       string
}

// SetDefaultVersion moves a template's default version.
type SetDefaultVersion struct {
	Template TemplateRef
	Token    string
	// Patient has it done only where AWS's limits leave a call to spare: nothing
	// launches from the default version of weir's templates, and other changes wait
	// behind it. The error is ErrLater otherwise.
	Patient bool
}

// DeleteLaunchTemplateVersions deletes versions of a template, 200 at most. One
// that is gone already is done; what AWS refuses of the others is the error.
type DeleteLaunchTemplateVersions struct {
	Template TemplateRef // Version is empty
	Versions []int64     // ascending
}

// DeleteLaunchTemplate deletes a template with all of its versions.
type DeleteLaunchTemplate struct {
	Template TemplateRef
}

// TagLaunchTemplate sets and removes tags of a template.
type TagLaunchTemplate struct {
	Template TemplateRef
	Put      map[string]string
	Remove   []string // sorted
}

// CreateGroup makes an Auto Scaling group with everything that CreateAutoScalingGroup takes.
type CreateGroup struct {
	Group          Group // Name, sizes, subnets, cooldown, warmup, Template, policy, Tags
	LifecycleHooks []intent.LifecycleHook
}

// UpdateGroup changes the members of a group that are not nil.
type UpdateGroup struct {
	Name                  string
	MinSize               *int32
	MaxSize               *int32
	DesiredCapacity       *int32
	SubnetIDs             []string
	DefaultCooldown       *int32
	DefaultInstanceWarmup *int32
	CapacityRebalance     *bool
	Template              *TemplateRef
	MixedInstancesPolicy  *intent.MixedInstances // sent with Template
	// Options holds those that change, and that this call can change.
	Options intent.GroupOptions
}

// StartRefresh starts an instance refresh with SkipMatching and the desired configuration.
type StartRefresh struct {
	Group                string
	Template             TemplateRef
	MixedInstancesPolicy *intent.MixedInstances
	Preferences          intent.Refresh
}

// CancelRefresh cancels the group's running instance refresh.
type CancelRefresh struct {
	Group string
	// RefreshID is the refresh that was observed, for weir's memory.
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

// SetMetrics has a group collect metrics, and others no longer.
type SetMetrics struct {
	Group       string
	Granularity string
	Enable      []string
	Disable     []string
}

// TagGroup sets and removes tags of a group.
type TagGroup struct {
	Group  string
	Put    map[string]GroupTag
	Remove []string // sorted
}

// tags are a group's once it is done.
func (t TagGroup) tags(have map[string]GroupTag) map[string]GroupTag {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]GroupTag{}
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
	Nodegroup Nodegroup // what CreateNodegroup takes; Template.Version may be ""
	Token     string
}

// UpdateNodegroupConfig changes what one UpdateNodegroupConfig call can change.
type UpdateNodegroupConfig struct {
	NodegroupName
	MinSize, MaxSize, DesiredSize *int32
	PutLabels                     map[string]string
	RemoveLabels                  []string // sorted
	PutTaints                     []intent.Taint
	RemoveTaints                  []intent.Taint
	UpdateConfig                  *intent.UpdateConfig
	// NodeRepair and RepairOptions are sent together, both whole.
	NodeRepair    *bool
	RepairOptions *intent.RepairOptions
	WarmPool      *intent.NodegroupWarmPool
	Token         string
}

// UpdateNodegroupVersion moves a nodegroup to a template version, a Kubernetes
// version or a release version.
type UpdateNodegroupVersion struct {
	NodegroupName
	Template       *TemplateRef
	Version        string
	ReleaseVersion string
	// Force ends pods that a disruption budget protects.
	Force bool
	Token string
}

// TagNodegroup sets and removes tags of a nodegroup.
type TagNodegroup struct {
	NodegroupName
	ARN    string
	Put    map[string]string
	Remove []string // sorted
}

// DeleteNodegroup deletes a nodegroup.
type DeleteNodegroup struct {
	NodegroupName
}

func (CreateLaunchTemplate) action()         {}
func (CreateLaunchTemplateVersion) action()  {}
func (SetDefaultVersion) action()            {}
func (DeleteLaunchTemplate) action()         {}
func (DeleteLaunchTemplateVersions) action() {}
func (TagLaunchTemplate) action()            {}
func (CreateGroup) action()                  {}
func (UpdateGroup) action()                  {}
func (StartRefresh) action()                 {}
func (CancelRefresh) action()                {}
func (SetProcesses) action()                 {}
func (SetTrafficSources) action()            {}
func (PutWarmPool) action()                  {}
func (DeleteWarmPool) action()               {}
func (SetMetrics) action()                   {}
func (TagGroup) action()                     {}
func (DeleteGroup) action()                  {}
func (CreateNodegroup) action()              {}
func (UpdateNodegroupConfig) action()        {}
func (UpdateNodegroupVersion) action()       {}
func (TagNodegroup) action()                 {}
func (DeleteNodegroup) action()              {}

// Made are the template versions that steps have made.
type Made map[madeKey]TemplateRef

// madeKey is a template's name and what a version of it holds, "" for any.
type madeKey struct{ name, content string }

// Add notes what an action has made.
func (m Made) Add(a Action, made TemplateRef) {
	switch a := a.(type) {
	case CreateLaunchTemplate:
		m[madeKey{a.Name, ContentOf(a.Description)}] = made
		m[madeKey{name: a.Name}] = made
	case CreateLaunchTemplateVersion:
		m[madeKey{a.Template.Name, ContentOf(a.Description)}] = made
	}
}

// WithTemplate returns the action with the template version that an earlier
// step made filled in. Other actions are returned as they are.
func WithTemplate(a Action, made Made) Action {
	fill := func(r TemplateRef) TemplateRef {
		if m, ok := made[madeKey{r.Name, r.Content}]; ok && r.Version == "" {
			return m
		}
		return r
	}
	switch a := a.(type) {
	case CreateLaunchTemplateVersion:
		if t, ok := made[madeKey{name: a.Template.Name}]; ok && a.Template.ID == "" {
			// A token of one template is not that of another of the same name.
			a.Template.ID, a.Token = t.ID, shortHash([]byte(t.ID), []byte(a.Token))
		}
		return a
	case CreateGroup:
		a.Group.Template = fill(a.Group.Template)
		return a
	case UpdateGroup:
		if a.Template != nil {
			t := fill(*a.Template)
			a.Template = &t
		}
		return a
	case StartRefresh:
		a.Template = fill(a.Template)
		return a
	case CreateNodegroup:
		if a.Nodegroup.Template.Name != "" {
			a.Nodegroup.Template = fill(a.Nodegroup.Template)
		}
		return a
	case UpdateNodegroupVersion:
		if a.Template != nil {
			t := fill(*a.Template)
			a.Template = &t
		}
		return a
	}
	return a
}

// NodegroupOf returns the nodegroup whose update the action starts.
func NodegroupOf(a Action) (NodegroupName, bool) {
	switch a := a.(type) {
	case UpdateNodegroupConfig:
		return a.NodegroupName, true
	case UpdateNodegroupVersion:
		return a.NodegroupName, true
	}
	return NodegroupName{}, false
}
