package config

import (
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/status/pulls"
)

// PlansPulls reports whether pull requests of the forge are planned.
func (c *Config) PlansPulls(f Forge) bool {
	if f.Type == Generic || f.PullRequests.Plan != pulls.Always {
		return false
	}
	i := slices.IndexFunc(c.Sources, func(s Source) bool { return s.Name == f.Source })
	return i >= 0 && c.Sources[i].Ref.branches()
}

// branches reports whether a branch is followed, by its name or as the default one.
func (r Ref) branches() bool { return r == Ref{Branch: r.Branch} }

func (v *validator) pulls(at string, f *Forge) {
	p := f.PullRequests
	at += ".pullRequests"
	if p.Plan != pulls.Always && p.Plan != pulls.Never {
		v.fault(at+".plan", "bad-value", "", "want %s or %s, got %q", pulls.Always, pulls.Never, p.Plan)
	}
	if p.Drafts != pulls.DraftsPlan && p.Drafts != pulls.DraftsWait {
		v.fault(at+".drafts", "bad-value", "", "want %s or %s, got %q", pulls.DraftsPlan, pulls.DraftsWait, p.Drafts)
	}
	for i, by := range p.Forks.AllowBy {
		if by != pulls.ByComment && by != pulls.ByLabel {
			v.fault(fmt.Sprintf("%s.forks.allowBy[%d]", at, i), "bad-value", "", "want %s or %s, got %q", pulls.ByComment, pulls.ByLabel, by)
		}
	}
	if p.Forks.Label != "" && !slices.Contains(p.Forks.AllowBy, pulls.ByLabel) {
		v.fault(at+".forks.label", "bad-value", "add label to allowBy", "the label allows nothing")
	}
	if _, written := v.decoder.at[at]; !written {
		return
	}
	switch i := slices.IndexFunc(v.config.Sources, func(s Source) bool { return s.Name == f.Source }); {
	case f.Type == Generic:
		v.fault(at, "bad-value", "name the forge's own type", "a generic forge has no pull requests")
	case i >= 0 && p.Plan == pulls.Always && !v.config.Sources[i].Ref.branches():
		v.fault(at, "bad-value", "pull requests go into branches; write plan: never, or follow a branch", "the source %q does not follow a branch", f.Source)
	}
}

// planRoles makes sure that targets applied together are planned together: with roles of their
// own, plans would not see what the other targets of the account want, and would
// not show what merging deletes. Where manifests may name the role to apply with,
// only they tell which targets these are.
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
				v.fault(fmt.Sprintf("targets[%d].planRoleARN", i), "bad-value", "give both the same planRoleARN, or each its accountID if the accounts differ",
					"the target is applied together with %q, and is to be planned with another role", before.by)
			}
		}
	}
}
