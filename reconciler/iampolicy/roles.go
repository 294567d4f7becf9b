package iampolicy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/partition"
	"github.com/weir-gitops/weir/render/intent"
)

// RolePolicy is the policy of one role, or of the daemon's identity.
type RolePolicy struct {
	For Access `json:"for"`
	// Role is empty for the daemon's own identity.
	Role    string   `json:"role,omitempty"`
	Account string   `json:"account,omitempty"`
	Regions []string `json:"regions,omitempty"`
	Targets []string `json:"targets,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Size    int      `json:"size"`
	Policy  Document `json:"policy"`
}

// ForRole makes the policy of a role. An empty role means the daemon's own identity. The notes are for the
// administrator who grants write access.
func ForRole(a Access, role string, scope Scope, targets, notes []string) RolePolicy {
	doc := Make(a, scope)
	p := RolePolicy{For: a, Role: role, Account: scope.Account, Regions: scope.Regions, Targets: targets, Policy: doc, Size: doc.Size()}
	if a != Plan {
		p.Notes = append(p.Notes, notes...)
	}
	switch {
	case p.Size > inlineLimit:
		p.Notes = append(p.Notes, fmt.Sprintf("it has %d characters and a role's inline policies have at most %d: give regions roles of their own, or split it into two managed policies", p.Size, inlineLimit))
	case p.Size > managedLimit:
		p.Notes = append(p.Notes, fmt.Sprintf("it has %d characters: make it an inline policy of the role (at most %d), for a managed one has at most %d", p.Size, inlineLimit, managedLimit))
	}
	return p
}

// Need contains the permissions that one target needs.
type Need struct {
	Target, Account, Region, Instance string
	// PlanRole is the role for plans, empty if it is ApplyRole. Both are empty if the daemon's own identity
	// is used. Assume lists further roles that it may name.
	PlanRole, ApplyRole string
	Assume              []string
	// The settings of the configuration and of the command's user.
	KMSKeys, SSMPrefixes, PassRoles []string
	Adopt                           bool
	From                            string
	// Set contains the intents of the target. It is nil if they are unknown.
	Set *intent.Set
}

// Roles collects the needs of targets by the role that serves them.
type Roles struct {
	// Separate adds a policy for plans also for roles that apply.
	Separate bool
	// Table and TableRegion identify the table that the daemons of the instance share, if they do. They
	// access it with their own identity.
	Table, TableRegion string
	// Instance is the instance for whose shared keys the KMS keys SharedKeys are.
	Instance   string
	SharedKeys []string

	list   []*roleNeeds
	assume []string
	// alarms says that gates of a FleetRollout use alarms. Such a FleetRollout may select pools of any
	// target.
	alarms bool
}

// roleNeeds contains the needs of one role's targets.
type roleNeeds struct {
	access         Access
	role           string
	scope          Scope
	targets, notes []string
}

// Add adds a target to the roles that serve it.
func (r *Roles) Add(n Need) {
	if n.PlanRole != "" || r.Separate {
		role := n.PlanRole
		if role == "" {
			role = n.ApplyRole
		}
		r.serve(Plan, role, n)
	}
	r.serve(Apply, n.ApplyRole, n)
	r.assume = append(r.assume, n.Assume...)
	if n.Set == nil {
		return
	}
	for _, of := range n.Set.Rollouts {
		for _, g := range of.Gates {
			r.alarms = r.alarms || g.CloudWatchAlarms != nil
		}
	}
}

// serve adds a target to a role in its account.
func (r *Roles) serve(a Access, role string, n Need) {
	i := slices.IndexFunc(r.list, func(of *roleNeeds) bool { return of.access == a && of.role == role && of.scope.Account == n.Account })
	if i < 0 {
		i = len(r.list)
		r.list = append(r.list, &roleNeeds{access: a, role: role, scope: Scope{Partition: partition.Of(n.Region).ID, Account: n.Account, Instance: n.Instance}})
	}
	r.list[i].add(n)
	if role != "" {
		r.assume = append(r.assume, role)
	}
}

// add adds the needs of one target.
func (r *roleNeeds) add(n Need) {
	r.targets = append(r.targets, n.Target)
	r.scope.Regions = append(r.scope.Regions, n.Region)
	r.scope.KMSKeys = append(r.scope.KMSKeys, n.KMSKeys...)
	for _, p := range n.SSMPrefixes {
		if !slices.Contains(r.scope.SSMPrefixes, p) {
			r.scope.SSMPrefixes = append(r.scope.SSMPrefixes, p)
		}
	}
	r.scope.Adopt = r.scope.Adopt || n.Adopt
	r.scope.From = n.From
	for _, arn := range n.PassRoles {
		r.scope.Pass(arn)
	}
	if n.Set == nil {
		return
	}
	for _, note := range r.scope.Collect(n.Set) {
		if !slices.Contains(r.notes, note) {
			r.notes = append(r.notes, note)
		}
	}
}

// Policies returns the policies with wanted access.
func (r *Roles) Policies(wanted func(Access) bool) (out []RolePolicy) {
	for _, a := range []Access{Plan, Apply} {
		for _, of := range r.list {
			if of.access == a && wanted(a) {
				slices.Sort(of.targets)
				of.scope.Alarms = of.scope.Alarms || r.alarms
				of.scope.Regions = slices.Compact(slices.Sorted(slices.Values(of.scope.Regions)))
				out = append(out, ForRole(a, of.role, of.scope, of.targets, of.notes))
			}
		}
	}
	if (len(r.assume) > 0 || r.Table != "" || len(r.SharedKeys) > 0) && wanted(Daemon) {
		table, notes := r.table()
		out = append(out, ForRole(Daemon, "", Scope{AssumeRoles: r.assume, Table: table, Instance: r.Instance, SharedKeys: r.SharedKeys}, nil, notes))
	}
	return out
}

// table returns the ARN of the table. Its account is the daemon's own, which only a target without a role
// shows.
func (r *Roles) table() (arn string, notes []string) {
	if r.Table == "" {
		return "", nil
	}
	in := Scope{Partition: partition.Of(r.TableRegion).ID, Account: "*"}
	if i := slices.IndexFunc(r.list, func(of *roleNeeds) bool { return of.access == Apply && of.role == "" }); i >= 0 {
		in.Account = r.list[i].scope.Account
	} else {
		notes = append(notes, "no target has the account of the table: write the account instead of the * in the table's ARN")
	}
	return in.arn("dynamodb", r.TableRegion, "table/"+r.Table), notes
}

// AccountOf returns the account in a role's ARN, or an empty string.
func AccountOf(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return ""
	}
	return parts[4]
}
