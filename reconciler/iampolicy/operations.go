package iampolicy

// operation is a call and the rules that allow it.
type operation struct {
	action string
	rules  []rule
}

// operations lists all calls that weir makes. A call that plans do not make has no reading rule.
var operations = []operation{
	{"autoscaling:AttachTrafficSources", are(ownGroups)},
	{"autoscaling:CancelInstanceRefresh", are(ownGroups)},
	{"autoscaling:CompleteLifecycleAction", are(drainGroups)},
	{"autoscaling:CreateAutoScalingGroup", are(makeOwn)},
	{"autoscaling:CreateOrUpdateTags", are(ownGroups, groupsOfNodegroups, adoptGroups, takeGroups)},
	{"autoscaling:DeleteAutoScalingGroup", are(ownGroups)},
	{"autoscaling:DeleteLifecycleHook", are(ownGroups)},
	{"autoscaling:DeleteTags", are(ownGroups)},
	{"autoscaling:DeleteWarmPool", are(ownGroups)},
	{"autoscaling:DescribeAutoScalingGroups", are(readAll)},
	{"autoscaling:DescribeInstanceRefreshes", are(readAll)},
	{"autoscaling:DescribeLaunchConfigurations", are(readAll)},
	{"autoscaling:DescribeLifecycleHooks", are(readAll)},
	{"autoscaling:DescribeScalingActivities", are(readAll)},
	{"autoscaling:DetachTrafficSources", are(ownGroups)},
	{"autoscaling:DisableMetricsCollection", are(ownGroups)},
	{"autoscaling:EnableMetricsCollection", are(ownGroups)},
	{"autoscaling:PutLifecycleHook", are(ownGroups)},
	{"autoscaling:PutWarmPool", are(ownGroups)},
	{"autoscaling:RecordLifecycleActionHeartbeat", are(drainGroups)},
	{"autoscaling:ResumeProcesses", are(ownGroups)},
	{"autoscaling:RollbackInstanceRefresh", are(ownGroups)},
	{"autoscaling:StartInstanceRefresh", are(ownGroups)},
	{"autoscaling:SuspendProcesses", are(ownGroups)},
	{"autoscaling:UpdateAutoScalingGroup", are(ownGroups)},

	{"cloudwatch:DescribeAlarms", are(readAlarms)},

	{"ec2:CreateLaunchTemplate", are(makeOwn)},
	{"ec2:CreateLaunchTemplateVersion", are(ownTemplates)},
	{"ec2:CreateTags", are(newTags, ownTemplates, adoptTemplates, takeTemplates)},
	{"ec2:DeleteLaunchTemplate", are(ownTemplates)},
	{"ec2:DeleteLaunchTemplateVersions", are(ownTemplates)},
	{"ec2:DeleteTags", are(ownTemplates)},
	{"ec2:DescribeCapacityReservations", are(readAll)},
	{"ec2:DescribeImages", are(readAll)},
	{"ec2:DescribeInstanceTypeOfferings", are(readAll)},
	{"ec2:DescribeInstanceTypes", are(readAll)},
	{"ec2:DescribeInstances", are(readAll)},
	{"ec2:DescribeKeyPairs", are(readAll)},
	{"ec2:DescribeLaunchTemplateVersions", are(readAll)},
	{"ec2:DescribeLaunchTemplates", are(readAll)},
	{"ec2:DescribePlacementGroups", are(readAll)},
	{"ec2:DescribeSnapshots", are(readAll)},
	{"ec2:DescribeSecurityGroups", are(readAll)},
	{"ec2:DescribeSubnets", are(readAll)},
	{"ec2:DescribeVpcs", are(readAll)},
	{"ec2:ModifyLaunchTemplate", are(ownTemplates)},
	// Called only as a dry run. Auto Scaling and EKS check whether the caller that passes a launch template
	// may launch from it, so the role that applies needs this permission anyway.
	{"ec2:RunInstances", are(launch)},

	{"eks:CreateNodegroup", are(makeOwn)},
	{"eks:DeleteNodegroup", are(ownNodegroups)},
	{"eks:DescribeCluster", are(readClusters)},
	{"eks:DescribeNodegroup", are(readClusters)},
	{"eks:DescribeUpdate", are(readClusters)},
	{"eks:ListClusters", are(readAll)},
	{"eks:ListNodegroups", are(readClusters)},
	{"eks:ListUpdates", are(readClusters)},
	{"eks:TagResource", are(ownNodegroups, newNodegroupTags, takeNodegroups)},
	{"eks:UntagResource", are(ownNodegroups)},
	{"eks:UpdateNodegroupConfig", are(ownNodegroups)},
	{"eks:UpdateNodegroupVersion", are(ownNodegroups)},

	{"elasticloadbalancing:DescribeTargetGroups", are(readAll)},

	{"iam:GetInstanceProfile", are(readRoles)},
	{"iam:GetRole", are(readRoles)},
	// Assumed of AWS: node-role-policies.
	// EKS checks the required policies of a node role with the permissions of the caller that makes a
	// nodegroup.
	{"iam:ListAttachedRolePolicies", are(readRoles)},
	{"kms:Decrypt", are(decrypt, shareKeys)},
	{"kms:DescribeKey", are(readAll)},
	{"kms:Encrypt", are(shareKeys)},

	{"servicequotas:GetServiceQuota", are(readAll)},

	{"ssm:AddTagsToResource", are(ownParameters)},
	{"ssm:DeleteParameter", are(ownParameters)},
	{"ssm:DescribeParameters", are(listParameters)},
	{"ssm:GetParameters", are(readParameters)},
	{"ssm:ListTagsForResource", are(readParameterTags)},
	{"ssm:PutParameter", are(ownParameters)},

	{"sts:AssumeRole", are(assume)},
}

func are(rules ...rule) []rule { return rules }

// behalf lists actions that weir never calls. AWS checks them when weir calls certain writing actions.
var behalf = []struct {
	action string
	rule   rule
	why    string
}{
	{"ec2:CreateTags", newTags, "a launch template that tags what it launches may be used by who may tag at launch"},
	{"iam:PassRole", passRoles, "of instance profiles, node roles and lifecycle hooks"},
	{"iam:CreateServiceLinkedRole", serviceRoles, "the first group, nodegroup and spot instance of an account make the service's role"},
}

// needless lists calls that need no permission.
var needless = map[string]string{
	"sts:GetCallerIdentity": "AWS always allows it",
}

// Calls returns the actions that weir calls.
func Calls() (out []string) {
	for _, o := range operations {
		out = append(out, o.action)
	}
	return out
}

// Needless returns the calls that need no permission, with the reason.
func Needless() map[string]string { return needless }
