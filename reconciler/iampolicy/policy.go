// Package iampolicy makes the minimal IAM policies for weir: for the role that applies, for the
// role that only plans, and for the daemon's own identity, which assumes them and uses the table
// and the keys that several daemons share.
//
// Every call that weir makes for a target stands in one table, operations, with the rules
// under which it is allowed; the statements follow from it. The Service Authorization
// Reference of AWS says which resources and conditions an action takes.
package iampolicy

import (
	"encoding/json"
	"slices"
	"unicode"

	"github.com/weir-gitops/weir/reconciler/partition"
)

// Version is that of the policy language.
const Version = "2012-10-17"

// The most characters that a policy may have, white space aside: of a managed
// policy, and of all inline policies of a role together.
const (
	managedLimit = 6144
	inlineLimit  = 10240
)

// Document is a policy as IAM takes it.
type Document struct {
	Version   string      `json:"Version"`
	Statement []Statement `json:"Statement"`
}

// Statement allows actions. Sid says for what, and where AWS knows no permissions
// for single resources.
type Statement struct {
	Sid       string            `json:"Sid"`
	Effect    string            `json:"Effect"`
	Principal map[string]string `json:"Principal,omitempty"`
	Action    []string          `json:"Action"`
	Resource  []string          `json:"Resource,omitempty"`
	Condition Condition         `json:"Condition,omitempty"`
}

// Condition holds the conditions of a statement, by operator and key; of several values
// one.
type Condition map[string]map[string][]string

// Size counts a document's characters as IAM does.
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

// allow is a statement that allows actions.
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
	// Plan reads, for plans of pull requests and for looking.
	Plan Access = "plan"
	// Apply reads and writes.
	Apply Access = "apply"
	// Daemon is for the identity under which the daemon runs, where targets have roles or
	// several daemons share a table or keys.
	Daemon Access = "daemon"
)

// Scope bounds a policy: one account, as far as one role reaches it.
type Scope struct {
	// Partition is the id of one of AWS's partitions, such as aws.
	Partition string
	// Account has twelve digits.
	Account string
	// Regions are those of the targets.
	Regions []string
	// Instance is the value of the tag weir.dev/owner.
	Instance string
	// PassRoles are the roles that machines get and hooks use.
	PassRoles []PassRole
	// KMSKeys are ARNs of keys that decrypt SOPS files.
	KMSKeys []string
	// SSMPrefixes holds the prefixes of the parameters that weir writes, such as /weir.
	SSMPrefixes []string
	// Parameters are named in manifests as the source of an AMI, beside AWS's own.
	Parameters []string
	// Alarms says that refreshes name alarms of CloudWatch.
	Alarms bool
	// Drains says that weir drains machines of groups.
	Drains bool
	// Adopt allows to put weir's tags on what has no owner yet.
	Adopt bool
	// From is the owner from whom resources are taken over, empty for none.
	From string
	// AssumeRoles are the roles that the daemon takes.
	AssumeRoles []string
	// Table is the ARN of the table that the daemons of an instance share, empty for none.
	Table string
	// SharedKeys are ARNs of keys of KMS that encrypt the keys that the daemons of the
	// instance share.
	SharedKeys []string
}

// PassRole is a role that AWS is to use.
type PassRole struct {
	ARN string `json:"arn"`
	// Services may be given it, such as ec2.amazonaws.com.
	Services []string `json:"services"`
}

// The services that are given roles.
const (
	EC2         = "ec2.amazonaws.com"
	EKS         = "eks.amazonaws.com"
	AutoScaling = "autoscaling.amazonaws.com"
)

// ec2OfPartition are the partitions in which EC2's principal ends in their DNS suffix. In all
// others, aws-eusc among them, it is ec2.amazonaws.com.
var ec2OfPartition = []string{"aws-cn", "aws-iso", "aws-iso-b"}

// serviceIn is a service's principal as a partition names it.
func serviceIn(id, service string) string {
	if service != EC2 || !slices.Contains(ec2OfPartition, id) {
		return service
	}
	p, _ := partition.Named(id)
	return "ec2." + p.DNSSuffix
}
