package plan

import "time"

// Query says what to observe in one account and region.
type Query struct {
	// Owner is the value of the tag weir.dev/owner.
	Owner string
	// EKSClusters are the clusters that intents name, sorted; the adapter adds
	// those that groups behind owned nodegroups name.
	EKSClusters []string
	// Groups and Templates say whether the service is used at all: an unused
	// service is not read.
	Groups, Templates bool
	// Round is the time in which each nodegroup at rest is described once, evenly
	// spread; 0 describes all of them. One that is on its way is described more often:
	// after as long as it has been, AskEvery at most, DefaultAskEvery if 0.
	Round    time.Duration
	AskEvery time.Duration
}

// Needs is what planning found missing from a State.
type Needs struct {
	TemplateNames []string // to be read by name, sorted
	GroupNames    []string
	Nodegroups    []NodegroupName
	// Versions are template versions whose bodies are needed.
	Versions []TemplateRef
	// Refreshes are groups whose newest instance refresh is needed.
	Refreshes []string
	// Polls are groups whose newest instance refresh is known and may have gone on.
	// No step waits for the answer: what AWS's limits do not leave a call for is
	// left out, and asked for by a later pass.
	Polls []string
	// Hooks are groups whose lifecycle hooks are needed.
	Hooks []string
	// Activities are groups of which it is asked why sizes or machines differ.
	Activities []ActivityQuery
	// Short are groups of which it is told why machines do not come, as far as there
	// are calls to spare. Planning does not need it.
	Short []string
	// Updates are nodegroups whose newest update is needed.
	Updates []NodegroupName
	// TemplateUsers asks which groups of the whole account launch from which
	// template: read before a template is deleted.
	TemplateUsers bool
	// Numbers are templates whose version numbers are needed, and VersionUsers
	// those of which it has to be known who uses which version: read before
	// versions are deleted.
	Numbers      []string
	VersionUsers []string
	// Launched are instances of which the launch time is needed.
	Launched []string
	// Commits are those of which it is to be known how they stand to the one that is
	// followed: Input.Kin.
	Commits []string
}

// Empty reports whether nothing is needed of AWS.
func (n Needs) Empty() bool {
	return len(n.TemplateNames)+len(n.GroupNames)+len(n.Nodegroups)+len(n.Versions)+len(n.Refreshes)+len(n.Polls)+len(n.Activities)+len(n.Hooks)+len(n.Updates)+len(n.Numbers)+len(n.VersionUsers)+len(n.Launched) == 0 && !n.TemplateUsers
}
