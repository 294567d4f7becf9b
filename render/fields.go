package render

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	rows "github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// manifestField is a field of a rendered object.
type manifestField struct {
	ref  intent.ObjectRef
	path intent.Path
}

// The objects that set fields of a pool.
const (
	fromPool    = "pool"    // the AWSMachinePool or AWSManagedMachinePool
	fromMachine = "machine" // the MachinePool
	fromBoot    = "boot"    // the bootstrap configuration or Secret
	fromCluster = "cluster" // the Cluster
	fromControl = "control" // the AWSManagedControlPlane
	fromInfra   = "infra"   // the AWSCluster
	fromOptions = "options" // the PoolOptions
	fromConfig  = "config"  // the AWSLaunchConfig or AWSLaunchConfigTemplate
	fromShared  = "shared"  // the PoolOptions of the fromConfig object
)

// sources maps fields of a pool to fields of manifests. Every line has the pool's field, the object, and the
// manifest's field. A star stands for one element, which is copied. A field below a listed one has the same
// source. If several lines match a field, weir tries them in order, and then the row of the field in package
// field.
const sources = `
key.name                                  machine metadata.name
key.namespace                             machine metadata.namespace
kind                                      machine spec.template.spec.infrastructureRef.kind
machinePool.apiVersion                    machine apiVersion
machinePool.kind                          machine kind
machinePool.namespace                     machine metadata.namespace
machinePool.name                          machine metadata.name
infrastructure.apiVersion                 pool    apiVersion
infrastructure.kind                       pool    kind
infrastructure.namespace                  pool    metadata.namespace
infrastructure.name                       pool    metadata.name
bootstrap.apiVersion                      boot    apiVersion
bootstrap.kind                            boot    kind
bootstrap.namespace                       boot    metadata.namespace
bootstrap.name                            boot    metadata.name
options.apiVersion                        options apiVersion
options.kind                              options kind
options.namespace                         options metadata.namespace
options.name                              options metadata.name
cluster.name                              machine spec.clusterName
cluster.namespace                         machine metadata.namespace
pruneDisabled                             pool    metadata.annotations.weir~prune
pruneDisabled                             machine metadata.annotations.weir~prune
drain                                     pool    metadata.annotations.weir~delete
drain                                     machine metadata.annotations.weir~delete
keepVersions                              pool    metadata.annotations.weir~keep-versions
keepVersions                              machine metadata.annotations.weir~keep-versions
adopt                                     pool    metadata.annotations.weir~adopt
adopt                                     machine metadata.annotations.weir~adopt
allowReplace                              pool    metadata.annotations.weir~replace
allowReplace                              machine metadata.annotations.weir~replace
followImages                              pool    metadata.annotations.weir~ami-policy
followImages                              machine metadata.annotations.weir~ami-policy
paused                                    pool    metadata.annotations.capi~paused
paused                                    machine metadata.annotations.capi~paused
paused                                    cluster spec.paused
paused                                    cluster metadata.annotations.capi~paused
replicas                                  machine spec.replicas
replicasManagedExternally                 machine metadata.annotations.capi~replicas-managed-by
version                                   machine spec.template.spec.version
minReadySeconds                           machine spec.minReadySeconds
minReadySeconds                           machine spec.template.spec.minReadySeconds
launchConfig.key.namespace                config  metadata.namespace
launchConfig.source.apiVersion            config  apiVersion
launchConfig.source.kind                  config  kind
launchConfig.source.namespace             config  metadata.namespace
launchConfig.source.name                  config  metadata.name
launchConfig.options.apiVersion           shared  apiVersion
launchConfig.options.kind                 shared  kind
launchConfig.options.namespace            shared  metadata.namespace
launchConfig.options.name                 shared  metadata.name
launchConfig.keepVersions                 config  metadata.annotations.weir~keep-versions
launchConfig.followImages                 config  metadata.annotations.weir~ami-policy
launchConfig.pruneDisabled                config  metadata.annotations.weir~prune
foreignTemplate.lookup.instanceType       pool    spec.mixedInstancesPolicy.overrides
foreignTemplate.lookup.instanceType       pool    spec.instanceType
foreignOverrides.*.lookup.instanceType    pool    spec.mixedInstancesPolicy.overrides
launchTemplate.name                       pool    metadata.name
launchTemplate.tags.*                     pool    spec.additionalTags.*
launchTemplate.tags.*                     control spec.additionalTags.*
launchTemplate.tags.*                     infra   spec.additionalTags.*
launchTemplate.tags.Name                  pool    metadata.name
launchTemplate.image.kind                 pool    spec.awsLaunchTemplate.ami.id
launchTemplate.image.kind                 pool    spec.awsLaunchTemplate.ami.eksLookupType
launchTemplate.image.kind                 pool    spec.awsLaunchTemplate.imageLookupFormat
launchTemplate.image.name                 pool    spec.awsLaunchTemplate.ami.id
launchTemplate.image.name                 pool    spec.awsLaunchTemplate.ami.eksLookupType
launchTemplate.image.name                 pool    spec.awsLaunchTemplate.imageLookupFormat
launchTemplate.image.name                 pool    spec.awsLaunchTemplate.imageLookupBaseOS
launchTemplate.image.name                 machine spec.template.spec.version
launchTemplate.image.owner                pool    spec.awsLaunchTemplate.imageLookupOrg
launchTemplate.image.version              machine spec.template.spec.version
launchTemplate.image.version              control spec.version
launchTemplate.image.instanceType         pool    spec.awsLaunchTemplate.instanceType
launchTemplate.image.instanceType         pool    spec.mixedInstancesPolicy.overrides.[0].instanceType
launchTemplate.image.cluster.name         machine spec.clusterName
launchTemplate.image.cluster.namespace    machine metadata.namespace
launchTemplate.rootDevice                 pool    spec.awsLaunchTemplate.rootVolume
launchTemplate.securityGroups.*.cluster.name      machine spec.clusterName
launchTemplate.securityGroups.*.cluster.namespace machine metadata.namespace
launchTemplate.userData.text              boot    spec
launchTemplate.userData.text              boot    data.value
launchTemplate.userData.text              boot    stringData.value
launchTemplate.userData.format            boot    spec.format
launchTemplate.userData.format            boot    data.format
launchTemplate.userData.format            boot    stringData.format
launchTemplate.userData.format            boot    kind
launchTemplate.userData.fetchesToken      boot    spec.joinConfiguration.discovery
launchTemplate.userData.fetchesToken      boot    spec
launchTemplate.userData.cluster.cluster.name      machine spec.clusterName
launchTemplate.userData.cluster.cluster.namespace machine metadata.namespace
launchTemplate.userData.cluster.name      control spec.eksClusterName
group.name                                options spec.autoScalingGroup.name
group.name                                pool    metadata.name
group.minSize                             pool    spec.minSize
group.maxSize                             pool    spec.maxSize
group.subnets.cluster.name                machine spec.clusterName
group.subnets.cluster.namespace           machine metadata.namespace
group.subnets.ids                         pool    spec.subnets
group.subnets.filters                     pool    spec.subnets
group.subnets.zones                       pool    spec.availabilityZones
group.subnets.zones                       machine spec.failureDomains
group.subnets.subnetType                  pool    spec.availabilityZoneSubnetType
group.mixedInstancesPolicy.onDemandPercentageAboveBaseCapacity pool metadata.annotations.node~capacity-type
group.mixedInstancesPolicy.onDemandPercentageAboveBaseCapacity pool metadata.labels.node~capacity-type
group.mixedInstancesPolicy.*              pool    spec.mixedInstancesPolicy.instancesDistribution.*
group.mixedInstancesPolicy.*              options spec.autoScalingGroup.mixedInstancesPolicy.instancesDistribution.*
group.refresh.strategy                    pool    spec.refreshPreferences.strategy
group.tags.*                              pool    spec.additionalTags.*
group.tags.*                              control spec.additionalTags.*
group.tags.*                              infra   spec.additionalTags.*
group.tags.Name                           options spec.autoScalingGroup.name
group.tags.Name                           pool    metadata.name
nodegroup.name                            pool    spec.eksNodegroupName
nodegroup.name                            pool    metadata.name
nodegroup.clusterName                     control spec.eksClusterName
nodegroup.cluster.name                    control spec.eksClusterName
nodegroup.cluster.cluster.name            machine spec.clusterName
nodegroup.cluster.cluster.namespace       machine metadata.namespace
controlPlane.name                         control spec.eksClusterName
controlPlane.cluster.name                 machine spec.clusterName
controlPlane.cluster.namespace            machine metadata.namespace
nodegroup.role.name                       pool    spec.roleName
nodegroup.role.cluster.name               machine spec.clusterName
nodegroup.role.cluster.namespace          machine metadata.namespace
nodegroup.subnets.cluster.name            machine spec.clusterName
nodegroup.subnets.cluster.namespace       machine metadata.namespace
nodegroup.subnets.ids                     pool    spec.subnetIDs
nodegroup.subnets.zones                   pool    spec.availabilityZones
nodegroup.subnets.zones                   machine spec.failureDomains
nodegroup.subnets.subnetType              pool    spec.availabilityZoneSubnetType
nodegroup.minSize                         pool    spec.scaling.minSize
nodegroup.maxSize                         pool    spec.scaling.maxSize
nodegroup.version                         machine spec.template.spec.version
nodegroup.capacityType                    pool    metadata.annotations.node~capacity-type
nodegroup.capacityType                    pool    metadata.labels.node~capacity-type
nodegroup.instanceType                    pool    spec.instanceType
nodegroup.labels.*                        pool    spec.labels.*
nodegroup.remoteAccess.ec2SshKey          pool    spec.remoteAccess.sshKeyName
nodegroup.remoteAccess.ec2SshKey          control spec.sshKeyName
nodegroup.remoteAccessGroups.*.cluster.name      machine spec.clusterName
nodegroup.remoteAccessGroups.*.cluster.namespace machine metadata.namespace
nodegroup.force                           options spec.nodegroup.force
nodegroup.tags.*                          pool    spec.additionalTags.*
nodegroup.tags.*                          control spec.additionalTags.*
`

// notes explain the fields that no manifest sets: the origin of the default, or how weir derives the value.
// The first line that matches a field counts.
const notes = `
key.namespace                              default Kubernetes' own namespace, default
machinePool.namespace                      default Kubernetes' own namespace, default
infrastructure.namespace                   default Kubernetes' own namespace, default
bootstrap.namespace                        default Kubernetes' own namespace, default
options.namespace                          default Kubernetes' own namespace, default
cluster.namespace                          default Kubernetes' own namespace, default
replicas.written                           default replicas is not written, so it sets the size at creation only
replicas                                   default Cluster API's default, kept within the pool's bounds
launchConfig.key.name                      derived the cluster's name, the template's, and the kind of its pools
launchConfig                               default Kubernetes' own namespace, default
foreignOverrides.*.lookup.kind             derived the launch template is looked up in EC2
foreignOverrides.*.lookup.version          default the newest version, where none is written
foreignTemplate.lookup.kind                derived the launch template is looked up in EC2
foreignTemplate.lookup.version             default the newest version, where none is written
launchTemplate.tags                        derived a tag that Cluster API Provider AWS sets
launchTemplate.image.kind                  default Cluster API Provider AWS looks for an image by the Kubernetes version
launchTemplate.image.name                  default Cluster API Provider AWS's pattern of image names
launchTemplate.image.owner                 default the account that publishes Cluster API Provider AWS's images
launchTemplate.image.version               derived the version of the control plane
launchTemplate.image.cluster               default Kubernetes' own namespace, default
launchTemplate.rootDevice                  derived no root volume is written, so the image's own is used
launchTemplate.securityGroups              derived what every node of the cluster has
launchTemplate.userData.format             derived the form of the bootstrap data
launchTemplate.userData.secret             derived whether the bootstrap data holds a secret
launchTemplate.userData.merged             derived whether EKS puts its own part beside the pool's
launchTemplate.userData                    derived the cluster's endpoint and certificate, which the bootstrap data needs
launchTemplate.data.BlockDeviceMappings.*.DeviceName              derived the root device of the image
launchTemplate.data.BlockDeviceMappings.*.Ebs.DeleteOnTermination derived Cluster API Provider AWS has volumes deleted with their instance
launchTemplate.data.InstanceMarketOptions  derived spotMarketOptions is there, which asks for spot
launchTemplate.data.MetadataOptions        default the default of Cluster API Provider AWS's schema where instanceMetadataOptions is there
launchTemplate.data.TagSpecifications      derived a tag that Cluster API Provider AWS sets
group.minSize                              default the default of Cluster API Provider AWS's schema
group.maxSize                              default the default of Cluster API Provider AWS's schema
group.subnets.kind                         derived subnets are looked up in AWS
group.subnets                              default Kubernetes' own namespace, default
group.mixedInstancesPolicy                 default the default of Cluster API Provider AWS's schema
group.options.metricsCollection.metrics    default all metrics of a group
group.options.metricsCollection            default the one granularity that Auto Scaling has
group.options.trafficSources               derived what the identifier names
group.options.warmPool                     default Auto Scaling's default
group.refresh.strategy                     default Cluster API Provider AWS's only strategy
group.tags                                 derived a tag that Cluster API Provider AWS sets
controlPlane.kind                          derived the cluster is looked up in EKS
controlPlane.name                          derived the control plane's name, as Cluster API Provider AWS has it
controlPlane.cluster                       default Kubernetes' own namespace, default
nodegroup.clusterName                      derived the control plane's name, as Cluster API Provider AWS has it
nodegroup.cluster.kind                     derived the cluster is looked up in EKS
nodegroup.cluster.name                     derived the control plane's name, as Cluster API Provider AWS has it
nodegroup.cluster                          default Kubernetes' own namespace, default
nodegroup.role.kind                        derived the role is looked up in IAM
nodegroup.role.name                        default Cluster API Provider AWS's role for nodegroups
nodegroup.role                             default Kubernetes' own namespace, default
nodegroup.subnets.kind                     derived subnets are looked up in AWS
nodegroup.subnets                          default Kubernetes' own namespace, default
nodegroup.minSize.written                  default scaling.minSize is not written, so it is not held
nodegroup.maxSize.written                  default scaling.maxSize is not written, so it is not held
nodegroup.minSize                          derived a bound that is not written makes room for the size
nodegroup.maxSize                          derived a bound that is not written makes room for the size
nodegroup.amiType                          default the default of Cluster API Provider AWS's schema
nodegroup.capacityType                     default the default of Cluster API Provider AWS's schema
nodegroup.remoteAccessGroups               derived the groups that may log in where public is not set
nodegroup.updateConfig                     default Cluster API Provider AWS's default, one node
nodegroup.tags                             derived a tag that Cluster API Provider AWS sets
`

// noteOf returns the source and note of a field that no manifest sets.
func noteOf(field intent.Path) (ValueKind, string) {
	for line := range strings.Lines(notes) {
		pattern, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pattern == "" {
			continue
		}
		if _, ok := match(strings.Split(pattern, "."), field); ok {
			source, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
			return ValueKind(source), strings.TrimSpace(text)
		}
	}
	if r, ok := rows.Find(rowOf(field)); ok && r.OfPool() && r.Default != "" {
		text := "Cluster API Provider AWS's default"
		if unit, ok := strings.CutPrefix(r.Doc, "in "); ok {
			text += ", " + r.Default + " " + unit
		}
		return Default, text
	}
	return Unknown, ""
}

// manifestFields returns the manifest fields that may have set a field of a pool, with the most likely one
// first.
func (m manifests) manifestFields(p *intent.Pool, field intent.Path) []manifestField {
	if special, ok := m.listFields(p, field); ok {
		return shared(p, special)
	}
	if c := p.LaunchConfig; c != nil && field.String() == "launchTemplate.name" {
		return []manifestField{{c.Source, intent.Path{"metadata", "name"}}}
	}
	var out []manifestField
	for _, line := range sourceLines()[field[0]] {
		stars, ok := match(line.pattern, field)
		if !ok {
			continue
		}
		for _, ref := range m.objectsOf(p, line.word) {
			if c := p.LaunchConfig; c != nil && line.field == "launchTemplate.tags.Name" {
				ref = c.Source
			}
			out = append(out, manifestField{ref, fill(line.path, stars)})
		}
	}
	return shared(p, append(out, manifestFieldsOf(p, field)...))
}

// shared replaces fields of a shared launch template with the fields of its AWSLaunchConfig.
func shared(p *intent.Pool, fields []manifestField) []manifestField {
	if p.LaunchConfig == nil {
		return fields
	}
	for i, f := range fields {
		if at, ok := p.LaunchConfig.Field(f.path); ok && f.ref == p.Infrastructure {
			fields[i] = manifestField{p.LaunchConfig.Source, at}
		}
	}
	return fields
}

// poolNode returns a field of the pool's infrastructure object, or of its AWSLaunchConfig. It returns nil if
// the field is missing.
func (m manifests) poolNode(p *intent.Pool, path intent.Path) *yaml.Node {
	f := shared(p, []manifestField{{p.Infrastructure, path}})[0]
	return m.node(f.ref, f.path)
}

// objectsOf returns the objects for an object word in sources.
func (m manifests) objectsOf(p *intent.Pool, word string) []intent.ObjectRef {
	switch word {
	case fromPool:
		return []intent.ObjectRef{p.Infrastructure}
	case fromMachine:
		return []intent.ObjectRef{p.MachinePool}
	case fromBoot:
		return []intent.ObjectRef{p.Bootstrap}
	case fromOptions:
		return []intent.ObjectRef{p.Options}
	case fromConfig, fromShared:
		switch {
		case p.LaunchConfig == nil:
			return nil
		case word == fromShared:
			return []intent.ObjectRef{p.LaunchConfig.Options}
		}
		return []intent.ObjectRef{p.LaunchConfig.Source}
	}
	named := func(kind, name string) []intent.ObjectRef {
		return m.names[[3]string{kind, p.ClusterKey.Namespace, name}]
	}
	switch word {
	case fromCluster:
		return slices.DeleteFunc(slices.Clone(named("Cluster", p.ClusterKey.Name)), func(ref intent.ObjectRef) bool { return ref.Group() != "cluster.x-k8s.io" })
	case fromControl:
		cluster, _ := m.cluster(p.ClusterKey)
		return named("AWSManagedControlPlane", cluster.ControlPlaneName)
	case fromInfra:
		return named("AWSCluster", m.infraName(p))
	}
	return nil
}

// infraName returns the name of the pool's AWSCluster.
func (m manifests) infraName(p *intent.Pool) string {
	for _, ref := range m.objectsOf(p, fromCluster) {
		if n := m.node(ref, intent.Path{"spec", "infrastructureRef", "name"}); n != nil {
			return n.Value
		}
	}
	return ""
}

// match compares a field with a pattern and returns the elements that match its stars.
func match(pattern []string, field intent.Path) (stars []string, ok bool) {
	if len(field) < len(pattern) {
		return nil, false
	}
	for i, e := range pattern {
		switch e {
		case "*":
			stars = append(stars, field[i])
		case field[i]:
		default:
			return nil, false
		}
	}
	return stars, true
}

// fill returns the path of a pattern. Each * becomes the next element of stars. The prefixes weir~, node~
// and capi~ stand for the domains of annotations and labels.
func fill(pattern, stars []string) intent.Path {
	out := make(intent.Path, len(pattern))
	for i, e := range pattern {
		switch {
		case e == "*":
			e, stars = stars[0], stars[1:]
		case strings.HasPrefix(e, "weir~"):
			e = "weir.dev/" + strings.TrimPrefix(e, "weir~")
		case strings.HasPrefix(e, "node~"):
			e = "node.k8s.aws/" + strings.TrimPrefix(e, "node~")
		case strings.HasPrefix(e, "capi~"):
			e = "cluster.x-k8s.io/" + strings.TrimPrefix(e, "capi~")
		}
		out[i] = e
	}
	return out
}
