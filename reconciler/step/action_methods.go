package step

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// About describes a new template. Nothing of it exists yet.
func (a CreateLaunchTemplate) About() About {
	return About{Cluster: a.Tags[observed.TagCluster], Makes: content.Of(a.Description), Configures: true, Put: a.Tags}
}

// About describes the template that gets a version.
func (a CreateLaunchTemplateVersion) About() About {
	return About{Template: a.Template, Makes: content.Of(a.Description), Configures: true}
}

// About describes the template whose default version changes.
func (a SetDefaultVersion) About() About { return About{Template: unversioned(a.Template)} }

// About describes the template that is deleted.
func (a DeleteLaunchTemplate) About() About { return About{Template: a.Template, Ends: true} }

// About describes the template whose versions are deleted.
func (a DeleteLaunchTemplateVersions) About() About { return About{Template: a.Template, Ends: true} }

// About describes the template and its tags.
func (a TagLaunchTemplate) About() About {
	return About{Template: a.Template, Put: a.Put, Remove: a.Remove}
}

// About describes a new group. Nothing of it exists yet.
func (a CreateGroup) About() About {
	return About{Launches: &a.Group.Template, Starts: true, Put: observed.GroupTagValues(a.Group.Tags)}
}

// About describes the group. A refresh in progress would undo a new launch configuration.
func (a UpdateGroup) About() About {
	if a.Template == nil {
		return About{Group: a.Name}
	}
	return About{Group: a.Name, Launches: a.Template, Starts: true, Refresh: GoesByRefresh}
}

// About describes the group whose machines are replaced.
func (a StartRefresh) About() About {
	return About{Group: a.Group, Launches: &a.Template, Configures: true, Refresh: StartsRefresh}
}

// About describes the group whose refresh ends.
func (a CancelRefresh) About() About {
	return About{Group: a.Group, Ends: true, Configures: true, Refresh: CancelsRefresh}
}

// About describes the group whose refresh is rolled back.
func (a RollbackRefresh) About() About {
	return About{Group: a.Group, Configures: true, Refresh: RollsBack}
}

// About describes the group with the processes.
func (a SetProcesses) About() About { return About{Group: a.Group} }

// About describes the group behind the load balancers.
func (a SetTrafficSources) About() About { return About{Group: a.Group} }

// About describes the group of the warm pool.
func (a PutWarmPool) About() About { return About{Group: a.Group} }

// About describes the group whose warm pool is deleted.
func (a DeleteWarmPool) About() About { return About{Group: a.Group, Ends: true} }

// About describes the group that collects the metrics.
func (a SetMetrics) About() About { return About{Group: a.Group} }

// About describes the group and its tags.
func (a TagGroup) About() About {
	return About{Group: a.Group, Put: observed.GroupTagValues(a.Put), Remove: a.Remove}
}

// About describes the group that is deleted.
func (a DeleteGroup) About() About { return About{Group: a.Name, Ends: true} }

// About describes the group with the hook.
func (a PutHook) About() About { return About{Group: a.Group} }

// About describes the group of the machine that waits.
func (a HoldMachine) About() About { return About{Group: a.Group} }

// About describes the group of the machine that is released.
func (a ReleaseMachine) About() About { return About{Group: a.Group} }

// About describes the group whose hook is removed.
func (a DeleteHook) About() About { return About{Group: a.Group, Ends: true} }

// About describes a new nodegroup. Nothing of it exists yet.
func (a CreateNodegroup) About() About {
	return About{Cluster: a.Nodegroup.Cluster, Launches: &a.Nodegroup.Template, Starts: true, Put: a.Nodegroup.Tags}
}

// About describes the nodegroup whose configuration changes.
func (a UpdateNodegroupConfig) About() About { return About{Nodegroup: a.NodegroupName} }

// About describes the nodegroup whose machines are replaced.
func (a UpdateNodegroupVersion) About() About {
	return About{Nodegroup: a.NodegroupName, Launches: a.Template, Configures: true}
}

// About describes the nodegroup and its tags.
func (a TagNodegroup) About() About {
	return About{Nodegroup: a.NodegroupName, Put: a.Put, Remove: a.Remove}
}

// About describes the nodegroup that is deleted.
func (a DeleteNodegroup) About() About { return About{Nodegroup: a.NodegroupName, Ends: true} }

func unversioned(r observed.TemplateRef) observed.TemplateRef {
	return observed.TemplateRef{ID: r.ID, Name: r.Name}
}

// Made contains the template versions that steps have made.
type Made map[MadeKey]observed.TemplateRef

// MadeKey is the name of a template and the content of a version, "" for any content.
type MadeKey struct{ Name, Content string }

// Add records the version that an action has made.
func (m Made) Add(a Action, made observed.TemplateRef) {
	about := a.About()
	if about.Makes == "" {
		return
	}
	m[MadeKey{Name: made.Name, Content: about.Makes}] = made
	if about.Template == (observed.TemplateRef{}) {
		m[MadeKey{Name: made.Name}] = made
	}
}

// version returns the reference, with the version filled in if a step has made it.
func (m Made) version(r observed.TemplateRef) observed.TemplateRef {
	if made, ok := m[MadeKey{Name: r.Name, Content: r.Content}]; ok && r.Version == "" && r.Name != "" {
		return made
	}
	return r
}

// pointer is version for a reference that may be nil.
func (m Made) pointer(r *observed.TemplateRef) *observed.TemplateRef {
	if r == nil {
		return nil
	}
	made := m.version(*r)
	return &made
}

// versioned is an action that uses template versions that earlier steps of its plan made.
type versioned interface {
	with(made Made) Action
}

// WithTemplate returns the action with a template version that an earlier step made. It returns
// other actions unchanged.
func WithTemplate(a Action, made Made) Action {
	if v, takes := a.(versioned); takes {
		return v.with(made)
	}
	return a
}

func (a CreateLaunchTemplateVersion) with(made Made) Action {
	if t, ok := made[MadeKey{Name: a.Template.Name}]; ok && a.Template.ID == "" {
		// The token must differ for another template with the same name.
		a.Template.ID, a.Token = t.ID, content.ShortHash([]byte(t.ID), []byte(a.Token))
	}
	return a
}

func (a CreateGroup) with(made Made) Action {
	a.Group.Template = made.version(a.Group.Template)
	return a
}

func (a UpdateGroup) with(made Made) Action {
	a.Template = made.pointer(a.Template)
	return a
}

func (a StartRefresh) with(made Made) Action {
	a.Template = made.version(a.Template)
	return a
}

func (a CreateNodegroup) with(made Made) Action {
	a.Nodegroup.Template = made.version(a.Nodegroup.Template)
	return a
}

func (a UpdateNodegroupVersion) with(made Made) Action {
	a.Template = made.pointer(a.Template)
	return a
}

// Request returns the step's request to AWS, with the template versions that earlier steps made and
// with its stamp.
func (s Step) Request(made Made) Action {
	do := WithTemplate(s.Do, made)
	if writes, tags := do.(Tagging); tags && len(s.Stamp) > 0 {
		return writes.Tagged(s.Stamp)
	}
	return do
}

// Tagging is an action that writes tags and can write additional ones.
type Tagging interface {
	Tagged(more map[string]string) Action
}

func (a CreateLaunchTemplate) Tagged(more map[string]string) Action {
	a.Tags = observed.WithTags(a.Tags, more)
	return a
}

func (a TagLaunchTemplate) Tagged(more map[string]string) Action {
	a.Put = observed.WithTags(a.Put, more)
	return a
}

func (a CreateGroup) Tagged(more map[string]string) Action {
	a.Group.Tags = withGroupTags(a.Group.Tags, more)
	return a
}

func (a TagGroup) Tagged(more map[string]string) Action {
	a.Put = withGroupTags(a.Put, more)
	return a
}

func (a CreateNodegroup) Tagged(more map[string]string) Action {
	a.Nodegroup.Tags = observed.WithTags(a.Nodegroup.Tags, more)
	return a
}

func (a TagNodegroup) Tagged(more map[string]string) Action {
	a.Put = observed.WithTags(a.Put, more)
	return a
}

func withGroupTags(base map[string]observed.GroupTag, more map[string]string) map[string]observed.GroupTag {
	out := maps.Clone(base)
	for k, v := range more {
		out[k] = observed.GroupTag{Value: v}
	}
	return out
}

// Explained is an action whose cause may be in AWS's scaling activities. The returned function
// selects these activities. It is nil if none applies.
type Explained interface {
	Explained(have observed.Group) func(observed.Activity) bool
}

// Explained selects any activity: the last activity of a group that no longer exists is its
// deletion.
func (CreateGroup) Explained(observed.Group) func(observed.Activity) bool {
	return func(observed.Activity) bool { return true }
}

// Explained selects changes of the desired capacity. Bounds alone start and end no machine.
func (a UpdateGroup) Explained(have observed.Group) func(observed.Activity) bool {
	if a.DesiredCapacity == nil {
		return nil
	}
	return func(act observed.Activity) bool {
		m := newDesired.FindStringSubmatch(act.Cause)
		return m != nil && m[1] == strconv.Itoa(int(have.DesiredCapacity))
	}
}

// Explained selects launches of machines that will be replaced.
func (a StartRefresh) Explained(have observed.Group) func(observed.Activity) bool {
	return func(act observed.Activity) bool {
		return strings.HasPrefix(act.Description, "Launching") && slices.ContainsFunc(have.Instances, func(i observed.Instance) bool {
			return (i.Template.ID != a.Template.ID || i.Template.Version != a.Template.Version) && strings.Contains(act.Description, i.ID)
		})
	}
}
