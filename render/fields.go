package render

import (
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// manifestField is a field of a rendered object.
type manifestField struct {
	ref  intent.ObjectRef
	path intent.Path
}

// An object that a pool comes from.
const (
	fromPool      = "pool"        // the AWSMachinePool or AWSManagedMachinePool
	fromMachine   = "machinepool" // the MachinePool
	fromBootstrap = "bootstrap"   // the bootstrap configuration or Secret
)

// sources say which manifest field gives a field of a pool. Each line is the
// field, the object and the manifest's field. A star stands for one element and
// is copied; a field below a listed one has the same source. Where several
// lines fit a field, they are asked in turn.
const sources = `
kind                                      machinepool spec.template.spec.infrastructureRef.kind
cluster                                   machinepool spec.clusterName
pruneDisabled                             pool        metadata.annotations.weir~prune
pruneDisabled                             machinepool metadata.annotations.weir~prune
keepVersions                              pool        metadata.annotations.weir~keep-versions
keepVersions                              machinepool metadata.annotations.weir~keep-versions
followImages                              pool        metadata.annotations.weir~ami-policy
followImages                              machinepool metadata.annotations.weir~ami-policy
paused                                    pool        metadata.annotations.capi~paused
paused                                    machinepool metadata.annotations.capi~paused
replicas                                  machinepool spec.replicas
replicasManagedExternally                 machinepool metadata.annotations.capi~replicas-managed-by
version                                   machinepool spec.template.spec.version
minReadySeconds                           machinepool spec.minReadySeconds
minReadySeconds                           machinepool spec.template.spec.minReadySeconds
bootstrap                                 machinepool spec.template.spec.bootstrap.configRef.name
bootstrap                                 machinepool spec.template.spec.bootstrap.dataSecretName
launchTemplate.name                       pool        metadata.name
launchTemplate.tags.*                     pool        spec.additionalTags.*
launchTemplate.image                      pool        spec.awsLaunchTemplate.ami.id
launchTemplate.image                      pool        spec.awsLaunchTemplate.ami.eksLookupType
launchTemplate.image                      pool        spec.awsLaunchTemplate.imageLookupFormat
launchTemplate.image                      pool        spec.awsLaunchTemplate.imageLookupBaseOS
launchTemplate.image                      machinepool spec.template.spec.version
launchTemplate.securityGroups             pool        spec.awsLaunchTemplate.additionalSecurityGroups
launchTemplate.userData                   bootstrap   spec
launchTemplate.data.ImageId               pool        spec.awsLaunchTemplate.ami.id
launchTemplate.data.InstanceType          pool        spec.awsLaunchTemplate.instanceType
launchTemplate.data.KeyName               pool        spec.awsLaunchTemplate.sshKeyName
launchTemplate.data.IamInstanceProfile    pool        spec.awsLaunchTemplate.iamInstanceProfile
launchTemplate.data.SecurityGroupIds      pool        spec.awsLaunchTemplate.additionalSecurityGroups
launchTemplate.data.InstanceMarketOptions pool        spec.awsLaunchTemplate.spotMarketOptions
launchTemplate.data.InstanceMarketOptions pool        spec.awsLaunchTemplate.marketType
launchTemplate.data.CapacityReservationSpecification.CapacityReservationId         pool spec.awsLaunchTemplate.capacityReservationId
launchTemplate.data.CapacityReservationSpecification.CapacityReservationPreference pool spec.awsLaunchTemplate.capacityReservationPreference
launchTemplate.data.MetadataOptions.HttpEndpoint            pool spec.awsLaunchTemplate.instanceMetadataOptions.httpEndpoint
launchTemplate.data.MetadataOptions.HttpProtocolIpv6        pool spec.awsLaunchTemplate.instanceMetadataOptions.httpProtocolIpv6
launchTemplate.data.MetadataOptions.HttpPutResponseHopLimit pool spec.awsLaunchTemplate.instanceMetadataOptions.httpPutResponseHopLimit
launchTemplate.data.MetadataOptions.HttpTokens              pool spec.awsLaunchTemplate.instanceMetadataOptions.httpTokens
launchTemplate.data.MetadataOptions.InstanceMetadataTags    pool spec.awsLaunchTemplate.instanceMetadataOptions.instanceMetadataTags
launchTemplate.data.EnclaveOptions                          pool spec.awsLaunchTemplate.enclaveOptions.enabled
launchTemplate.data.PrivateDnsNameOptions.HostnameType      pool spec.awsLaunchTemplate.privateDnsName.hostnameType
launchTemplate.data.PrivateDnsNameOptions.EnableResourceNameDnsARecord    pool spec.awsLaunchTemplate.privateDnsName.enableResourceNameDnsARecord
launchTemplate.data.PrivateDnsNameOptions.EnableResourceNameDnsAAAARecord pool spec.awsLaunchTemplate.privateDnsName.enableResourceNameDnsAAAARecord
group.name                                pool        metadata.name
group.minSize                             pool        spec.minSize
group.maxSize                             pool        spec.maxSize
group.subnets                             pool        spec.subnets
group.subnets                             pool        spec.availabilityZones
group.subnets                             machinepool spec.failureDomains
group.defaultCooldown                     pool        spec.defaultCoolDown
group.defaultInstanceWarmup               pool        spec.defaultInstanceWarmup
group.capacityRebalance                   pool        spec.capacityRebalance
group.mixedInstancesPolicy.overrides.*.*  pool        spec.mixedInstancesPolicy.overrides.*.*
group.mixedInstancesPolicy.*              pool        spec.mixedInstancesPolicy.instancesDistribution.*
group.refresh.*                           pool        spec.refreshPreferences.*
group.suspendedProcesses                  pool        spec.suspendProcesses
group.lifecycleHooks                      pool        spec.lifecycleHooks
group.tags.*                              pool        spec.additionalTags.*
nodegroup.name                            pool        spec.eksNodegroupName
nodegroup.name                            pool        metadata.name
nodegroup.role                            pool        spec.roleName
nodegroup.subnets                         pool        spec.subnetIDs
nodegroup.subnets                         pool        spec.availabilityZones
nodegroup.subnets                         machinepool spec.failureDomains
nodegroup.minSize                         pool        spec.scaling.minSize
nodegroup.maxSize                         pool        spec.scaling.maxSize
nodegroup.amiType                         pool        spec.amiType
nodegroup.releaseVersion                  pool        spec.amiVersion
nodegroup.version                         machinepool spec.template.spec.version
nodegroup.capacityType                    pool        spec.capacityType
nodegroup.instanceType                    pool        spec.instanceType
nodegroup.diskSize                        pool        spec.diskSize
nodegroup.labels.*                        pool        spec.labels.*
nodegroup.taints                          pool        spec.taints
nodegroup.remoteAccess.ec2SshKey          pool        spec.remoteAccess.sshKeyName
nodegroup.remoteAccess                    pool        spec.remoteAccess
nodegroup.updateConfig.*                  pool        spec.updateConfig.*
nodegroup.nodeRepair                      pool        spec.nodeRepairConfig.enabled
nodegroup.tags.*                          pool        spec.additionalTags.*
`

// manifestFields returns the manifest fields that may have set a field of a
// pool, the likeliest first.
func manifestFields(p *intent.Pool, field intent.Path) []manifestField {
	var out []manifestField
	for line := range strings.Lines(sources) {
		cells := strings.Fields(line)
		if len(cells) != 3 {
			continue
		}
		stars, ok := match(strings.Split(cells[0], "."), field)
		if !ok {
			continue
		}
		ref := map[string]intent.ObjectRef{fromPool: p.Infrastructure, fromMachine: p.MachinePool, fromBootstrap: p.Bootstrap}[cells[1]]
		out = append(out, manifestField{ref, fill(strings.Split(cells[2], "."), stars)})
	}
	return append(out, volumeFields(p, field)...)
}

// match compares a field with a pattern and returns what its stars stand for.
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

func fill(pattern, stars []string) intent.Path {
	out := make(intent.Path, len(pattern))
	for i, e := range pattern {
		switch {
		case e == "*":
			e, stars = stars[0], stars[1:]
		case strings.HasPrefix(e, "weir~"):
			e = "weir.dev/" + strings.TrimPrefix(e, "weir~")
		case strings.HasPrefix(e, "capi~"):
			e = "cluster.x-k8s.io/" + strings.TrimPrefix(e, "capi~")
		}
		out[i] = e
	}
	return out
}

// volumeFields maps block device mappings: the root volume comes first in the
// template where there is one, and has a field of its own in the manifest.
func volumeFields(p *intent.Pool, field intent.Path) []manifestField {
	names := map[string]string{"VolumeSize": "size", "VolumeType": "type", "Iops": "iops", "Throughput": "throughput", "Encrypted": "encrypted", "KmsKeyId": "encryptionKey"}
	stars, ok := match([]string{"launchTemplate", "data", "BlockDeviceMappings", "*", "*"}, field)
	if !ok || p.LaunchTemplate == nil {
		return nil
	}
	name := "deviceName"
	if len(field) > 5 {
		if name, ok = names[field[5]]; !ok {
			return nil
		}
	}
	for i := range p.LaunchTemplate.Data.BlockDeviceMappings {
		if intent.Index(i) != stars[0] {
			continue
		}
		at := intent.Path{"spec", "awsLaunchTemplate"}
		switch {
		case !p.LaunchTemplate.RootDevice:
			at = at.Join("nonRootVolumes", intent.Index(i), name)
		case i == 0:
			at = at.Join("rootVolume", name)
		default:
			at = at.Join("nonRootVolumes", intent.Index(i-1), name)
		}
		return []manifestField{{p.Infrastructure, at}}
	}
	return nil
}
