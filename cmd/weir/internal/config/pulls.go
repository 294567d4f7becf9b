package config

import (
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/pulls"
)

// PlansPulls reports whether weir plans pull requests of the forge.
func (c *Config) PlansPulls(f Forge) bool {
	s := c.sourceOf(f.Source)
	return !f.Profile().WebhooksOnly && f.PullRequests.Plan == pulls.Always && s != nil && branches(s.Ref)
}

// branches reports whether a ref is a branch, named or the default one.
func branches(r source.Ref) bool { return r == source.Ref{Branch: r.Branch} }

func (v *validator) pulls(at string, f *Forge) {
	p := f.PullRequests
	if p.Forks.Label != "" && !slices.Contains(p.Forks.AllowBy, pulls.ByLabel) {
		v.found.fault(at+".forks.label", "bad-value", "add label to allowBy", "the label allows nothing")
	}
	switch s := v.config.sourceOf(f.Source); {
	case !v.found.written(at):
	case f.Profile().WebhooksOnly:
		v.found.fault(at, "bad-value", "name the forge's own type", "a generic forge has no pull requests")
	case s != nil && p.Plan == pulls.Always && !branches(s.Ref):
		v.found.fault(at, "bad-value", "pull requests go into branches; write plan: never, or follow a branch", "the source %q does not follow a branch", f.Source)
	}
}

// planRoles checks that targets that are applied together are also planned together. With different roles
// for plans, a plan would not include the resources of other targets in the account, and would not show
// deletions by a merge. If manifests may name the role to apply with, only they determine which targets
// these are.
func (v *validator) planRoles() {
	if !slices.ContainsFunc(v.config.Forges, v.config.PlansPulls) {
		return
	}
	type scope struct{ account, region, role, endpoint string }
	type planned struct{ by, as string }
	first := map[scope]planned{}
	for i := range v.config.Targets {
		for _, t := range v.config.Targets[i].Rows() {
			if len(t.AllowedRoleARNs) > 0 {
				continue
			}
			p := scope{t.AccountID, t.Region, t.RoleARN, t.EndpointURL}
			before, known := first[p]
			if !known {
				first[p] = planned{t.Name, t.PlanRoleARN}
			} else if before.as != t.PlanRoleARN {
				v.found.fault(fmt.Sprintf("targets[%d].planRoleARN", i), "bad-value", "give both the same planRoleARN, or each its accountID if the accounts differ",
					"the target is applied together with %q, but planned with another role", before.by)
			}
		}
	}
}
