package pulls

import (
	"cmp"
	"slices"
)

// Words of a Policy: whether pull requests are planned, what becomes of drafts, and who
// lets a fork's be planned.
const (
	Always     = "always"
	Never      = "never"
	DraftsPlan = "plan"
	DraftsWait = "wait"
	ByComment  = "comment"
	ByLabel    = "label"
)

// DefaultForkLabel is the label that allows a plan where the configuration names
// no other.
const DefaultForkLabel = "weir-plan"

// Policy says which pull requests are planned.
type Policy struct {
	// Plan is always (the default) or never. Only a source that follows a branch has
	// pull requests.
	Plan string `yaml:"plan"`
	// Drafts is plan (the default), or wait: a draft is planned once it is ready for
	// review, or once a user who may write to the repository comments weir plan.
	Drafts string `yaml:"drafts"`
	// Forecast is always (the default) or never: whether weir simulates a plan over time,
	// for up to one second, and shows the result next to it.
	Forecast string `yaml:"forecast"`
	// Forks says what lets a pull request from another repository be planned; without
	// it none is. Such a plan sees no secret and uses planRoleARN alone.
	Forks Forks `yaml:"forks"`
}

// Forks lets people allow plans of pull requests from forks, for one commit each.
type Forks struct {
	// AllowBy lists comment (weir plan, by a user who may write to the repository)
	// and label. Later pushes need a new permission.
	AllowBy []string `yaml:"allowBy"`
	// Label is the label's name, weir-plan if left out. It must be set after weir
	// has seen the commit.
	Label string `yaml:"label"`
}

// SetDefaults fills in the options that are left open.
func (p *Policy) SetDefaults() {
	p.Plan, p.Drafts, p.Forecast = cmp.Or(p.Plan, Always), cmp.Or(p.Drafts, DraftsPlan), cmp.Or(p.Forecast, Always)
	if slices.Contains(p.Forks.AllowBy, ByLabel) {
		p.Forks.Label = cmp.Or(p.Forks.Label, DefaultForkLabel)
	}
}
