package derive

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// launchTemplate derives a pool's launch template, without image and user data. Its security groups are only
// those that the manifest adds.
func (b *Builder) launchTemplate(d *draft, lt *kinds.LaunchTemplate, name string, additional map[string]string, instanceType string) {
	p := path("spec", "awsLaunchTemplate")
	if b.launchConfigs.shares(d) {
		name = b.launchConfigs.name(d)
	} else {
		b.claimName(d, "launch template", name, claim{d.Infrastructure, d.Infrastructure, path("metadata", "name")})
	}
	if !kinds.TemplateName.MatchString(name) || len(name) > kinds.MaxTemplateName {
		d.AtPool.Error(path("metadata", "name"), "bad-name", fmt.Sprintf("%q is not a valid name for a launch template", name), fmt.Sprintf("EC2 takes 3 to %d characters", kinds.MaxTemplateName))
	}
	if lt.Name != "" && lt.Name != name {
		d.AtPool.Info(p.Join("name"), "not-carried", "spec.awsLaunchTemplate.name is not used: the launch template is named "+name, "")
	}
	tags := capaTags(name, d.cluster.tagName(), additional)
	out := &intent.LaunchTemplate{Name: name, Tags: tags, RootDevice: lt.RootVolume != nil}
	out.Data = intent.TemplateData{
		ImageID: intent.Value(lt.AMI.ID), InstanceType: lt.InstanceType, KeyName: intent.Value(lt.SSHKeyName), BlockDeviceMappings: volumes(lt),
		InstanceMarketOptions: market(lt), CapacityReservationSpecification: reservation(lt), MetadataOptions: metadata(lt.InstanceMetadataOptions),
		TagSpecifications: specifications(tags), EnclaveOptions: lt.EnclaveOptions, PrivateDNSNameOptions: lt.PrivateDNSName,
	}
	if lt.IamInstanceProfile != "" {
		out.Data.IamInstanceProfile = profile(lt.IamInstanceProfile)
	}
	for _, ref := range lt.AdditionalSecurityGroups {
		if ref.ID != nil {
			out.Data.SecurityGroupIDs = append(out.Data.SecurityGroupIDs, *ref.ID)
		} else {
			out.SecurityGroups = append(out.SecurityGroups, intent.Lookup{Kind: intent.SecurityGroupsByFilter, Filters: intent.JoinFilters(filtersOf(ref)), Cluster: d.ClusterKey})
		}
	}
	d.LaunchTemplate = out
}

// profile returns an instance profile by name or ARN. CAPA passes an ARN as a name, which fails.
func profile(s string) *intent.InstanceProfile {
	if strings.HasPrefix(s, "arn:") {
		return &intent.InstanceProfile{ARN: s}
	}
	return &intent.InstanceProfile{Name: s}
}

// volumes returns the root volume, if there is one, and then the other volumes. The image decides the root
// volume's device name, even if an exported manifest has one.
func volumes(lt *kinds.LaunchTemplate) []intent.BlockDeviceMapping {
	var out []intent.BlockDeviceMapping
	if lt.RootVolume != nil {
		out = append(out, intent.BlockDeviceMapping{Ebs: ebs(lt.RootVolume)})
	}
	for i := range lt.NonRootVolumes {
		v := &lt.NonRootVolumes[i]
		out = append(out, intent.BlockDeviceMapping{DeviceName: v.DeviceName, Ebs: ebs(v)})
	}
	return out
}

func ebs(v *kinds.Volume) intent.Ebs {
	yes := true
	out := intent.Ebs{VolumeSize: int32(v.Size), VolumeType: v.Type, Iops: int32(v.IOPS), Encrypted: v.Encrypted, KmsKeyID: v.EncryptionKey, DeleteOnTermination: &yes}
	if v.Throughput != nil {
		out.Throughput = int32(*v.Throughput)
	}
	if v.EncryptionKey != "" {
		out.Encrypted = &yes
	}
	return out
}

// market returns the options for a capacity block or for spot instances, and nil for on-demand instances.
// spotMarketOptions alone also mean spot.
func market(lt *kinds.LaunchTemplate) *intent.MarketOptions {
	switch {
	case lt.MarketType == "CapacityBlock":
		return &intent.MarketOptions{MarketType: "capacity-block"}
	case lt.MarketType == "Spot" || lt.SpotMarketOptions != nil:
		out := &intent.MarketOptions{MarketType: "spot"}
		if lt.SpotMarketOptions != nil {
			out.MaxPrice = intent.Value(lt.SpotMarketOptions.MaxPrice)
		}
		return out
	}
	return nil
}

func reservation(lt *kinds.LaunchTemplate) *intent.CapacityReservation {
	if lt.CapacityReservationID == nil && lt.CapacityReservationPreference == "" {
		return nil
	}
	preferences := map[string]string{"None": "none", "CapacityReservationsOnly": "capacity-reservations-only", "Open": "open"}
	return &intent.CapacityReservation{Preference: preferences[lt.CapacityReservationPreference], TargetID: intent.Value(lt.CapacityReservationID)}
}

// metadata returns the options that CAPA sends. It includes httpProtocolIpv6 only if this is enabled, because
// EC2 returns no value for its default.
func metadata(m *intent.MetadataOptions) *intent.MetadataOptions {
	if m == nil || m.HTTPProtocolIPv6 == "enabled" {
		return m
	}
	out := *m
	out.HTTPProtocolIPv6 = ""
	return &out
}
