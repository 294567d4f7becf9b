package iampolicy

import (
	"slices"
	"strings"
)

// rule says under which conditions, and on which resources, calls are allowed. The name of a rule
// is the Sid of its statement.
type rule struct {
	sid string
	// for says which policies have it.
	in []Access
	// on returns the resources; none leave the rule out.
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

// owned are resources that carry the instance's tag already, made those that get it at
// creation.
// Assumed of AWS: tags-of-resources.
func owned(s Scope) Condition { return equals(ownerTag, s.Instance) }
func made(s Scope) Condition  { return equals(newOwnerTag, s.Instance) }

// unowned gets the instance's tag and carries no owner's.
func unowned(s Scope) Condition {
	c := made(s)
	c["Null"] = map[string][]string{ownerTag: {"true"}}
	return c
}

// taken gets the instance's tag and carries the previous owner's.
func taken(s Scope) Condition {
	return Condition{"StringEquals": {newOwnerTag: {s.Instance}, ownerTag: {s.From}}}
}

func inRegions(s Scope) Condition { return equals("aws:RequestedRegion", s.Regions...) }

func everything(Scope) []string { return []string{"*"} }

// regional are resources of a service in each region.
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

// all are the resources of several.
func all(lists ...func(Scope) []string) func(Scope) []string {
	return func(s Scope) (out []string) {
		for _, of := range lists {
			out = append(out, of(s)...)
		}
		return out
	}
}

// where limits a rule to scopes that satisfy a condition.
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

// The rules of reading. AWS knows no permissions for single resources for most calls of
// readAll and listParameters, which are one statement; the remaining ones read the state of
// keys and alarms and the values of quotas, and statements of their own would be as long as the rest.
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

// The rules of creations and changes.
var (
	// Assumed of AWS: group-tags-asked-for.
	makeOwn = rule{"MakeWithOwner", writing, all(templates, groups, clusters), made}
	newTags = rule{"TagWhatIsMade", writing, all(templates, launched), func(Scope) Condition {
		return equals("ec2:CreateAction", "CreateLaunchTemplate", "RunInstances")
	}}
	ownTemplates = rule{"ChangeOwnTemplates", writing, templates, owned}

	// No document says whether the key is set where Auto Scaling and EKS ask, so the
	// condition also holds without it. It gives away little: who may make launch
	// templates and groups launches what they like.
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

// The rules about roles. passRoles makes a statement for each set of services.
var (
	passRoles = rule{"PassRoles", writing, nil, nil}
	// The condition says for which services; their names again in the resources would take
	// the characters that IAM leaves a policy.
	serviceRoles = rule{"MakeServiceRoles", writing, func(s Scope) []string { return []string{s.serviceRole("*")} }, func(Scope) Condition { return equals("iam:AWSServiceName", linkedServices...) }}
	assume       = rule{AssumedRoles, []Access{Daemon}, func(s Scope) []string { return s.AssumeRoles }, nil}

	// shareTable is of no target: the daemon's own identity meets other members there.
	shareTable = rule{SharedTable, []Access{Daemon}, where(func(s Scope) bool { return s.Table != "" }, func(s Scope) []string { return []string{s.Table} }), nil}
	// shareKeys is for what is encrypted about this instance alone.
	// Assumed of AWS: encryption-context-key.
	shareKeys = rule{SharedKeys, []Access{Daemon}, func(s Scope) []string { return s.SharedKeys }, func(s Scope) Condition {
		return equals("kms:EncryptionContext:weir.dev/instance", s.Instance)
	}}
)

// The Sids of the statements of a daemon's own identity: about the roles that it takes, and
// about the table and the keys that encrypt theirs, which daemons share.
const (
	AssumedRoles = "AssumeRolesOfTargets"
	SharedTable  = "ShareTheTable"
	SharedKeys   = "EncryptSharedKeys"
)

// tableActions lists a daemon's actions on the table that it shares.
var tableActions = []string{
	"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:DescribeTable", "dynamodb:GetItem",
	"dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem",
}

var linkedServices = []string{AutoScaling, "eks-nodegroup.amazonaws.com", "spot.amazonaws.com"}

func (s Scope) serviceRole(service string) string {
	return s.arn("iam", "", "role/aws-service-role/"+service)
}

// nodeRoles returns the roles that nodegroups get. EKS reads them, and its own roles, with the
// permissions of the caller that makes a nodegroup. If no role is known, it may be any.
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
