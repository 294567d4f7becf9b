// Package field is the table of the fields of a pool that map to one member of AWS's API each. A
// field is one row here and one member of a struct in package intent; everything else follows from
// the two.
//
// Terms. A row is of a kind: of a launch template's data, of an Auto Scaling group or of a
// nodegroup. Its member is the place of the value in the intent, by the keys of the intent's JSON,
// which are AWS's names. Its sources are the fields of manifests that set it: of the pool's object,
// under names that Cluster API Provider AWS chose, or of PoolOptions, with AWS's name in lower
// camel case.
//
// A structure, map or list that AWS's request changes as a whole, or item by item, has a Block in
// addition to the rows of its members.
//
// Rules. A row describes one field by itself and nothing else: it contains no conditions, no
// expressions and no functions. A field that depends on another one, on an answer of AWS or on the
// order of calls is code, and its row says so in Special. It is then in the documentation, in
// origins and in changes like any other, and the code that Special names converts it.
//
// The table is not the emulator's: that imitates AWS, and would agree with a mistake.
package field

import (
	"cmp"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// Kind says what has the member of a row.
type Kind string

// The kinds of rows.
const (
	Template  Kind = "LaunchTemplateData" // intent.TemplateData
	Group     Kind = "AutoScalingGroup"   // intent.GroupSettings
	Refresh   Kind = "RefreshPreferences" // intent.Refresh
	Nodegroup Kind = "Nodegroup"          // intent.NodegroupSettings
)

// Row is one field.
type Row struct {
	Of Kind
	// AWS is the path of the member as AWS spells it, with [] for each item of a list.
	AWS string
	// Member is the path of the intent's member where it is not that of AWS's. The
	// first letter of a key may be lower case there.
	Member string
	// Pool are the fields below spec of the pool that may set it, the likeliest first,
	// separated by |. Without any it is PoolOptions that sets it; - where neither does.
	Pool string

	// The valid values, within those of the member's type. Fields of the pool have the limits of
	// their own schema, in package manifest.
	Required bool
	Values   string // the only texts, separated by |
	Begins   string // how a text begins: arn: or the prefix of an id, sg-
	Min, Max *int64
	Default  string // where no manifest writes it
	// Absent is the value that AWS assumes for an absent member.
	Absent string

	// By is the call that changes it; "" for the usual one of its kind.
	By string
	// Replaces says that a change replaces machines or what has the member.
	Replaces bool
	// Doc says of it what its name in AWS does not.
	Doc string
	// Special says which code converts, compares or fills the member, and why.
	Special string
}

// Block is a row for a whole structure, map or list, which AWS's request does not change member by
// member. The rows of its members follow from the same first name. A manifest without the block
// does not change it.
type Block struct {
	Form Form
	// Switch is the member of a structure that says whether there is any such thing. While
	// it is false, the other members mean nothing.
	Switch string
	// Absent holds the values that AWS assumes for absent members of a structure, as JSON of the
	// intent.
	Absent string
}

// Form describes how AWS's request changes a block.
type Form string

// Forms of blocks.
const (
	// Whole: the request holds all members of the structure.
	Whole Form = "whole"
	// ByItem: the request holds the items to add or change, and those to remove.
	ByItem Form = "by item"
)

// member is the path of the intent's member.
func (r *Row) member() string { return cmp.Or(r.Member, r.AWS) }

// OfPool reports whether the pool's own object sets the field, and not PoolOptions.
func (r *Row) OfPool() bool { return r.Pool != "" }

// PoolFields are the paths below spec of the pool's object that may set the field.
func (r *Row) PoolFields() []string {
	if r.Pool == "" || r.Pool == "-" {
		return nil
	}
	return strings.Split(r.Pool, "|")
}

// OptionsField is the path below spec of PoolOptions that sets the field.
func (r *Row) OptionsField() string {
	parts := strings.Split(r.AWS, ".")
	for i, p := range parts {
		parts[i] = Key(p)
	}
	return section(r.Of) + "." + strings.Join(parts, ".")
}

// Call is the call that changes the field.
func (r *Row) Call() string {
	return cmp.Or(r.By, map[Kind]string{Template: "CreateLaunchTemplateVersion", Group: UpdateGroup, Refresh: "StartInstanceRefresh", Nodegroup: UpdateNodegroup}[r.Of])
}

// Key returns the spelling in manifests of AWS's name of a member.
func Key(name string) string { return strings.ToLower(name[:1]) + name[1:] }

// section is the part of PoolOptions that is about a kind.
func section(of Kind) string {
	return map[Kind]string{Template: "launchTemplate", Group: "autoScalingGroup", Refresh: "autoScalingGroup.refreshPreferences", Nodegroup: "nodegroup"}[of]
}

// elements splits A.B[].C into A, B, [] and C.
func elements(path string) intent.Path {
	return strings.Split(strings.ReplaceAll(path, "[]", ".[]"), ".")
}

func n(v int64) *int64 { return &v }
