package awscloud

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/weir-gitops/weir/render/intent"
)

// requestPoolOptions writes the members that only PoolOptions sets.
func requestPoolOptions(d intent.TemplateData, out *types.RequestLaunchTemplateData) {
	out.DisableApiStop, out.DisableApiTermination, out.EbsOptimized = d.DisableAPIStop, d.DisableAPITermination, d.EbsOptimized
	out.InstanceInitiatedShutdownBehavior = types.ShutdownBehavior(d.InstanceInitiatedShutdownBehavior)
	out.KernelId, out.RamDiskId = stringOrNil(d.KernelID), stringOrNil(d.RAMDiskID)
	if c := d.CPUOptions; c != nil {
		out.CpuOptions = &types.LaunchTemplateCpuOptionsRequest{AmdSevSnp: types.AmdSevSnpSpecification(c.AmdSevSnp), CoreCount: numberOrNil(c.CoreCount),
			NestedVirtualization: types.NestedVirtualizationSpecification(c.NestedVirtualization), ThreadsPerCore: numberOrNil(c.ThreadsPerCore)}
	}
	if c := d.CreditSpecification; c != nil {
		out.CreditSpecification = &types.CreditSpecificationRequest{CpuCredits: aws.String(c.CPUCredits)}
	}
	if h := d.HibernationOptions; h != nil {
		out.HibernationOptions = &types.LaunchTemplateHibernationOptionsRequest{Configured: h.Configured}
	}
	for _, l := range d.LicenseSpecifications {
		out.LicenseSpecifications = append(out.LicenseSpecifications, types.LaunchTemplateLicenseConfigurationRequest{LicenseConfigurationArn: stringOrNil(l.LicenseConfigurationARN)})
	}
	if m := d.MaintenanceOptions; m != nil {
		out.MaintenanceOptions = &types.LaunchTemplateInstanceMaintenanceOptionsRequest{AutoRecovery: types.LaunchTemplateAutoRecoveryState(m.AutoRecovery)}
	}
	if m := d.Monitoring; m != nil {
		out.Monitoring = &types.LaunchTemplatesMonitoringRequest{Enabled: m.Enabled}
	}
	for i := range d.NetworkInterfaces {
		out.NetworkInterfaces = append(out.NetworkInterfaces, requestInterface(&d.NetworkInterfaces[i]))
	}
	if n := d.NetworkPerformanceOptions; n != nil {
		out.NetworkPerformanceOptions = &types.LaunchTemplateNetworkPerformanceOptionsRequest{BandwidthWeighting: types.InstanceBandwidthWeighting(n.BandwidthWeighting)}
	}
	if p := d.Placement; p != nil {
		out.Placement = &types.LaunchTemplatePlacementRequest{Affinity: stringOrNil(p.Affinity), GroupId: stringOrNil(p.GroupID), GroupName: stringOrNil(p.GroupName),
			HostId: stringOrNil(p.HostID), HostResourceGroupArn: stringOrNil(p.HostResourceGroupARN), PartitionNumber: numberOrNil(p.PartitionNumber), Tenancy: types.Tenancy(p.Tenancy)}
	}
}

func requestInterface(n *intent.NetworkInterface) types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	out := types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
		AssociateCarrierIpAddress: n.AssociateCarrierIPAddress, AssociatePublicIpAddress: n.AssociatePublicIPAddress,
		DeleteOnTermination: n.DeleteOnTermination, Description: stringOrNil(n.Description), DeviceIndex: n.DeviceIndex,
		EnaQueueCount: numberOrNil(n.EnaQueueCount), Groups: n.Groups, InterfaceType: stringOrNil(n.InterfaceType),
		Ipv4PrefixCount: numberOrNil(n.IPv4PrefixCount), Ipv6AddressCount: numberOrNil(n.IPv6AddressCount), Ipv6PrefixCount: numberOrNil(n.IPv6PrefixCount),
		NetworkCardIndex: n.NetworkCardIndex, PrimaryIpv6: n.PrimaryIPv6,
		SecondaryPrivateIpAddressCount: numberOrNil(n.SecondaryPrivateIPAddressCount), SubnetId: stringOrNil(n.SubnetID),
	}
	if c := n.ConnectionTrackingSpecification; c != nil {
		out.ConnectionTrackingSpecification = &types.ConnectionTrackingSpecificationRequest{TcpEstablishedTimeout: numberOrNil(c.TCPEstablishedTimeout),
			UdpStreamTimeout: numberOrNil(c.UDPStreamTimeout), UdpTimeout: numberOrNil(c.UDPTimeout)}
	}
	if e := n.EnaSrdSpecification; e != nil {
		out.EnaSrdSpecification = &types.EnaSrdSpecificationRequest{EnaSrdEnabled: e.EnaSrdEnabled}
		if u := e.EnaSrdUDPSpecification; u != nil {
			out.EnaSrdSpecification.EnaSrdUdpSpecification = &types.EnaSrdUdpSpecificationRequest{EnaSrdUdpEnabled: u.EnaSrdUDPEnabled}
		}
	}
	return out
}

// readPoolOptions reads the members that only PoolOptions sets, and takes them
// out of rest; see templateData.
func readPoolOptions(in, rest *types.ResponseLaunchTemplateData, d *intent.TemplateData) (unknown bool) {
	d.DisableAPIStop, d.DisableAPITermination, d.EbsOptimized = in.DisableApiStop, in.DisableApiTermination, in.EbsOptimized
	d.InstanceInitiatedShutdownBehavior = string(in.InstanceInitiatedShutdownBehavior)
	d.KernelID, d.RAMDiskID = aws.ToString(in.KernelId), aws.ToString(in.RamDiskId)
	rest.DisableApiStop, rest.DisableApiTermination, rest.EbsOptimized, rest.KernelId, rest.RamDiskId = nil, nil, nil, nil, nil
	rest.InstanceInitiatedShutdownBehavior = ""
	if c := in.CpuOptions; c != nil {
		d.CPUOptions = &intent.CPUOptions{AmdSevSnp: string(c.AmdSevSnp), CoreCount: aws.ToInt32(c.CoreCount),
			NestedVirtualization: string(c.NestedVirtualization), ThreadsPerCore: aws.ToInt32(c.ThreadsPerCore)}
		left := *c
		left.AmdSevSnp, left.CoreCount, left.NestedVirtualization, left.ThreadsPerCore = "", nil, "", nil
		unknown = unknown || remains(left)
		rest.CpuOptions = nil
	}
	if c := in.CreditSpecification; c != nil {
		d.CreditSpecification = &intent.CreditSpecification{CPUCredits: aws.ToString(c.CpuCredits)}
		left := *c
		left.CpuCredits = nil
		unknown = unknown || remains(left)
		rest.CreditSpecification = nil
	}
	if h := in.HibernationOptions; h != nil {
		d.HibernationOptions = &intent.HibernationOptions{Configured: h.Configured}
		left := *h
		left.Configured = nil
		unknown = unknown || remains(left)
		rest.HibernationOptions = nil
	}
	for _, l := range in.LicenseSpecifications {
		d.LicenseSpecifications = append(d.LicenseSpecifications, intent.LicenseConfiguration{LicenseConfigurationARN: aws.ToString(l.LicenseConfigurationArn)})
		l.LicenseConfigurationArn = nil
		unknown = unknown || remains(l)
	}
	rest.LicenseSpecifications = nil
	return readMoreOptions(in, rest, d) || unknown
}

func readMoreOptions(in, rest *types.ResponseLaunchTemplateData, d *intent.TemplateData) (unknown bool) {
	if m := in.MaintenanceOptions; m != nil {
		d.MaintenanceOptions = &intent.MaintenanceOptions{AutoRecovery: string(m.AutoRecovery)}
		left := *m
		left.AutoRecovery = ""
		unknown = unknown || remains(left)
		rest.MaintenanceOptions = nil
	}
	if m := in.Monitoring; m != nil {
		d.Monitoring = &intent.Monitoring{Enabled: m.Enabled}
		left := *m
		left.Enabled = nil
		unknown = unknown || remains(left)
		rest.Monitoring = nil
	}
	for _, n := range in.NetworkInterfaces {
		read, more := readInterface(n)
		d.NetworkInterfaces = append(d.NetworkInterfaces, read)
		unknown = unknown || more
	}
	rest.NetworkInterfaces = nil
	if n := in.NetworkPerformanceOptions; n != nil {
		d.NetworkPerformanceOptions = &intent.NetworkPerformanceOptions{BandwidthWeighting: string(n.BandwidthWeighting)}
		left := *n
		left.BandwidthWeighting = ""
		unknown = unknown || remains(left)
		rest.NetworkPerformanceOptions = nil
	}
	if p := in.Placement; p != nil {
		d.Placement = &intent.Placement{Affinity: aws.ToString(p.Affinity), GroupID: aws.ToString(p.GroupId), GroupName: aws.ToString(p.GroupName),
			HostID: aws.ToString(p.HostId), HostResourceGroupARN: aws.ToString(p.HostResourceGroupArn), PartitionNumber: aws.ToInt32(p.PartitionNumber), Tenancy: string(p.Tenancy)}
		left := *p
		left.Affinity, left.GroupId, left.GroupName, left.HostId, left.HostResourceGroupArn, left.PartitionNumber, left.Tenancy = nil, nil, nil, nil, nil, nil, ""
		unknown = unknown || remains(left)
		rest.Placement = nil
	}
	return unknown
}

// readInterface reads one network interface; its groups come sorted.
func readInterface(n types.LaunchTemplateInstanceNetworkInterfaceSpecification) (out intent.NetworkInterface, unknown bool) {
	out = intent.NetworkInterface{
		AssociateCarrierIPAddress: n.AssociateCarrierIpAddress, AssociatePublicIPAddress: n.AssociatePublicIpAddress,
		DeleteOnTermination: n.DeleteOnTermination, Description: aws.ToString(n.Description), DeviceIndex: n.DeviceIndex,
		EnaQueueCount: aws.ToInt32(n.EnaQueueCount), Groups: sortedStrings(n.Groups), InterfaceType: aws.ToString(n.InterfaceType),
		IPv4PrefixCount: aws.ToInt32(n.Ipv4PrefixCount), IPv6AddressCount: aws.ToInt32(n.Ipv6AddressCount), IPv6PrefixCount: aws.ToInt32(n.Ipv6PrefixCount),
		NetworkCardIndex: n.NetworkCardIndex, PrimaryIPv6: n.PrimaryIpv6,
		SecondaryPrivateIPAddressCount: aws.ToInt32(n.SecondaryPrivateIpAddressCount), SubnetID: aws.ToString(n.SubnetId),
	}
	if c := n.ConnectionTrackingSpecification; c != nil {
		out.ConnectionTrackingSpecification = &intent.ConnectionTracking{TCPEstablishedTimeout: aws.ToInt32(c.TcpEstablishedTimeout),
			UDPStreamTimeout: aws.ToInt32(c.UdpStreamTimeout), UDPTimeout: aws.ToInt32(c.UdpTimeout)}
		left := *c
		left.TcpEstablishedTimeout, left.UdpStreamTimeout, left.UdpTimeout = nil, nil, nil
		unknown = remains(left)
	}
	if e := n.EnaSrdSpecification; e != nil {
		out.EnaSrdSpecification = &intent.EnaSrd{EnaSrdEnabled: e.EnaSrdEnabled}
		left := *e
		if u := e.EnaSrdUdpSpecification; u != nil {
			out.EnaSrdSpecification.EnaSrdUDPSpecification = &intent.EnaSrdUDP{EnaSrdUDPEnabled: u.EnaSrdUdpEnabled}
			udp := *u
			udp.EnaSrdUdpEnabled = nil
			unknown = unknown || remains(udp)
		}
		left.EnaSrdEnabled, left.EnaSrdUdpSpecification = nil, nil
		unknown = unknown || remains(left)
	}
	n.AssociateCarrierIpAddress, n.AssociatePublicIpAddress, n.DeleteOnTermination, n.PrimaryIpv6 = nil, nil, nil, nil
	n.Description, n.InterfaceType, n.SubnetId, n.Groups = nil, nil, nil, nil
	n.DeviceIndex, n.EnaQueueCount, n.NetworkCardIndex, n.SecondaryPrivateIpAddressCount = nil, nil, nil, nil
	n.Ipv4PrefixCount, n.Ipv6AddressCount, n.Ipv6PrefixCount = nil, nil, nil
	n.ConnectionTrackingSpecification, n.EnaSrdSpecification = nil, nil
	return out, unknown || remains(n)
}
