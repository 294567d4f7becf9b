package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/group"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Instance is an EC2 instance of a pool.
type Instance struct {
	ID string `json:"id"`
	// TemplateVersion is the number of the launch template version that it runs, empty if AWS names
	// none. LaunchTemplateID is set only if the template is not the pool's own.
	TemplateVersion     string `json:"templateVersion,omitempty"`
	LaunchTemplateID    string `json:"launchTemplateID,omitempty"`
	LaunchConfiguration string `json:"launchConfiguration,omitempty"`
	Zone                string `json:"zone"`
	Type                string `json:"type,omitempty"`
	// ImageID is empty if the pass has not read the content of the template version.
	ImageID string `json:"imageID,omitempty"`
	// State and Health are AWS's values, such as InService and Healthy.
	State     string `json:"state"`
	Health    string `json:"health,omitempty"`
	Protected bool   `json:"protected,omitempty"`
	// Node is the name of its node, if the workload cluster answered and the instance has joined.
	Node string `json:"node,omitempty"`
	// Why gives the reasons why the instance still exists although it will be replaced, or why it is
	// not in service. It does not name a drain, see PoolStatus.Draining.
	Why string `json:"why,omitempty"`
}

// InstanceCount is the number of instances of a pool that are alike.
type InstanceCount struct {
	TemplateVersion string
	Zone            string
	Type            string
	State           string
	Health          string
	Count           int32
}

// CountInstances counts the instances that are alike, in an order that does not depend on AWS's. A
// pool has few different kinds, so it searches linearly.
func CountInstances(list []Instance) []InstanceCount {
	var out []InstanceCount
	for _, i := range list {
		kind := InstanceCount{TemplateVersion: i.TemplateVersion, Zone: i.Zone, Type: i.Type, State: i.State, Health: i.Health}
		k := slices.IndexFunc(out, func(c InstanceCount) bool { c.Count = 0; return c == kind })
		if k < 0 {
			k, out = len(out), append(out, kind)
		}
		out[k].Count++
	}
	slices.SortFunc(out, func(x, y InstanceCount) int {
		return cmp.Or(cmp.Compare(x.Zone, y.Zone), cmp.Compare(x.TemplateVersion, y.TemplateVersion), cmp.Compare(x.Type, y.Type),
			cmp.Compare(x.State, y.State), cmp.Compare(x.Health, y.Health))
	})
	return out
}

// NoteOf returns the note about the template version of an instance. It is nil if the pass has not
// read the version, or if the instance runs another template.
func (s *PoolStatus) NoteOf(i *Instance) *VersionNote {
	n, known := versionNumber(i.TemplateVersion)
	if !known || i.LaunchTemplateID != "" {
		return nil
	}
	for k := range s.TemplateVersions {
		if s.TemplateVersions[k].Number == n {
			return &s.TemplateVersions[k]
		}
	}
	return nil
}

// launchSettings contains the launch settings that the instances of a group must have.
type launchSettings struct {
	template            observed.TemplateRef
	launchConfiguration string
	policy              *intent.MixedInstances
	// owner names what has these settings, for messages: the pool, its nodegroup, or a rollout.
	owner string
	// moving reports whether an instance refresh is in progress.
	moving bool
}

// launchSettingsOf returns the launch settings of a group. While an instance refresh to other settings is in
// progress, they are the refresh's.
func launchSettingsOf(in model.Input, g observed.Group, owner string) launchSettings {
	out := launchSettings{template: g.Template, launchConfiguration: g.LaunchConfiguration, policy: g.MixedInstancesPolicy, owner: owner}
	r := in.State.Refreshes[g.Name]
	out.moving = r.Active()
	if out.moving && r.Template.ID != "" && !strings.HasPrefix(r.Status, "Rollback") {
		out.template, out.owner = r.Template, "rollout"
	}
	return out
}

// addInstances appends instances of a group to the pool's list. template is the name of the pool's own
// launch template.
func (s *PoolStatus) addInstances(in model.Input, template string, instances []observed.Instance, want launchSettings) {
	s.Instances = slices.Grow(s.Instances, len(instances))
	for _, i := range instances {
		one := instanceOf(i, want)
		one.ImageID = imageOf(in, template, i)
		if i.Template.ID != s.LaunchTemplateID {
			one.LaunchTemplateID = i.Template.ID
		}
		if in.Nodes != nil {
			one.Node = in.Nodes.ByInstance[i.ID].Name
		}
		if n := len(s.Instances); n > 0 && s.Instances[n-1].Why == one.Why {
			one.Why = s.Instances[n-1].Why // instances share the text
		}
		s.Instances = append(s.Instances, one)
	}
}

// instanceOf returns an instance with the facts that its group lists.
func instanceOf(i observed.Instance, want launchSettings) Instance {
	out := Instance{
		ID: i.ID, TemplateVersion: i.Template.Version, LaunchConfiguration: i.LaunchConfiguration, Zone: i.Zone, Type: i.Type, ImageID: i.ImageID,
		State: i.LifecycleState, Health: i.Health, Protected: i.Protected, Why: why(i, want),
	}
	if strings.HasPrefix(out.TemplateVersion, "$") {
		out.TemplateVersion = ""
	}
	return out
}

// InstanceIn returns an instance as its group lists it, without the facts of a pass.
func InstanceIn(g observed.Group, i observed.Instance) Instance {
	return instanceOf(i, launchSettings{template: g.Template, launchConfiguration: g.LaunchConfiguration, policy: g.MixedInstancesPolicy, owner: "group"})
}

// imageOf returns the image of an instance, empty if the pass has not read it.
func imageOf(in model.Input, template string, i observed.Instance) string {
	if i.ImageID != "" {
		return i.ImageID
	}
	t := in.State.Templates[cmp.Or(i.Template.Name, template)]
	return t.Versions[model.VersionOf(t, i.Template)].Data.ImageID
}

// why returns the reasons why an instance still exists or is not in service.
func why(i observed.Instance, want launchSettings) string {
	var reasons []string
	if text := place(i); text != "" {
		reasons = append(reasons, text)
	}
	if text := outdated(i, want); text != "" {
		reasons = append(reasons, text)
	}
	if i.Protected {
		reasons = append(reasons, "protected from scale-in")
	}
	return strings.Join(reasons, "; ")
}

// place describes a lifecycle state in which an instance can stay.
func place(i observed.Instance) string {
	switch {
	case i.Retained():
		return "its termination hook ended with ABANDON, so the group keeps it until somebody terminates it"
	case strings.HasSuffix(i.LifecycleState, "Pending:Wait"):
		return "waits for its launch lifecycle hook"
	case strings.HasSuffix(i.LifecycleState, "Terminating:Wait"):
		return "waits for its termination lifecycle hook"
	case i.StandsBy():
		return "in standby"
	case strings.HasPrefix(i.LifecycleState, "Warmed:"):
		return "in the warm pool"
	}
	return ""
}

// outdated describes how the launch settings of an instance differ from its group's.
func outdated(i observed.Instance, want launchSettings) string {
	switch {
	case i.LaunchConfiguration != "" && want.template != observed.TemplateRef{}:
		return "runs launch configuration " + i.LaunchConfiguration + ", but the " + want.owner + " uses a launch template"
	case i.LaunchConfiguration != "" && i.LaunchConfiguration != want.launchConfiguration && want.launchConfiguration != "":
		return "runs launch configuration " + i.LaunchConfiguration + ", but the " + want.owner + " uses " + want.launchConfiguration
	case i.Template.ID == "" || want.template.ID == "":
		return ""
	case group.OfOverride(want.policy, i):
		return ""
	case i.Template.ID != want.template.ID:
		return "runs launch template " + i.Template.ID + ", but the " + want.owner + " uses " + want.template.ID
	}
	has, known := versionNumber(i.Template.Version)
	wants, pinned := versionNumber(want.template.Version)
	// Between the parts of a rollout, a group keeps its earlier version, and nothing replaces newer instances.
	if !known || !pinned || has == wants || has > wants && !want.moving {
		return ""
	}
	return "runs template version " + i.Template.Version + ", but the " + want.owner + " uses " + want.template.Version
}

// awaits notes that a held rollout would replace instances. held is nil if no rollout is held.
func (s *PoolStatus) awaits(held *step.Step) {
	if held == nil {
		return
	}
	refresh, is := held.Do.(step.StartRefresh)
	if !is || refresh.Template == (observed.TemplateRef{}) {
		return
	}
	text := "the rollout that would replace it is held: " + cmp.Or(held.HeldReason, string(held.Held))
	for k := range s.Instances {
		i := &s.Instances[k]
		if !refreshReplaces(refresh, i) {
			continue
		}
		if i.Why == "" {
			i.Why = text
		} else {
			i.Why += "; " + text
		}
	}
}

// refreshReplaces reports whether an instance refresh certainly replaces an instance. It is false if the instance stays,
// or if this is unknown.
func refreshReplaces(refresh step.StartRefresh, i *Instance) bool {
	inState, prefs := observed.Instance{LifecycleState: i.State}, refresh.Preferences
	switch {
	case i.LaunchTemplateID != "": // an override of the mixed instances policy may require that template
		return false
	case refresh.Template.Version != "" && i.TemplateVersion == refresh.Template.Version:
		return false
	case i.Protected && prefs.ScaleInProtectedInstances == "Ignore":
		return false
	case inState.StandsBy() && prefs.StandbyInstances == "Ignore":
		return false
	}
	return !inState.Leaving()
}

// versionNumber parses the number of a template version. It returns false for an alias.
func versionNumber(version string) (int64, bool) {
	n, err := strconv.ParseInt(version, 10, 64)
	return n, err == nil
}

// sortInstances sorts the instances by id.
func (s *PoolStatus) sortInstances() {
	slices.SortFunc(s.Instances, func(a, b Instance) int { return strings.Compare(a.ID, b.ID) })
}
