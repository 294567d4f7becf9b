package iampolicy

import (
	"slices"
	"strings"
)

// rule allows calls on some resources under conditions. The name of a rule is the Sid of its statement.
type rule struct {
	sid string
	// in lists the policies that have the rule.
	in []Access
	// on returns the resources. If there are no resources, the rule is left out.
	on   func(Scope) []string
	when func(Scope) Condition
}

const (
	ownerTag    = "aws:ResourceTag/weir.dev/owner"
	newOwnerTag = "aws:RequestTag/weir.dev/owner"
)

var (
	reading = []Access{Plan, Apply}
	writing = []Access{Apply}
)

func equals(key string, values ...string) Condition {
	return Condition{"StringEquals": {key: values}}
}

// owned is the condition that a resource has the instance's tag. made is the condition that it gets the tag
// at creation.
// Assumed of AWS: tags-of-resources.
func owned(s Scope) Condition { return equals(ownerTag, s.Instance) }
func made(s Scope) Condition  { return equals(newOwnerTag, s.Instance) }

// unowned is the condition that a resource gets the instance's tag and has no owner's tag.
func unowned(s Scope) Condition {
	c := made(s)
	c["Null"] = map[string][]string{ownerTag: {"true"}}
	return c
}

// taken is the condition that a resource gets the instance's tag and has the previous owner's.
func taken(s Scope) Condition {
	return Condition{"StringEquals": {newOwnerTag: {s.Instance}, ownerTag: {s.From}}}
}

func inRegions(s Scope) Condition { return equals("aws:RequestedRegion", s.Regions...) }

func everything(Scope) []string { return []string{"*"} }

// regional returns resources of a service in each region.
func regional(service string, names ...string) func(Scope) []string {
	return func(s Scope) (out []string) {
		for _, r := range s.Regions {
			for _, n := range names {
				out = append(out, s.arn(service, r, n))
			}
		}
		return out
	}
}

func (s Scope) arn(service, region, name string) string {
	return strings.Join([]string{"arn", s.Partition, service, region, s.Account, name}, ":")
}

var (
	templates  = regional("ec2", "launch-template/*")
	groups     = regional("autoscaling", "autoScalingGroup:*:autoScalingGroupName/*")
	clusters   = regional("eks", "cluster/*")
	nodegroups = regional("eks", "nodegroup/*/*/*")
	launched   = regional("ec2", "instance/*", "volume/*", "network-interface/*", "spot-instances-request/*")
)

// all returns the resources of several functions together.
func all(lists ...func(Scope) []string) func(Scope) []string {
	return func(s Scope) (out []string) {
		for _, of := range lists {
			out = append(out, of(s)...)
		}
		return out
	}
}

// where applies a rule only to scopes that satisfy a condition.
func where(is func(Scope) bool, on func(Scope) []string) func(Scope) []string {
	return func(s Scope) []string {
		if !is(s) {
			return nil
		}
		return on(s)
	}
}

func adopts(s Scope) bool { return s.Adopt }
func takes(s Scope) bool  { return s.From != "" }

// The rules for reading. For most calls of readAll and listParameters, AWS has no permissions for single
// resources, so they are one statement. The other calls in it read the state of keys and alarms, and the
// values of quotas. Statements of their own would make the policy much longer.
var (
	readAll      = rule{"ReadInRegions", reading, everything, inRegions}
	readClusters = rule{"ReadClusters", reading, regional("eks", "cluster/*", "nodegroup/*/*/*"), nil}
	readRoles    = rule{"ReadNodeRoles", reading, func(s Scope) []string {
		return append(nodeRoles(s), s.serviceRole("eks-nodegroup.amazonaws.com")+"/*", s.arn("iam", "", "instance-profile/*"))
	}, nil}
	// AWS shows composite alarms only to callers that may read all alarms.
	// Assumed of AWS: alarms-asked-for.
	readAlarms     = rule{"ReadInRegions", reading, where(func(s Scope) bool { return s.Alarms }, everything), inRegions}
	readParameters = rule{"ReadImageParameters", reading, func(s Scope) []string {
		var out []string
		for _, r := range s.Regions {
			out = append(out, "arn:"+s.Partition+":ssm:"+r+"::parameter/aws/service/*")
			for _, p := range s.Parameters {
				out = append(out, s.arn("ssm", r, "parameter/"+strings.TrimPrefix(p, "/")))
			}
		}
		return out
	}, nil}
	readParameterTags = rule{"ReadTagsOfJoinTokens", reading, parameters, nil}
	listParameters    = rule{"ReadInRegions", reading, where(func(s Scope) bool { return len(s.SSMPrefixes) > 0 }, everything), inRegions}
	decrypt           = rule{"DecryptFilesInGit", reading, func(s Scope) []string { return s.KMSKeys }, nil}
)

// The rules for creations and changes.
var (
	// Assumed of AWS: group-tags-asked-for.
	makeOwn = rule{"MakeWithOwner", writing, all(templates, groups, clusters), made}
	newTags = rule{"TagWhatIsMade", writing, all(templates, launched), func(Scope) Condition {
		return equals("ec2:CreateAction", "CreateLaunchTemplate", "RunInstances")
	}}
	ownTemplates = rule{"ChangeOwnTemplates", writing, templates, owned}

	// AWS does not document whether the key is set when Auto Scaling and EKS check this action, so the
	// condition is also met without it. That grants little more: a caller that may make launch templates and
	// groups can launch anything anyway.
	// Assumed of AWS: launch-template-condition.
	launch = rule{"LaunchFromTemplates", writing, everything, func(s Scope) Condition {
		return Condition{"ArnLikeIfExists": {"ec2:LaunchTemplate": templates(s)}}
	}}

	ownGroups          = rule{"ChangeOwnGroups", writing, groups, owned}
	drainGroups        = rule{"ChangeOwnGroups", writing, where(func(s Scope) bool { return s.Drains }, groups), owned}
	groupsOfNodegroups = rule{"TagGroupsOfNodegroups", writing, groups, func(s Scope) Condition {
		c := unowned(s)
		c["Null"]["aws:ResourceTag/eks:nodegroup-name"] = []string{"false"}
		return c
	}}

	// EKS requires the permission to tag for a creation of a nodegroup with tags, and no condition
	// distinguishes creation from later tagging.
	// Assumed of AWS: nodegroup-tags-asked-for.
	newNodegroupTags = rule{"TagNewNodegroups", writing, nodegroups, unowned}
	ownNodegroups    = rule{"ChangeOwnNodegroups", writing, nodegroups, owned}

	ownParameters = rule{"KeepJoinTokens", writing, parameters, nil}

	adoptTemplates = rule{"AdoptTemplatesWithoutOwner", writing, where(adopts, templates), unowned}
	adoptGroups    = rule{"AdoptGroupsWithoutOwner", writing, where(adopts, groups), unowned}
	takeTemplates  = rule{"TakeOverTemplates", writing, where(takes, templates), taken}
	takeGroups     = rule{"TakeOverGroups", writing, where(takes, groups), taken}
	takeNodegroups = rule{"TakeOverNodegroups", writing, where(takes, nodegroups), taken}
)

// The rules about roles. passRoles results in a statement for each set of services.
var (
	passRoles = rule{"PassRoles", writing, nil, nil}
	// The condition restricts the services. Repeating their names in the resources would exceed IAM's size
	// limit.
	serviceRoles = rule{"MakeServiceRoles", writing, func(s Scope) []string { return []string{s.serviceRole("*")} }, func(Scope) Condition { return equals("iam:AWSServiceName", linkedServices...) }}
	assume       = rule{AssumedRoles, []Access{Daemon}, func(s Scope) []string { return s.AssumeRoles }, nil}

	// shareTable belongs to no target: the daemon's own identity uses the table with other members.
	shareTable = rule{SharedTable, []Access{Daemon}, where(func(s Scope) bool { return s.Table != "" }, func(s Scope) []string { return []string{s.Table} }), nil}
	// shareKeys covers only keys with this instance in the encryption context.
	// Assumed of AWS: encryption-context-key.
	shareKeys = rule{SharedKeys, []Access{Daemon}, func(s Scope) []string { return s.SharedKeys }, func(s Scope) Condition {
		return equals("kms:EncryptionContext:weir.dev/instance", s.Instance)
	}}
)

// The Sids of the statements for a daemon's own identity: roles that it assumes, the shared table, and KMS
// keys for shared keys.
const (
	AssumedRoles = "AssumeRolesOfTargets"
	SharedTable  = "ShareTheTable"
	SharedKeys   = "EncryptSharedKeys"
)

// tableActions lists a daemon's actions on the shared table.
var tableActions = []string{
	"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:DescribeTable", "dynamodb:GetItem",
	"dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem",
}

var linkedServices = []string{AutoScaling, "eks-nodegroup.amazonaws.com", "spot.amazonaws.com"}

func (s Scope) serviceRole(service string) string {
	return s.arn("iam", "", "role/aws-service-role/"+service)
}

// nodeRoles returns the roles of nodegroups. EKS reads them, and its own roles, with the permissions of the
// caller that makes a nodegroup. If no role is known, it returns a pattern for any role.
func nodeRoles(s Scope) (out []string) {
	for _, p := range s.PassRoles {
		if strings.Contains(p.ARN, ":role/") && slices.Contains(p.Services, EKS) {
			out = append(out, p.ARN)
		}
	}
	if len(out) == 0 {
		return []string{s.arn("iam", "", "role/*")}
	}
	return out
}

func parameters(s Scope) (out []string) {
	for _, r := range s.Regions {
		for _, p := range s.SSMPrefixes {
			out = append(out, s.arn("ssm", r, "parameter/"+strings.Trim(p, "/")+"/*"))
		}
	}
	return out
}
