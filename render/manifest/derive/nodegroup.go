package derive

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/userdata"
)

// nodegroupName matches the nodegroup names that EKS accepts.
var nodegroupName = lazyregexp.New(`^[0-9A-Za-z][A-Za-z0-9_-]{0,62}$`)

// nodegroupPool derives a pool of kind AWSManagedMachinePool.
func (b *Builder) nodegroupPool(d *draft, o *kinds.Decoded[kinds.AWSManagedMachinePoolSpec]) {
	s := &o.Spec
	b.identify(d, o.Ref(), o.Metadata, intent.NodegroupPool, true)
	if !d.cluster.eks {
		d.AtMachinePool.Error(path("spec", "clusterName"), "not-eks", fmt.Sprintf("%s needs an EKS cluster, but cluster %s is none", o.Ref(), d.ClusterKey),
			"the Cluster's controlPlaneRef must be an AWSManagedControlPlane, or the pool an AWSMachinePool")
		return
	}
	tags := additionalTags(d.cluster, s.AdditionalTags)
	c := d.cluster
	asked := intent.Lookup{Kind: intent.EKSCluster, Name: c.eksName, Cluster: d.ClusterKey}
	n := &intent.Nodegroup{
		Name: b.nodegroupName(d, o), ClusterName: c.eksName, Cluster: asked,
		Role:           intent.Lookup{Kind: intent.Role, Name: cmp.Or(s.RoleName, kinds.DefaultNodeRole), Cluster: d.ClusterKey},
		LifecycleHooks: hooks(s.LifecycleHooks), InstanceType: intent.Value(s.InstanceType),
		NodegroupSettings: intent.NodegroupSettings{CapacityType: capacityTypes()[s.CapacityType], Taints: taints(s.Taints), Version: d.version.Short()},
	}
	n.RoleChecks = roleChecks(n.Role, s)
	field.FromPool(field.Nodegroup, s, &n.NodegroupSettings)
	d.Nodegroup = n
	d.ownCapacity(o.Metadata)
	d.NoteDelete()
	n.Tags = maps.Clone(tags)
	n.Tags[kinds.TagCloudCluster+c.tagName()] = "owned"
	d.CheckTagCount(n.Tags)
	d.scale(n, s.Scaling)
	d.nodegroupSubnets(n, s)
	d.NoteSubnetType(s.AvailabilityZoneSubnetType, n.Subnets)
	d.remoteAccess(n, s)
	if !kinds.ManagedImage(s) {
		d.checkAL2(o)
	}
	d.CheckNodegroupVolumes(s)
	d.CheckAMIVersion(s, d.imageVersion().Short())
	if brings := d.ownTemplate(o.Metadata, kinds.NodegroupTypes(s)); brings || s.AWSLaunchTemplate == nil {
		b.unusedBootstrap(d, brings)
		return
	}
	b.managedTemplate(d, o, tags)
}

// roleChecks returns lookups that check whether the node role matches the manifest. Cluster API Provider AWS
// would create such a role. weir neither creates nor changes roles.
func roleChecks(role intent.Lookup, s *kinds.AWSManagedMachinePoolSpec) (out []intent.Lookup) {
	check := func(kind intent.LookupKind, declared string) {
		if declared != "" {
			out = append(out, intent.Lookup{Kind: kind, Name: role.Name, IDs: declared})
		}
	}
	check(intent.RolePolicies, intent.JoinList(s.RoleAdditionalPolicies))
	check(intent.RolePath, s.RolePath)
	check(intent.RoleBoundary, s.RolePermissionsBoundary)
	return out
}

// capacityTypes maps spec.capacityType to EKS's capacity types.
func capacityTypes() map[string]string {
	return map[string]string{"onDemand": "ON_DEMAND", "spot": "SPOT"}
}

func (b *Builder) nodegroupName(d *draft, o *kinds.Decoded[kinds.AWSManagedMachinePoolSpec]) string {
	name, at := o.Spec.EKSNodegroupName, path("spec", "eksNodegroupName")
	if !o.Source.Has("spec", "eksNodegroupName") {
		at = path("metadata", "name") // the generated name is based on it
	}
	if !nodegroupName.MatchString(name) {
		d.AtPool.Error(at, "bad-name", fmt.Sprintf("%q is not a valid name for a nodegroup", name), "use 1 to 63 characters: letters, digits, - and _")
	}
	b.claimName(d, "nodegroup of "+d.cluster.eksName, name, claim{d.Infrastructure, d.Infrastructure, at})
	return name
}

// scale sets size and bounds. EKS requires both bounds, so a missing bound gets the value that allows the
// desired size.
func (d *draft) scale(n *intent.Nodegroup, s *kinds.Scaling) {
	if s == nil {
		s = &kinds.Scaling{}
	}
	size := d.Replicas.Value
	if s.MinSize != nil {
		n.MinSize = intent.Number{Value: *s.MinSize, Written: true}
	}
	if s.MaxSize != nil {
		n.MaxSize = intent.Number{Value: *s.MaxSize, Written: true}
	}
	if s.MinSize == nil {
		n.MinSize.Value = min(1, size)
		if s.MaxSize != nil {
			n.MinSize.Value = min(n.MinSize.Value, *s.MaxSize)
		}
	}
	if s.MaxSize == nil {
		n.MaxSize.Value = max(size, n.MinSize.Value, 1)
	}
	if s.MaxSize != nil && *s.MaxSize == 0 {
		d.AtPool.Error(path("spec", "scaling", "maxSize"), "out-of-range", "spec.scaling.maxSize is 0; EKS requires at least 1", "")
	}
	if u := n.UpdateConfig.MaxUnavailable; n.MaxSize.Written && u > n.MaxSize.Value && n.MaxSize.Value > 0 {
		d.AtPool.Error(path("spec", "updateConfig", "maxUnavailable"), "out-of-range", fmt.Sprintf("spec.updateConfig.maxUnavailable is %d, and the nodegroup has %d nodes at most", u, n.MaxSize.Value),
			"EKS takes no number above spec.scaling.maxSize")
	}
	d.bound(n.MinSize.Value, n.MaxSize.Value)
}

func (d *draft) nodegroupSubnets(n *intent.Nodegroup, s *kinds.AWSManagedMachinePoolSpec) {
	n.Subnets = intent.Lookup{Kind: intent.Subnets, Cluster: d.ClusterKey, IDs: intent.JoinList(s.SubnetIDs)}
	if n.Subnets.IDs == "" {
		if n.Subnets.Zones = d.zones(s.AvailabilityZones); n.Subnets.Zones != "" {
			n.Subnets.SubnetType = s.AvailabilityZoneSubnetType
		}
	}
}

// remoteAccess allows SSH from the written security groups and the cluster's own group. Without any group,
// EKS would allow SSH from everywhere. Only `public` permits that.
func (d *draft) remoteAccess(n *intent.Nodegroup, s *kinds.AWSManagedMachinePoolSpec) {
	a := s.RemoteAccess
	if a == nil {
		return
	}
	n.RemoteAccess = &intent.RemoteAccess{EC2SSHKey: d.cluster.sshKeyName}
	if a.SSHKeyName != nil {
		n.RemoteAccess.EC2SSHKey = *a.SSHKeyName
	}
	if a.Public {
		return
	}
	n.RemoteAccess.SourceSecurityGroups = slices.Clone(a.SourceSecurityGroups)
	// The description of an EKS cluster contains the security group that EKS created for it.
	n.RemoteAccessGroups = []intent.Lookup{{Kind: intent.EKSCluster, Name: n.ClusterName, Cluster: d.ClusterKey}}
	if d.cluster.bastion {
		n.RemoteAccessGroups = append(n.RemoteAccessGroups, d.groupsTagged(
			intent.Filter{Name: "tag:" + kinds.TagCAPACluster + d.cluster.tagName(), Values: []string{"owned"}},
			intent.Filter{Name: "tag:" + kinds.TagCAPARole, Values: []string{"bastion"}}))
	}
}

func (d *draft) groupsTagged(filters ...intent.Filter) intent.Lookup {
	return intent.Lookup{Kind: intent.SecurityGroupsByFilter, Cluster: d.ClusterKey, Filters: intent.JoinFilters(filters)}
}

// checkAL2 refuses Amazon Linux 2, which is also the default, for Kubernetes versions without such an image.
func (d *draft) checkAL2(o *kinds.Decoded[kinds.AWSManagedMachinePoolSpec]) {
	v := d.version
	if !v.Known() {
		v = d.cluster.version
	}
	if !o.Spec.AMIType.IsAL2() || !v.DropsAL2() {
		return
	}
	what := "spec.amiType is " + string(o.Spec.AMIType)
	if !o.Source.Has("spec", "amiType") {
		what = "spec.amiType is not written, which means " + string(o.Spec.AMIType)
	}
	d.AtPool.Error(path("spec", "amiType"), "no-al2-image", what+", which EKS does not have for Kubernetes "+v.Short(),
		"write spec.amiType: AL2023_x86_64_STANDARD, or AL2023_ARM_64_STANDARD")
}

// managedTemplate derives the launch template of a managed pool. EKS chooses the image unless the manifest
// does. It attaches the cluster's security group unless the template has groups.
func (b *Builder) managedTemplate(d *draft, o *kinds.Decoded[kinds.AWSManagedMachinePoolSpec], tags map[string]string) {
	s, lt := &o.Spec, o.Spec.AWSLaunchTemplate
	controlPlane := cmp.Or(d.cluster.controlPlaneName, d.ClusterKey.Name)
	b.launchTemplate(d, lt, controlPlane+"-"+o.Ref().Name, tags, lt.InstanceType)
	t := d.LaunchTemplate
	if len(lt.AdditionalSecurityGroups) > 0 {
		t.SecurityGroups = append([]intent.Lookup{{Kind: intent.CoreSecurityGroups, Cluster: d.ClusterKey}}, t.SecurityGroups...)
	}
	if kinds.ManagedImage(s) {
		d.image(imageQuestion{lt, d.cluster, d.imageVersion(), lt.InstanceType, d.AtMachinePool, d.AtPool})
		// EKS accepts neither of them together with an image in the template.
		d.Nodegroup.AMIType, d.Nodegroup.Version = "", ""
	} else if t.RootDevice {
		disks, _ := s.AMIType.Disks()
		t.Data.BlockDeviceMappings[0].DeviceName = cmp.Or(disks.Root, "/dev/xvda")
	}
	b.writer.userData(d)
	if !kinds.ManagedImage(s) {
		d.checkMerge(s, b.writer.judgement(d.Bootstrap).AnyForm)
	}
}

// checkMerge reports user data that EKS cannot merge with its own. EKS merges user data if it chooses the
// image, and requires MIME, or TOML for Bottlerocket. anyForm accepts invalid user data.
func (d *draft) checkMerge(s *kinds.AWSManagedMachinePoolSpec, anyForm bool) {
	data, family := &d.LaunchTemplate.UserData, s.AMIType.Family()
	at := kinds.BootstrapPath.Join("dataSecretName")
	switch {
	case data.Text == "" || family == kinds.FamilyWindows:
	case family == kinds.FamilyBottlerocket && d.Bootstrap.Kind == "NodeadmConfig": // package rules reports it
	case family == kinds.FamilyBottlerocket && d.Bootstrap.Kind == "Secret":
		if err := userdata.CheckTOML(data.Text); err != nil && !anyForm {
			d.AtMachinePool.Error(at, "user-data-not-toml", fmt.Sprintf("Bottlerocket reads TOML, but the value of %s is not TOML: %v", d.Bootstrap, err), "write Bottlerocket's settings, such as [settings.kubernetes]; EKS refuses anything else")
		}
		data.Format = "toml"
	case family == kinds.FamilyBottlerocket:
		d.AtMachinePool.Error(kinds.BootstrapPath.Join("configRef"), "user-data-not-toml", "Bottlerocket reads TOML, but "+d.Bootstrap.String()+" does not produce any", "give the TOML in a Secret that bootstrap.dataSecretName names")
	case data.Format != "mime":
		d.AtPool.Error(path("spec", "awsLaunchTemplate"), "user-data-not-mime",
			"EKS merges its own user data into the pool's, which must therefore be a MIME document, but the user data of "+d.Bootstrap.String()+" is not one",
			"use a NodeadmConfig with an AL2023 amiType, or bring an image: amiType: CUSTOM or awsLaunchTemplate.ami.id")
	case d.Bootstrap.Kind == "Secret" && !anyForm:
		if err := userdata.CheckMIME(data.Text); err != nil {
			d.AtMachinePool.Error(at, "user-data-mime", fmt.Sprintf("the MIME document in %s is broken: %v", d.Bootstrap, err), "correct it: EKS merges its own part into it, and refuses what it cannot read")
		}
	}
}

// imageVersion returns the Kubernetes version for an image lookup: the pool's version, or the control
// plane's.
func (d *draft) imageVersion() kinds.Kubernetes {
	if d.version.Known() {
		return d.version
	}
	return d.cluster.version
}

// unusedBootstrap notes bootstrap data that CAPA also ignores: of a pool with a foreign launch template, or
// of a managed pool without a template.
func (b *Builder) unusedBootstrap(d *draft, brings bool) {
	at := path("spec", "template", "spec", "bootstrap")
	boot := d.Source.Spec.Template.Spec.Bootstrap
	why, detail := "has no awsLaunchTemplate to carry user data", "write spec.awsLaunchTemplate: {} in the pool to use it"
	switch ref := boot.ConfigRef; {
	case brings:
		why, detail = "brings its own launch template, whose user data its machines get", `write dataSecretName: "" in its place`
	case ref != nil && (ref.Kind != "NodeadmConfig" || strings.HasPrefix(d.Nodegroup.AMIType, "BOTTLEROCKET_")):
		detail = `EKS cannot merge it into its own user data: bring an image, by amiType: CUSTOM and spec.awsLaunchTemplate.ami, or write dataSecretName: "" in its place`
	}
	switch ref := boot.ConfigRef; {
	case ref != nil && bootstrapWritesNothing(b.index, d.Key.Namespace, ref):
	case ref != nil:
		d.AtMachinePool.Warn(at.Join("configRef"), "bootstrap-not-used", fmt.Sprintf("%s %q is not used: %s %s", ref.Kind, ref.Name, d.Infrastructure, why), detail)
	case intent.Value(boot.DataSecretName) != "":
		d.AtMachinePool.Warn(at.Join("dataSecretName"), "bootstrap-not-used", fmt.Sprintf("Secret %q is not used: %s %s", *boot.DataSecretName, d.Infrastructure, why), "")
	}
}

// bootstrapWritesNothing reports whether a configuration exists and has an empty spec, as in CAPA's templates
// for managed pools.
func bootstrapWritesNothing(index *kinds.Index, namespace string, ref *kinds.ObjectReference) bool {
	key := intent.Key{Namespace: namespace, Name: ref.Name}
	empty := func(o kinds.Object) bool {
		for i := 0; i+1 < len(o.Node.Content); i += 2 {
			if o.Node.Content[i].Value == "spec" {
				return len(o.Node.Content[i+1].Content) == 0
			}
		}
		return true
	}
	switch ref.Kind {
	case "NodeadmConfig":
		o, ok := index.NodeadmConfigs[key]
		return ok && empty(o.Source)
	case "EKSConfig":
		o, ok := index.EKSConfigs[key]
		return ok && empty(o.Source)
	}
	return false
}

func taints(list []kinds.Taint) []intent.Taint {
	effects := map[string]string{"no-schedule": "NO_SCHEDULE", "no-execute": "NO_EXECUTE", "prefer-no-schedule": "PREFER_NO_SCHEDULE"}
	var out []intent.Taint
	for _, t := range list {
		out = append(out, intent.Taint{Key: t.Key, Value: t.Value, Effect: effects[t.Effect]})
	}
	slices.SortFunc(out, func(a, b intent.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Value, b.Value))
	})
	return out
}
