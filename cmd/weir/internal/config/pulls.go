package config

import (
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/reconciler/target"
)

// Words of PullRequests.
const (
	Never   = "never"
	Plan    = "plan"
	Wait    = "wait"
	Comment = "comment"
	Label   = "label"
)

// DefaultForkLabel is the label that allows a plan where the configuration names
// no other.
const DefaultForkLabel = "weir-plan"

// PullRequests says which pull requests are planned.
type PullRequests struct {
	// Plan is always (the default) or never. Only a source that follows a branch has
	// pull requests.
	Plan string `yaml:"plan"`
	// Drafts is plan (the default), or wait: a draft is planned once it is ready for
	// review or somebody who may write to the repository comments weir plan.
	Drafts string `yaml:"drafts"`
	// Forks says what lets a pull request from another repository be planned; without
	// it none is. Such a plan sees no secret and uses planRoleARN alone.
	Forks Forks `yaml:"forks"`
}

// Forks lets people allow plans of pull requests from forks, for one commit each.
type Forks struct {
	// AllowBy lists comment (weir plan, by somebody who may write to the repository)
	// and label. What is pushed later must be allowed anew.
	AllowBy []string `yaml:"allowBy"`
	// Label is the label's name, weir-plan if left out. It counts where it is set
	// after weir has seen the commit.
	Label string `yaml:"label"`
}

func (p *PullRequests) setDefaults() {
	orText(&p.Plan, target.Always)
	orText(&p.Drafts, Plan)
	if slices.Contains(p.Forks.AllowBy, Label) {
		orText(&p.Forks.Label, DefaultForkLabel)
	}
}

// PlansPulls reports whether pull requests of the forge are planned.
func (c *Config) PlansPulls(f Forge) bool {
	if f.Type == Generic || f.PullRequests.Plan != target.Always {
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
	if p.Plan != target.Always && p.Plan != Never {
		v.fault(at+".plan", "bad-value", "", "want %s or %s, got %q", target.Always, Never, p.Plan)
	}
	if p.Drafts != Plan && p.Drafts != Wait {
		v.fault(at+".drafts", "bad-value", "", "want %s or %s, got %q", Plan, Wait, p.Drafts)
	}
	for i, by := range p.Forks.AllowBy {
		if by != Comment && by != Label {
			v.fault(fmt.Sprintf("%s.forks.allowBy[%d]", at, i), "bad-value", "", "want %s or %s, got %q", Comment, Label, by)
		}
	}
	if p.Forks.Label != "" && !slices.Contains(p.Forks.AllowBy, Label) {
		v.fault(at+".forks.label", "bad-value", "add label to allowBy", "the label allows nothing")
	}
	if _, written := v.decoder.at[at]; !written {
		return
	}
	switch i := slices.IndexFunc(v.config.Sources, func(s Source) bool { return s.Name == f.Source }); {
	case f.Type == Generic:
		v.fault(at, "bad-value", "name the forge's own type", "a generic forge has no pull requests")
	case i >= 0 && p.Plan == target.Always && !v.config.Sources[i].Ref.branches():
		v.fault(at, "bad-value", "pull requests go into branches; write plan: never, or follow a branch", "the source %q does not follow a branch", f.Source)
	}
}

// planRoles has what is applied together be planned together: with roles of their
// own, plans would not see what the other targets of the account want, and would
// not show what merging deletes. Where manifests may name the role to apply with,
// only they tell which targets these are.
func (v *validator) planRoles() {
	if !slices.ContainsFunc(v.config.Forges, v.config.PlansPulls) {
		return
	}
	type place struct{ account, region, role, endpoint string }
	type planned struct{ by, as string }
	first := map[place]planned{}
	for i := range v.config.Targets {
		for _, t := range v.config.Targets[i].Rows() {
			if len(t.AllowedRoleARNs) > 0 {
				continue
			}
			p := place{t.AccountID, t.Region, t.RoleARN, t.EndpointURL}
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
