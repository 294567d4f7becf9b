// Package ec2 is the part of EC2 that machine pools need: launch templates and their versions, instances,
// and their inputs (images, types, networks, security groups, key pairs), with tags, filters and pages.
//
// Instances are launched by RunInstances or by Auto Scaling, which uses [Region.LaunchInstance] and receives
// every change of their state. [Region.Fill] makes the images and networks of a new region, with the naming
// schemes of their publishers.
package ec2

import (
	"github.com/weir-gitops/weir/reconciler/awsemu/iam"
	"github.com/weir-gitops/weir/reconciler/awsemu/kms"
	"github.com/weir-gitops/weir/reconciler/awsemu/ssm"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Region is EC2's part of a region.
type Region struct {
	*world.Region `json:"-"`
	iam           *iam.Region
	ssm           *ssm.Region
	kms           *kms.Region
	launches      *world.Script[LaunchFault]
	changed       func(in *Instance, from string)
	zoneIDs       map[string]string // by zone

	LaunchTemplates world.Table[*LaunchTemplate] // by id
	TemplateNames   map[string]string            // name to id
	Instances       world.Table[*Instance]       // by id
	Vpcs            world.Table[*Vpc]
	Subnets         world.Table[*Subnet]
	SecurityGroups  world.Table[*SecurityGroup]
	Images          world.Table[*Image]
	KeyPairs        world.Table[*KeyPair]
	PlacementGroups world.Table[*PlacementGroup]
	Reservations    world.Table[*Reservation]
	Volumes         world.Table[*Volume]
	NotOffered      map[string][]string `json:",omitempty"` // zones by instance type

	MetadataDefaults metadataDefaults
}

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns EC2: launch templates, instances, and their inputs.
func Service() *wire.Service {
	return wire.NewService("ec2", wire.EC2Dialect(),
		wire.FormOp("CreateLaunchTemplate", wire.Writes, createLaunchTemplate),
		wire.FormOp("CreateLaunchTemplateVersion", wire.Writes, createLaunchTemplateVersion),
		wire.FormOp("ModifyLaunchTemplate", wire.Writes, modifyLaunchTemplate),
		wire.FormOp("DeleteLaunchTemplate", wire.Writes, deleteLaunchTemplate),
		wire.FormOp("DeleteLaunchTemplateVersions", wire.Writes, deleteLaunchTemplateVersions),
		wire.FormOp("DescribeLaunchTemplates", wire.Reads, describeLaunchTemplates),
		wire.FormOp("DescribeLaunchTemplateVersions", wire.Reads, describeLaunchTemplateVersions),
		wire.FormOp("CreateTags", wire.Writes, createTags),
		wire.FormOp("DeleteTags", wire.Writes, deleteTags),
		wire.FormOp("DescribeTags", wire.Reads, describeTags),
		wire.FormOp("DescribeInstances", wire.Reads, describeInstances),
		wire.FormOp("DescribeInstanceStatus", wire.Reads, describeInstanceStatus),
		wire.FormOp("DescribeInstanceAttribute", wire.Reads, describeInstanceAttribute),
		wire.FormOp("GetLaunchTemplateData", wire.Reads, getLaunchTemplateData),
		wire.FormOp("GetConsoleOutput", wire.Reads, getConsoleOutput),
		wire.FormOp("GetInstanceTypesFromInstanceRequirements", wire.Reads, typesFromRequirements),
		wire.FormOp("DescribeSnapshots", wire.Reads, describeSnapshots),
		wire.FormOp("DescribeVolumes", wire.Reads, describeVolumes),
		wire.FormOp("DescribeSpotPriceHistory", wire.Reads, describeSpotPriceHistory),
		wire.FormOp("DescribeRegions", wire.Reads, describeRegions),
		wire.FormOp("DescribeAccountAttributes", wire.Reads, describeAccountAttributes),
		wire.FormOp("DescribeVpcAttribute", wire.Reads, describeVpcAttribute),
		wire.FormOp("RunInstances", wire.Writes, runInstances).Rehearsing(),
		wire.FormOp("TerminateInstances", wire.Writes, terminateInstances),
		wire.FormOp("ModifyInstanceMetadataDefaults", wire.Writes, modifyInstanceMetadataDefaults),
		wire.FormOp("GetInstanceMetadataDefaults", wire.Reads, getInstanceMetadataDefaults),
		wire.FormOp("DescribeImages", wire.Reads, describeImages),
		wire.FormOp("DescribeVpcs", wire.Reads, describeVpcs),
		wire.FormOp("DescribeSubnets", wire.Reads, describeSubnets),
		wire.FormOp("DescribeSecurityGroups", wire.Reads, describeSecurityGroups),
		wire.FormOp("CreateVpc", wire.Writes, createVpc),
		wire.FormOp("CreateSubnet", wire.Writes, createSubnet),
		wire.FormOp("CreateSecurityGroup", wire.Writes, createSecurityGroup),
		wire.FormOp("CreateKeyPair", wire.Writes, createKeyPair),
		wire.FormOp("ImportKeyPair", wire.Writes, importKeyPair),
		wire.FormOp("DescribeKeyPairs", wire.Reads, describeKeyPairs),
		wire.FormOp("DeleteKeyPair", wire.Writes, deleteKeyPair),
		wire.FormOp("CreatePlacementGroup", wire.Writes, createPlacementGroup),
		wire.FormOp("DescribePlacementGroups", wire.Reads, describePlacementGroups),
		wire.FormOp("DeletePlacementGroup", wire.Writes, deletePlacementGroup),
		wire.FormOp("CreateCapacityReservation", wire.Writes, createCapacityReservation),
		wire.FormOp("DescribeCapacityReservations", wire.Reads, describeCapacityReservations),
		wire.FormOp("CancelCapacityReservation", wire.Writes, cancelCapacityReservation),
		wire.FormOp("DescribeAvailabilityZones", wire.Reads, describeAvailabilityZones),
		wire.FormOp("DescribeInstanceTypes", wire.Reads, describeInstanceTypes),
		wire.FormOp("DescribeInstanceTypeOfferings", wire.Reads, describeInstanceTypeOfferings),
	)
}

// Join connects the region, which is new or was read from JSON, with the services that EC2 uses. changed
// runs after every change of an instance's state.
func (r *Region) Join(base *world.Region, accounts *iam.Region, parameters *ssm.Region, keys *kms.Region, launches *world.Script[LaunchFault], changed func(in *Instance, from string)) {
	r.Region, r.iam, r.ssm, r.kms, r.launches, r.changed = base, accounts, parameters, keys, launches, changed
	if r.TemplateNames == nil {
		r.TemplateNames = map[string]string{}
	}
}

// Fill adds the default resources of a new region.
func (r *Region) Fill() {
	seedNetwork(r)
	seedImages(r)
}
