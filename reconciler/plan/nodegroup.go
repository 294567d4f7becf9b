package plan

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// planNodegroup plans the EKS nodegroup of a pool and, where it has one, its
// launch template.
func (c *computation) planNodegroup(pool *intent.Pool, want *wantTemplate) {
	n := pool.Nodegroup
	name := NodegroupName{Cluster: n.ClusterName, Name: n.Name}
	cluster, ok := c.answer(pool, n.Cluster)
	if !ok {
		return
	}
	subnets, ok1 := c.answer(pool, n.Subnets)
	role, ok2 := c.answer(pool, n.Role)
	if !ok1 || !ok2 {
		return
	}
	if c.unread(pool, "the nodegroup "+name.String(), c.in.State.Unread.nodegroup(name)) {
		return
	}
	observed, found := c.in.State.Nodegroups[name]
	absent := c.in.State.Absent.Nodegroups[name]
	if found {
		claim := Claim{Resource: ManagedNodegroup, Name: n.Name, Cluster: n.ClusterName}
		if o := c.in.Policy.owns(observed.Tags, c.in.Fleet.Wanted[claim], c.in.Fleet.Whole); !o.ours && !c.adoptNodegroup(pool, &observed, &o) {
			c.conflict(pool, ManagedNodegroup, n.Name, o.why)
		}
	} else if !absent {
		c.needs.Nodegroups = append(c.needs.Nodegroups, name)
	}
	var version wantedVersion
	if want != nil || pool.ForeignTemplate != nil {
		v, known := c.planTemplate(pool, want, []TemplateRef{observed.Template})
		if !known {
			return
		}
		version = v
	}
	if c.blocked || (!found && !absent) {
		return
	}
	w := wantNodegroup{pool: pool, version: version, hasTemplate: want != nil || version.foreign, hasImage: want != nil && want.data.ImageID != "" || version.hasImage,
		role: role.RoleARN, subnets: subnets.Subnets, cluster: *cluster.Cluster}
	if !found {
		c.createNodegroup(w)
		return
	}
	if subnets.Discovered && len(observed.SubnetIDs) > 0 {
		w.subnets = observed.SubnetIDs // nobody wrote them, so those it has stay
	}
	before := len(c.steps)
	c.updateNodegroup(w, observed)
	if len(c.steps) > before && !observed.DescribedAtPass {
		// What is remembered may be out of date, its owner included.
		c.steps = c.steps[:before]
		c.needs.Nodegroups = append(c.needs.Nodegroups, name)
	}
}

// wantNodegroup is a wanted nodegroup with its lookups answered.
type wantNodegroup struct {
	pool                  *intent.Pool
	version               wantedVersion
	hasTemplate, hasImage bool
	role                  string
	subnets               []string
	cluster               EKSCluster
}

func (w wantNodegroup) tags(p Policy) map[string]string {
	return p.allTags(w.pool, w.pool.Nodegroup.Tags)
}

// bounds returns the sizes to create a nodegroup with.
func (w wantNodegroup) bounds() (minSize, maxSize, desired int32) {
	n := w.pool.Nodegroup
	minSize, maxSize = n.MinSize.Value, n.MaxSize.Value
	return minSize, maxSize, min(max(w.pool.Replicas.Value, minSize), maxSize)
}

func (c *computation) createNodegroup(w wantNodegroup) {
	n := w.pool.Nodegroup
	if s := w.cluster.Status; s != "" && s != "ACTIVE" && s != "UPDATING" {
		c.blockf(w.pool, nil, "cluster-not-ready", "the EKS cluster "+w.cluster.Name+" is "+s+"; its nodegroup is made once it is ACTIVE", "weir looks again at the next pass")
		return
	}
	if !c.creatable(w) {
		return
	}
	minSize, maxSize, desired := w.bounds()
	ng := Nodegroup{
		NodegroupName: NodegroupName{Cluster: n.ClusterName, Name: n.Name},
		NodeRole:      w.role, SubnetIDs: w.subnets, MinSize: minSize, MaxSize: maxSize, DesiredSize: desired,
		CapacityType: n.CapacityType, Labels: n.Labels, Taints: n.Taints, UpdateConfig: n.UpdateConfig,
		NodeRepair: n.NodeRepair, Tags: w.tags(c.in.Policy),
	}
	// EKS refuses what the template's image or body already decides
	// (CreateNodegroup's documentation of amiType, version and diskSize).
	if !w.hasImage {
		ng.AMIType, ng.Version, ng.ReleaseVersion = n.AMIType, n.Version, n.ReleaseVersion
	}
	if w.hasTemplate {
		ng.Template = w.version.ref
	} else {
		ng.DiskSize, ng.RemoteAccess = n.DiskSize, c.remoteAccess(w)
	}
	if n.InstanceType != "" {
		ng.InstanceTypes = []string{n.InstanceType}
	}
	if c.blocked {
		return
	}
	changes := []Change{
		infraChange(w.pool, "scaling.minSize", nil, minSize), infraChange(w.pool, "scaling.maxSize", nil, maxSize),
		replicasChange(w.pool, nil, desired), infraChange(w.pool, "subnetIDs", nil, w.subnets),
	}
	if w.hasTemplate {
		changes = append(changes, versionChanges(w.pool, TemplateRef{}, w.version)...)
	}
	for _, f := range []struct {
		field, value string
	}{{"amiType", ng.AMIType}, {"instanceType", n.InstanceType}, {"capacityType", ng.CapacityType}} {
		if f.value != "" {
			changes = append(changes, infraChange(w.pool, f.field, nil, f.value))
		}
	}
	if ng.Version != "" {
		changes = append(changes, versionChange(w.pool, nil, ng.Version))
	}
	c.step(w.pool, Step{Verb: Create, Resource: ManagedNodegroup, Name: n.Name, Reason: "it does not exist",
		Instances: int(desired), Changes: changes, Do: CreateNodegroup{Nodegroup: ng}})
}

// creatable refuses to make a nodegroup on another Kubernetes version than its
// control plane's: CreateNodegroup takes no other.
func (c *computation) creatable(w wantNodegroup) bool {
	n := w.pool.Nodegroup
	wanted, has := minorOf(n.Version), minorOf(w.cluster.Version)
	switch {
	case w.hasImage || n.Version == "" || w.cluster.Version == "" || wanted == has:
		return true
	case wanted > has:
		c.blockf(w.pool, nil, "waits-for-control-plane", "the nodegroup "+n.Name+" wants Kubernetes "+n.Version+" and its control plane is on "+w.cluster.Version,
			"upgrade the control plane first; weir looks again at the next pass")
	default:
		c.blockf(w.pool, nil, "nodegroup-version", "EKS makes new nodegroups on the control plane's Kubernetes version "+w.cluster.Version+" only, not on "+n.Version,
			"write "+w.cluster.Version+" in spec.template.spec.version of the MachinePool")
	}
	return false
}

func (c *computation) remoteAccess(w wantNodegroup) *intent.RemoteAccess {
	n := w.pool.Nodegroup
	if n.RemoteAccess == nil {
		return nil
	}
	ra := *n.RemoteAccess
	groups := slices.Clone(ra.SourceSecurityGroups)
	for _, l := range n.RemoteAccessGroups {
		a, ok := c.answer(w.pool, l)
		if !ok {
			return nil
		}
		groups = append(groups, a.SecurityGroups...)
	}
	ra.SourceSecurityGroups = sortedUnique(groups)
	if len(ra.SourceSecurityGroups) == 0 && len(n.RemoteAccessGroups) > 0 {
		// EKS takes an empty list for the whole Internet.
		c.blockf(w.pool, intent.Path{"spec", "remoteAccess"}, "remote-access-open", "no security group was found that may log in, and an empty list would open SSH to everybody",
			"name remoteAccess.sourceSecurityGroups, or write remoteAccess.public: true")
		return nil
	}
	return &ra
}

// updateNodegroup plans the config and version updates of an existing
// nodegroup. EKS runs one update at a time, so of two only the first runs in
// this pass.
func (c *computation) updateNodegroup(w wantNodegroup, have Nodegroup) {
	pool, n := w.pool, w.pool.Nodegroup
	if put, remove := missingTags(w.tags(c.in.Policy), have.Tags); len(put)+len(remove) > 0 {
		c.step(pool, Step{Verb: Update, Resource: ManagedNodegroup, Name: n.Name, Reason: "tags differ",
			Changes: tagChanges(pool, put, remove, have.Tags),
			Do:      TagNodegroup{NodegroupName: have.NodegroupName, ARN: have.ARN, Put: put, Remove: remove}})
	}
	c.tagGroupsBehind(w, have)
	switch have.Status {
	case "ACTIVE", "DEGRADED":
	case "CREATE_FAILED", "DELETE_FAILED":
		c.note(diag.Error, pool, nil, "nodegroup-failed", "the nodegroup "+n.Name+" is "+have.Status+": "+healthText(have.HealthIssues),
			"mend the cause, then delete the nodegroup in EKS so that weir can make it anew")
		return
	default:
		return // it moves: looked at again after a delay
	}
	if have.Status == "DEGRADED" {
		c.note(diag.Warning, pool, nil, "nodegroup-degraded", "the nodegroup "+n.Name+" is DEGRADED: "+healthText(have.HealthIssues), "")
	}
	c.immutable(w, have)
	if c.blocked {
		return
	}
	config := c.configStep(w, have)
	version := c.versionStep(w, have)
	if len(config)+len(version) == 0 {
		c.planDefault(pool, w.version)
		return
	}
	if c.failedBefore(w, have) {
		return
	}
	steps := append(config, version...)
	for i := range steps {
		steps[i].Later = i > 0
		c.step(pool, steps[i])
	}
}

// Fingerprint identifies what a pool wants its nodegroup to be, for the memory
// of failed updates.
func (w wantNodegroup) fingerprint() string {
	return shortHash(canonical(w.pool.Nodegroup), canonical(w.pool.Replicas), []byte(w.version.version()))
}

// failedBefore reports whether the update that is due was tried for this very
// intent and failed: EKS then shows the old values again, and trying on would
// never end.
func (c *computation) failedBefore(w wantNodegroup, have Nodegroup) bool {
	started, tried := c.in.Memory.Started[have.NodegroupName]
	if !tried || started.Fingerprint != w.fingerprint() || c.in.Memory.Retry[w.pool.Key.String()] {
		return false
	}
	u, read := c.in.State.Updates[have.NodegroupName]
	switch {
	case !read && c.unread(w.pool, "the updates of the nodegroup "+have.Name, c.in.State.Unread.Updates[have.NodegroupName]):
		return true
	case !read:
		c.needs.Updates = append(c.needs.Updates, have.NodegroupName)
		return true
	case u.ID != started.UpdateID:
		return false
	case u.Status == "Failed" || u.Status == "Cancelled":
		c.note(diag.Error, w.pool, nil, "nodegroup-update-failed", "the update "+u.ID+" of the nodegroup "+have.Name+" ended as "+u.Status+": "+healthText(u.Errors),
			"change the pool in Git, or restart weir to try once more")
		return true
	}
	return u.Status == "InProgress"
}

func healthText(issues []HealthIssue) string {
	var out []string
	for _, i := range issues {
		text := i.Code
		if i.Message != "" {
			text += ": " + i.Message
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "EKS gives no reason"
	}
	return join(out)
}

// tagGroupsBehind puts weir's and CAPA's tags on the groups that EKS made for
// the nodegroup, so that the owner read of groups finds them. Nothing else of
// such a group is ever touched.
func (c *computation) tagGroupsBehind(w wantNodegroup, have Nodegroup) {
	if have.Status == "DELETING" {
		return
	}
	for _, name := range have.GroupNames {
		g, ok := c.in.State.Groups[name]
		if !ok {
			if !c.in.State.Absent.Groups[name] {
				c.needs.GroupNames = append(c.needs.GroupNames, name)
			}
			continue
		}
		c.updateHooks(w.pool, g, w.pool.Nodegroup.LifecycleHooks)
		put, remove := missingTags(w.tags(c.in.Policy), groupTagValues(g.Tags))
		if len(put)+len(remove) == 0 || g.Deleting {
			continue
		}
		t := TagGroup{Group: name, Put: map[string]GroupTag{}, Remove: remove}
		for k, v := range put {
			// CAPA propagates the tags of a nodegroup's group at launch;
			// weir's own mark the group only.
			t.Put[k] = GroupTag{Value: v, PropagateAtLaunch: !strings.HasPrefix(k, ownTagPrefix)}
		}
		c.step(w.pool, Step{Verb: c.tagVerb(), Resource: AutoScalingGroup, Name: name, Reason: "the group behind the nodegroup lacks tags",
			Changes: tagChanges(w.pool, put, remove, groupTagValues(g.Tags)), Do: t})
	}
}
