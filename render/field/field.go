// Package field has the table of pool fields that map to exactly one member of AWS's API. A field is a row of
// this table and a member of a struct in package intent. Everything else is derived from these two.
//
// Terms. Every row has a kind: the data of a launch template, an Auto Scaling group, or a nodegroup. Its
// member is the path of the value in the intent, with the JSON keys of the intent, which are AWS's names. Its
// sources are the fields of manifests that set it. They are fields of the pool's object, with names from
// Cluster API Provider AWS, or a field of PoolOptions, with AWS's name in lower camel case.
//
// A structure, map or list that AWS changes as a whole or item by item also has a Block.
//
// Rules. A row describes one field and nothing else. It has no conditions, expressions or functions. A field
// that depends on another field, on an answer of AWS, or on the order of calls needs code, and its row names
// the code in Special. Such a field still appears in the documentation, in origins and in changes. The code
// that Special names converts it.
//
// The emulator does not use this table. It imitates AWS, and would otherwise repeat the table's mistakes.
package field

import (
	"cmp"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// Kind is the AWS structure that has the member of a row.
type Kind string

// The kinds of rows.
const (
	Template  Kind = "LaunchTemplateData" // intent.TemplateData
	Group     Kind = "AutoScalingGroup"   // intent.GroupSettings
	Refresh   Kind = "RefreshPreferences" // intent.Refresh
	Nodegroup Kind = "Nodegroup"          // intent.NodegroupSettings
)

// Row describes a field.
type Row struct {
	Of Kind
	// AWS is the path of the member in AWS's spelling, with [] for each item of a list.
	AWS string
	// Member is the path of the intent's member if it differs from AWS. The first letter of a key may be
	// lower case.
	Member string
	// Pool lists the fields below the pool's spec that may set the member, the most likely first, separated
	// by |. If it is empty, PoolOptions sets the member. "-" means that neither sets it.
	Pool string

	// Limits in addition to the limits of the member's type. Fields of the pool have the limits of their own
	// schema, in package manifest.
	Required bool
	Values   string // the only valid values, separated by |
	Begins   string // prefix of the value: arn:, or the prefix of an id such as sg-
	Min, Max *int64
	Default  string // if no manifest has the field
	// Absent is the value that AWS uses if the member is absent.
	Absent string

	// By is the API call that changes the member. "" means the usual call of the kind.
	By string
	// Replaces is true if a change replaces machines or the resource that has the member.
	Replaces bool
	// Doc adds information that AWS's name does not convey.
	Doc string
	// Special names the code that converts, compares or fills in the member, and the reason.
	Special string
}

// Block describes a structure, map or list that AWS does not change member by member. The rows of its members
// have the same first name. weir changes nothing in it if the manifest does not have it.
type Block struct {
	Form Form
	// Switch is the boolean member of a structure that enables it. If it is false, the other members have no
	// effect.
	Switch string
	// Absent has the values that AWS uses for absent members of a structure, as JSON of the intent.
	Absent string
}

// Form is the way in which AWS's request changes a block.
type Form string

// Forms of blocks.
const (
	// Whole requests contain all members of the structure.
	Whole Form = "whole"
	// ByItem requests contain the items to add or change, and the items to remove.
	ByItem Form = "by item"
)

// member returns the path of the intent's member.
func (r *Row) member() string { return cmp.Or(r.Member, r.AWS) }

// OfPool reports whether the pool's own object sets the field. If not, PoolOptions does.
func (r *Row) OfPool() bool { return r.Pool != "" }

// PoolFields returns the paths below the pool's spec that may set the field.
func (r *Row) PoolFields() []string {
	if r.Pool == "" || r.Pool == "-" {
		return nil
	}
	return strings.Split(r.Pool, "|")
}

// OptionsField returns the path below the spec of PoolOptions that sets the field.
func (r *Row) OptionsField() string {
	parts := strings.Split(r.AWS, ".")
	for i, p := range parts {
		parts[i] = Key(p)
	}
	return section(r.Of) + "." + strings.Join(parts, ".")
}

// Call returns the API call that changes the field.
func (r *Row) Call() string {
	return cmp.Or(r.By, map[Kind]string{Template: "CreateLaunchTemplateVersion", Group: UpdateGroup, Refresh: "StartInstanceRefresh", Nodegroup: UpdateNodegroup}[r.Of])
}

// Key returns the manifest spelling of a member's AWS name.
func Key(name string) string { return strings.ToLower(name[:1]) + name[1:] }

// section returns the part of PoolOptions for a kind.
func section(of Kind) string {
	return map[Kind]string{Template: "launchTemplate", Group: "autoScalingGroup", Refresh: "autoScalingGroup.refreshPreferences", Nodegroup: "nodegroup"}[of]
}

// elements splits A.B[].C into A, B, [] and C.
func elements(path string) intent.Path {
	return strings.Split(strings.ReplaceAll(path, "[]", ".[]"), ".")
}

func n(v int64) *int64 { return &v }
