package awsemu

import "github.com/weir-gitops/weir/reconciler/awsemu/model"

// ec2State is EC2's part of a region.
type ec2State struct {
	LaunchTemplates table[*launchTemplate] // by id
	TemplateNames   map[string]string      // name to id
	Instances       table[*instance]       // by id
	Vpcs            table[*vpc]
	Subnets         table[*subnet]
	SecurityGroups  table[*securityGroup]
	Images          table[*image]
	KeyPairs        table[*keyPair]

	MetadataDefaults metadataDefaults
}

// ec2Service is EC2: launch templates, instances, and what they are made from.
func ec2Service() *service {
	sv := &service{
		Service: model.Services()["ec2"], dialect: ec2Dialect(), timers: instanceTimers(), seed: seedEC2,
		restored: func(r *region) {
			if r.EC2.TemplateNames == nil {
				r.EC2.TemplateNames = map[string]string{}
			}
		},
	}
	sv.register(
		queryOp("CreateLaunchTemplate", writes, parseCreateTemplate, createLaunchTemplate),
		queryOp("CreateLaunchTemplateVersion", writes, parseCreateVersion, createLaunchTemplateVersion),
		queryOp("ModifyLaunchTemplate", writes, parseModifyTemplate, modifyLaunchTemplate),
		queryOp("DeleteLaunchTemplate", writes, parseTemplateRef, deleteLaunchTemplate),
		queryOp("DeleteLaunchTemplateVersions", writes, parseDeleteVersions, deleteLaunchTemplateVersions),
		queryOp("DescribeLaunchTemplates", reads, parseDescribeTemplates, describeLaunchTemplates),
		queryOp("DescribeLaunchTemplateVersions", reads, parseDescribeVersions, describeLaunchTemplateVersions),
		queryOp("CreateTags", writes, parseCreateTags, createTags),
		queryOp("DeleteTags", writes, parseDeleteTags, deleteTags),
		queryOp("DescribeTags", reads, parseDescribeTags, describeTags),
		queryOp("DescribeInstances", reads, parseDescribeInstances, describeInstances),
		queryOp("TerminateInstances", writes, parseTerminateInstances, terminateInstances),
		queryOp("ModifyInstanceMetadataDefaults", writes, parseModifyMetadataDefaults, modifyInstanceMetadataDefaults),
		queryOp("GetInstanceMetadataDefaults", reads, func(*params) struct{} { return struct{}{} }, getInstanceMetadataDefaults),
		queryOp("DescribeImages", reads, parseDescribeImages, describeImages),
		queryOp("DescribeVpcs", reads, parseDescribeVpcs, describeVpcs),
		queryOp("DescribeSubnets", reads, parseDescribeSubnets, describeSubnets),
		queryOp("DescribeSecurityGroups", reads, parseDescribeSecurityGroups, describeSecurityGroups),
		queryOp("CreateVpc", writes, parseCreateVpc, createVpc),
		queryOp("CreateSubnet", writes, parseCreateSubnet, createSubnet),
		queryOp("CreateSecurityGroup", writes, parseCreateSecurityGroup, createSecurityGroup),
		queryOp("ImportKeyPair", writes, parseImportKeyPair, importKeyPair),
		queryOp("DescribeKeyPairs", reads, parseDescribeKeyPairs, describeKeyPairs),
		queryOp("DeleteKeyPair", writes, parseDeleteKeyPair, deleteKeyPair),
		queryOp("DescribeAvailabilityZones", reads, parseDescribeZones, describeAvailabilityZones),
		queryOp("DescribeInstanceTypes", reads, parseDescribeInstanceTypes, describeInstanceTypes),
		queryOp("DescribeInstanceTypeOfferings", reads, parseDescribeOfferings, describeInstanceTypeOfferings),
	)
	return sv
}

// seedEC2 fills EC2's part of a new region.
func seedEC2(r *region) {
	r.EC2.TemplateNames = map[string]string{}
	seedNetwork(r)
	seedImages(r)
}
