package pulls

import (
	"cmp"
	"slices"
)

// The values of a Policy.
const (
	Always     = "always"
	Never      = "never"
	DraftsPlan = "plan"
	DraftsWait = "wait"
	ByComment  = "comment"
	ByLabel    = "label"
)

// DefaultForkLabel is the label that permits a plan if the configuration does not name one.
const DefaultForkLabel = "weir-plan"

// Policy configures which pull requests weir plans.
type Policy struct {
	// Plan is always (the default) or never. A source that does not follow a branch has no pull
	// requests.
	Plan string `yaml:"plan"`
	// Drafts is plan (the default) or wait. With wait, weir plans a draft when it is ready for
	// review, or when a user with write access comments weir plan.
	Drafts string `yaml:"drafts"`
	// Forecast is always (the default) or never. With always, weir simulates each plan over time,
	// for up to one second, and shows the result with the plan.
	Forecast string `yaml:"forecast"`
	// Forks configures who can allow a plan of a pull request from another repository. Without
	// it weir plans none. Such a plan uses planRoleARN and has no access to secrets.
	Forks Forks `yaml:"forks"`
}

// Forks configures who can allow plans of pull requests from forks. A permission is for one commit.
type Forks struct {
	// AllowBy lists comment (a user with write access comments weir plan), label, or both. A later
	// push needs a new permission.
	AllowBy []string `yaml:"allowBy"`
	// Label is the name of the label. It must be set after weir has read the commit.
	Label string `yaml:"label"`
}

// SetDefaults sets the options that are not set.
func (p *Policy) SetDefaults() {
	p.Plan, p.Drafts, p.Forecast = cmp.Or(p.Plan, Always), cmp.Or(p.Drafts, DraftsPlan), cmp.Or(p.Forecast, Always)
	if slices.Contains(p.Forks.AllowBy, ByLabel) {
		p.Forks.Label = cmp.Or(p.Forks.Label, DefaultForkLabel)
	}
}
