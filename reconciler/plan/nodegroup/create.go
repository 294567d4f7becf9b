package nodegroup

import (
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// bounds returns the sizes for a new nodegroup. If it replaces old, sizes that Git does not set
// come from old.
func (w wantNodegroup) bounds(old *observed.Nodegroup) (minSize, maxSize, desired int32) {
	n := w.pool.Nodegroup
	if old != nil {
		return w.sizes(*old)
	}
	minSize, maxSize = n.MinSize.Value, n.MaxSize.Value
	return minSize, maxSize, min(max(w.pool.Replicas.Value, minSize), maxSize)
}

func (c Planner) createNodegroup(w wantNodegroup) {
	n := w.pool.Nodegroup
	ng, ok := c.newNodegroup(w, n.Name, nil)
	if !ok || c.Lost(w.pool, "the nodegroup "+n.Name) {
		return
	}
	c.Step(w.pool, step.Step{Verb: step.Create, Resource: step.ManagedNodegroup, Name: n.Name, Reason: "it does not exist",
		Instances: int(ng.DesiredSize), Changes: append(creationChanges(w, ng), model.NewTags(w.pool, c.In.UsualTags(w.pool, "", ng.Tags), ng.Tags)...), Rollout: model.Made, Do: step.CreateNodegroup{Nodegroup: ng}})
}

// newNodegroup returns the nodegroup to request from EKS. old is the nodegroup that it replaces,
// nil for none.
func (c Planner) newNodegroup(w wantNodegroup, name string, old *observed.Nodegroup) (ng observed.Nodegroup, ok bool) {
	n := w.pool.Nodegroup
	if s := w.cluster.Status; s != "" && s != "ACTIVE" && s != "UPDATING" {
		c.Blockf(w.pool, nil, "cluster-not-ready", "the EKS cluster "+w.cluster.Name+" is "+s+" and accepts no new nodegroup", "create the cluster again, or remove the pool from Git")
		return ng, false
	}
	if !c.creatable(w) {
		return ng, false
	}
	minSize, maxSize, desired := w.bounds(old)
	ng = observed.Nodegroup{
		NodegroupName: observed.NodegroupName{Cluster: n.ClusterName, Name: name},
		NodeRole:      w.role, SubnetIDs: w.subnets, MinSize: minSize, MaxSize: maxSize, DesiredSize: desired,
		NodegroupSettings: n.NodegroupSettings, Tags: w.tags(c.In.Policy),
	}
	// EKS refuses values that the template's image or content already decides (CreateNodegroup's
	// documentation of amiType, version and diskSize).
	if w.hasImage {
		ng.AMIType, ng.Version, ng.ReleaseVersion = "", "", ""
	}
	ng.RemoteAccess = w.access
	if w.hasTemplate {
		ng.Template, ng.DiskSize, ng.RemoteAccess = w.version.Ref, 0, nil
	}
	ng.InstanceTypes = w.instanceTypes()
	if old != nil && w.discovered && len(old.SubnetIDs) > 0 {
		ng.SubnetIDs = old.SubnetIDs
	}
	return ng, true
}

// creationChanges returns the fields of a new nodegroup as changes.
func creationChanges(w wantNodegroup, ng observed.Nodegroup) []step.Change {
	changes := []step.Change{
		model.InfraChange(w.pool, "scaling.minSize", nil, ng.MinSize), model.InfraChange(w.pool, "scaling.maxSize", nil, ng.MaxSize),
		model.ReplicasChange(w.pool, nil, ng.DesiredSize), model.InfraChange(w.pool, "subnetIDs", nil, ng.SubnetIDs),
	}
	if w.hasTemplate {
		changes = append(changes, template.VersionChanges(w.pool, observed.TemplateRef{}, w.version)...)
	}
	for _, f := range []struct {
		field, value string
	}{{"amiType", ng.AMIType}, {"instanceType", strings.Join(ng.InstanceTypes, ", ")}, {"capacityType", ng.CapacityType}} {
		if f.value != "" {
			changes = append(changes, model.InfraChange(w.pool, f.field, nil, f.value))
		}
	}
	if ng.Version != "" {
		changes = append(changes, versionChange(w.pool, nil, ng.Version))
	}
	return append(changes, w.newMembers(ng)...)
}

// creatable refuses to create a nodegroup on a Kubernetes version older than its control plane's:
// CreateNodegroup accepts only the control plane's version.
func (c Planner) creatable(w wantNodegroup) bool {
	n := w.pool.Nodegroup
	wanted, has := model.MinorOf(n.Version), model.MinorOf(w.cluster.Version)
	switch {
	case w.hasImage || n.Version == "" || w.cluster.Version == "" || wanted == has:
		return true
	case wanted > has:
		return true // its steps are held until then
	default:
		c.Blockf(w.pool, nil, "nodegroup-version", "EKS makes new nodegroups on the control plane's Kubernetes version "+w.cluster.Version+" only, not on "+n.Version,
			"write "+w.cluster.Version+" in spec.template.spec.version of the MachinePool")
	}
	return false
}

// remoteAccess returns the remote access with the security groups of the lookups. It returns nil if
// the pool has none, while an answer is missing, or if the result would open SSH to everybody.
func (c Planner) remoteAccess(w wantNodegroup) *intent.RemoteAccess {
	n := w.pool.Nodegroup
	if n.RemoteAccess == nil {
		return nil
	}
	ra := *n.RemoteAccess
	groups := slices.Clone(ra.SourceSecurityGroups)
	for _, l := range n.RemoteAccessGroups {
		a, ok := c.Answer(w.pool, l)
		if !ok {
			return nil
		}
		groups = append(groups, a.SecurityGroups...)
		if a.Cluster != nil && a.Cluster.ClusterSecurityGroupID != "" {
			groups = append(groups, a.Cluster.ClusterSecurityGroupID)
		}
	}
	ra.SourceSecurityGroups = slices.Compact(slices.Sorted(slices.Values(groups)))
	if len(ra.SourceSecurityGroups) == 0 && len(n.RemoteAccessGroups) > 0 {
		// EKS treats an empty list as the whole Internet.
		c.Blockf(w.pool, intent.Path{"spec", "remoteAccess"}, "remote-access-open", "no security group was found that may log in, and an empty list would open SSH to everybody",
			"name remoteAccess.sourceSecurityGroups, or write remoteAccess.public: true")
		return nil
	}
	return &ra
}

// newMembers returns the changes for a new nodegroup, except its sizes, subnets, version, machines
// and tags.
func (w wantNodegroup) newMembers(ng observed.Nodegroup) []step.Change {
	pool := w.pool
	out := []step.Change{model.InfraChange(pool, "roleName", nil, ng.NodeRole)}
	for _, m := range field.NodegroupMembers() {
		v := m.Of(&ng.NodegroupSettings)
		switch {
		case m.AWS == "UpdateConfig":
			out = append(out, w.newUpdateConfig(ng.UpdateConfig)...)
		case m.Special || v.IsZero():
		case m.Block != nil && m.Block.Form == field.ByItem:
			out = append(out, w.items(v.Interface(), reflect.Zero(v.Type()).Interface(), &step.UpdateNodegroupConfig{})...)
		default:
			out = append(out, model.SettingChange(pool, m, nil, v.Interface()))
		}
	}
	return out
}

// newUpdateConfig omits EKS's default of one machine at a time.
func (w wantNodegroup) newUpdateConfig(u intent.UpdateConfig) (out []step.Change) {
	if u.MaxUnavailable != 1 || u.MaxUnavailablePercentage != 0 {
		out = append(out, model.InfraChange(w.pool, "updateConfig", nil, updateText(u)))
	}
	if u.UpdateStrategy != "" {
		out = append(out, optionsChange(w.pool, "updateConfig.updateStrategy", nil, u.UpdateStrategy))
	}
	return out
}
