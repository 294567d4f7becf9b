package nodegroup

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
)

// issueHints maps EKS's codes for a nodegroup's health and for a failed update to advice. Sources
// are Issue and ErrorDetail in EKS's API reference, and "Troubleshoot problems with Amazon EKS
// clusters and nodes" in its user guide.
var issueHints = map[string]string{
	"AccessDenied":                             "let the node role and EKS's service-linked role AWSServiceRoleForAmazonEKSNodegroup do what the message names, and map the node role in the cluster (an access entry of type EC2_LINUX, or aws-auth)",
	"AdmissionRequestDenied":                   "an admission webhook of the cluster refused the request: let it through",
	"AmiIdNotFound":                            "the image of the launch template is gone or is not shared with the account: name another one",
	"AsgInstanceLaunchFailures":                "EC2 could not launch instances: the message says why, which is usually missing capacity for the instance type in the zone, a quota, or a KMS key that the Auto Scaling role may not use",
	"AutoScalingGroupInstanceRefreshActive":    "somebody started an instance refresh on the group behind the nodegroup: let it end, or cancel it",
	"AutoScalingGroupInvalidConfiguration":     "somebody changed the group behind the nodegroup: put its launch template and its policies back, or let weir replace the nodegroup",
	"AutoScalingGroupNotFound":                 "somebody deleted the group behind the nodegroup: create one with the same settings, or delete the nodegroup so that weir creates it again",
	"AutoScalingGroupOptInRequired":            "the account is not subscribed to Amazon EC2 Auto Scaling in the region",
	"AutoScalingGroupRateLimitExceeded":        "requests to Auto Scaling are throttled in the account: EKS tries again",
	"ClusterUnreachable":                       "EKS or the nodes cannot reach the cluster's API server: look at its endpoint access, security groups and webhooks",
	"ConfigurationConflict":                    "an object in the cluster conflicts with the one that EKS would write: the message names it",
	"Ec2InstanceTypeDoesNotExist":              "the region or zone has no such instance type: name another one",
	"Ec2LaunchTemplateDeletionFailure":         "EKS may not delete its own launch template: look at the permissions of its service-linked role",
	"Ec2LaunchTemplateInvalidConfiguration":    "the launch template has something that EKS does not accept: the message names it",
	"Ec2LaunchTemplateMaxLimitExceeded":        "the account has as many launch templates as its quota allows: delete some, or request more",
	"Ec2LaunchTemplateNotFound":                "somebody deleted the launch template that EKS made for the nodegroup: let weir replace the nodegroup",
	"Ec2LaunchTemplateVersionMaxLimitExceeded": "the launch template that EKS made has as many versions as the quota allows: delete old ones",
	"Ec2LaunchTemplateVersionMismatch":         "somebody set another version of EKS's launch template on the group behind the nodegroup: put the one back that EKS made",
	"Ec2SecurityGroupDeletionFailure":          "the security group for remote access is still in use: remove what refers to it",
	"Ec2SecurityGroupNotFound":                 "the cluster's security group is gone: create the cluster again",
	"Ec2SubnetInvalidConfiguration":            "a subnet does not give nodes a public address although they need one: turn auto-assignment on for it, or use private subnets with a route to the Internet",
	"Ec2SubnetListTooLong":                     "EKS allows fewer subnets for a nodegroup: name fewer",
	"Ec2SubnetMissingIpv6Assignment":           "the cluster has IPv6 and a subnet does not assign such addresses: turn that on for it",
	"Ec2SubnetNotFound":                        "a subnet of the nodegroup is gone: name others, which needs a replacement",
	"EniLimitReached":                          "the account has as many network interfaces as its quota allows: remove some, or request more",
	"IamInstanceProfileNotFound":               "somebody deleted the instance profile that EKS created: create one with the same name and the node role",
	"IamLimitExceeded":                         "the account has as many roles or instance profiles as its quota allows: delete some, or request more",
	"IamNodeRoleNotFound":                      "the node role is gone: create it again with the same name",
	"IamThrottling":                            "requests to IAM are throttled in the account: EKS tries again",
	"InstanceLimitExceeded":                    "the account runs as many instances of the type as its quota allows: request more, or name another type",
	"InsufficientFreeAddresses":                "a subnet has too few free addresses: free some, or name further subnets",
	"InsufficientNumberOfReplicas":             "a component has too few replicas to update: scale it up",
	"InternalFailure":                          "EKS failed: it tries again",
	"IpNotAvailable":                           "a subnet has too few free addresses: free some, or name further subnets",
	"K8sResourceNotFound":                      "an object that EKS needs is not in the cluster: the message names it",
	"KubernetesLabelInvalid":                   "a label of the nodegroup is not valid in Kubernetes: change the pool's labels",
	"LimitExceeded":                            "a quota of the account is reached: the message names it",
	"NodeCreationFailure":                      "instances start and do not join the cluster: look at the bootstrap data, the node role's policies, the route to the cluster's endpoint, and the log of cloud-init on one of them",
	"NodeTerminationFailure":                   "EKS could not end an instance: look at the terminating lifecycle hooks and at scale-in protection",
	"OperationNotPermitted":                    "EKS's service-linked role may not do what the message names: put its policies back",
	"PodEvictionFailure":                       "a pod disruption budget keeps pods from being moved: loosen it, or set spec.nodegroup.force of the pool's PoolOptions, which terminates them anyway",
	"SecurityGroupNotFound":                    "a security group is gone: name another one",
	"SourceEc2LaunchTemplateNotFound":          "the launch template of the pool was deleted, and a nodegroup cannot take another one: let weir replace the nodegroup",
	"SubnetNotFound":                           "a subnet is gone: name others, which needs a replacement",
	"UnsupportedAddonModification":             "an add-on does not take the change: the message names it",
	"VpcIdNotFound":                            "the cluster's VPC is gone",
}

// IssueHint returns advice about an issue, "" for an unknown code, including EKS's own code
// Unknown.
func IssueHint(i observed.HealthIssue) string {
	return cmp.Or(launch.Hint(i.Message), issueHints[i.Code])
}

// healthHint returns the hint for the first issue that has one.
func healthHint(issues []observed.HealthIssue) string {
	for _, i := range issues {
		if hint := IssueHint(i); hint != "" {
			return hint
		}
	}
	return ""
}

// healthCause identifies the cause of a nodegroup's health issues, regardless of the machines that
// EKS names.
func healthCause(issues []observed.HealthIssue) string {
	var out []string
	for _, i := range issues {
		out = append(out, i.Code+" "+launch.CauseOf(i.Message))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "; ")
}
