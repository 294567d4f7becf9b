// Package iampolicy makes the minimal IAM policies for weir: for the role that applies, for the
// role that only plans, and for the daemon's own identity, which assumes them and uses the table
// and the keys that several daemons share.
//
// One table, operations, lists every call that weir makes for a target, with the rules that allow it. The
// statements are derived from it. AWS's Service Authorization Reference documents the resources and
// conditions of each action.
package iampolicy

import (
	"encoding/json"
	"slices"
	"unicode"

	"github.com/weir-gitops/weir/reconciler/partition"
)

// Version is the version of the policy language.
const Version = "2012-10-17"

// The maximum number of characters of a policy, without white space: of a managed policy, and of all inline
// policies of a role together.
const (
	managedLimit = 6144
	inlineLimit  = 10240
)

// Document is a policy in IAM's format.
type Document struct {
	Version   string      `json:"Version"`
	Statement []Statement `json:"Statement"`
}

// Statement allows actions. Its Sid names the purpose, and shows if AWS has no permissions for single
// resources.
type Statement struct {
	Sid       string            `json:"Sid"`
	Effect    string            `json:"Effect"`
	Principal map[string]string `json:"Principal,omitempty"`
	Action    []string          `json:"Action"`
	Resource  []string          `json:"Resource,omitempty"`
	Condition Condition         `json:"Condition,omitempty"`
}

// Condition contains the conditions of a statement, by operator and key. One of several values must match.
type Condition map[string]map[string][]string

// Size returns the number of characters that IAM counts.
func (d Document) Size() int {
	text, err := json.Marshal(d)
	if err != nil {
		return 0 // strings and lists always encode
	}
	n := 0
	for _, r := range string(text) {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

// allow returns a statement that allows actions.
func allow(sid string, actions, resources []string, c Condition) Statement {
	slices.Sort(actions)
	resources = slices.Clone(resources)
	slices.Sort(resources)
	return Statement{Sid: sid, Effect: "Allow", Action: slices.Compact(actions), Resource: slices.Compact(resources), Condition: c}
}

// Access is the purpose of a policy.
type Access string

// The policies.
const (
	// Plan reads, for plans of pull requests and for viewing.
	Plan Access = "plan"
	// Apply reads and writes.
	Apply Access = "apply"
	// Daemon is for the daemon's own identity, if targets have roles, or several daemons share a table or
	// keys.
	Daemon Access = "daemon"
)

// Scope defines the resources that a policy covers: one account, as far as one role is used for it.
type Scope struct {
	// Partition is the id of one of AWS's partitions, such as aws.
	Partition string
	// Account has twelve digits.
	Account string
	// Regions lists the regions of the targets.
	Regions []string
	// Instance is the value of the tag weir.dev/owner.
	Instance string
	// PassRoles lists the roles that machines get and hooks use.
	PassRoles []PassRole
	// KMSKeys lists ARNs of keys that decrypt SOPS files.
	KMSKeys []string
	// SSMPrefixes lists the prefixes of the parameters that weir writes, such as /weir.
	SSMPrefixes []string
	// Parameters lists parameters in manifests that are the source of an AMI, besides AWS's own.
	Parameters []string
	// Alarms says that refreshes name CloudWatch alarms.
	Alarms bool
	// Drains says that weir drains machines of groups.
	Drains bool
	// Adopt allows weir to put its tags on resources without an owner.
	Adopt bool
	// From is the previous owner of resources that weir may adopt, or empty.
	From string
	// AssumeRoles lists the roles that the daemon assumes.
	AssumeRoles []string
	// Table is the ARN of the table that the daemons of an instance share, or empty.
	Table string
	// SharedKeys lists ARNs of KMS keys that encrypt the keys that the daemons of the instance share.
	SharedKeys []string
}

// PassRole is a role that weir passes to AWS services.
type PassRole struct {
	ARN string `json:"arn"`
	// Services lists the services to which the role may be passed, such as ec2.amazonaws.com.
	Services []string `json:"services"`
}

// The services to which roles are passed.
const (
	EC2         = "ec2.amazonaws.com"
	EKS         = "eks.amazonaws.com"
	AutoScaling = "autoscaling.amazonaws.com"
)

// ec2OfPartition lists the partitions in which EC2's principal ends in their DNS suffix. In all other
// partitions, including aws-eusc, it is ec2.amazonaws.com.
var ec2OfPartition = []string{"aws-cn", "aws-iso", "aws-iso-b"}

// serviceIn returns a service's principal in a partition.
func serviceIn(id, service string) string {
	if service != EC2 || !slices.Contains(ec2OfPartition, id) {
		return service
	}
	p, _ := partition.Named(id)
	return "ec2." + p.DNSSuffix
}
