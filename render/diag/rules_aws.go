package diag

// awsRules are those of checks that compare manifests with what AWS documents.
var awsRules = []rule{
	{"another-vpc", "w", "a pool looks for subnets in another VPC than its cluster's", "Name the cluster's VPC, or leave the filter out."},
	{"architecture-mismatch", "ew", "an instance type has another architecture than the pool's image", "Choose an image or an instance type of the other architecture, as the message says."},
	{"bad-zone", "e", "a name can be no availability zone", "Write the name of a zone, such as eu-west-1a: not a region, and not the id of a zone."},
	{"bootstrap-image-mismatch", "w", "a pool's image does not understand its bootstrap configuration", "Use a NodeadmConfig with Amazon Linux 2023 and an EKSConfig with Amazon Linux 2."},
	{"capacity-block-nodegroup", "w", "a managed pool is to launch from a capacity block, which its kind cannot say to EKS", "Use an AWSMachinePool."},
	{"cluster-not-in-render", "w", "a pool's Cluster is not in the render, though other clusters are", "Correct spec.clusterName, or add the Cluster to the resources."},
	{"edge-zone", "w", "a zone is a local or wavelength zone, where pools are not placed by zone", "Write the subnets themselves."},
	{"empty-filter", "w", "a filter has no values", "Write what it must match, or remove the filter."},
	{"empty-policy", "w", "a mixed instances policy says nothing", "Write overrides or instancesDistribution, or remove the policy."},
	{"mixed-architectures", "e", "the instance types of a pool have several architectures", "Make a pool for each architecture."},
	{"not-launched", "i", "the launch template's instance type is not among the overrides that take its place", "Add it to the overrides if it is meant to be one of them."},
	{"reserved-label", "w", "the key of a label or taint has a prefix that EKS keeps for itself", "Choose another key, or have the kubelet set the label."},
	{"reserved-hook", "e", "a lifecycle hook has the name of one of EKS's own", "Choose another name."},
	{"template-for-architecture", "e", "a pool brings launch templates for architectures, and none for that of an instance type", "Name one for that architecture, or another instance type."},
	{"too-many-hooks", "e", "a pool has more lifecycle hooks than Auto Scaling takes", "Remove some of them."},
	{"too-many-overrides", "e", "a mixed instances policy has more instance types than Auto Scaling takes", "Remove some of them, or divide the pool."},
	{"too-many-taints", "e", "a pool has more taints than EKS takes", "Remove some of them."},
	{"unknown-filter", "w", "a filter has a name that EC2 does not document", "Correct its spelling; a tag is named as tag:KEY."},
	{"unknown-instance-type", "w", "an instance type is not one that weir knows", "Correct its spelling; if AWS has added it since this weir was made, ignore the warning."},
	{"user-data-not-toml", "e", "Bottlerocket would get user data that is not TOML", "Give the TOML in a Secret that bootstrap.dataSecretName names."},
	{"zone-of-another-region", "e", "a zone is in another region than the cluster or the other zones", "Write zones of one region, the cluster's."},
	{"zone-without-subnet", "w", "the cluster's manifests list no subnet in a zone", "Choose one of the zones that the message names, or add the subnet."},
	{"zones-not-used", "i", "zones are written beside subnets, which decide", "Remove the zones, or the subnets."},
}
