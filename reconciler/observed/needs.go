package observed

import (
	"slices"
	"sort"
	"time"
)

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
	// Round is the time in which each idle nodegroup is described once, evenly spread; 0 describes
	// all of them. A changing nodegroup is described more often: after as long as it has been
	// changing, at most AskEvery, DefaultAskEvery if 0.
	Round    time.Duration
	AskEvery time.Duration
	// Moving limits the read of groups and templates. Nil lists all that the owner has.
	Moving *MovingSet
}

// MovingSet lists the groups and templates that a partial read fetches again, sorted. The read takes
// all others from Listed, an earlier observation.
type MovingSet struct {
	Groups, Templates []string
	Listed            Listed
}

// Listed are the owner's groups and templates as a pass observed them. They never change.
type Listed struct {
	Groups    map[string]Group
	Templates map[string]Template
}

// Needs are the facts that planning found missing from a State.
type Needs struct {
	TemplateNames []string // to be read by name, sorted
	GroupNames    []string
	Nodegroups    []NodegroupName
	// Versions are template versions whose bodies are needed.
	Versions []TemplateRef
	// Refreshes are groups whose newest instance refresh is needed.
	Refreshes []string
	// Polls holds groups whose newest instance refresh is known and may have changed. No step waits
	// for the answer: if AWS's limits leave no call for a group, a later pass reads it.
	Polls []string
	// Hooks are groups whose lifecycle hooks are needed.
	Hooks []string
	// Activities holds groups for which weir asks why sizes or machines differ.
	Activities []ActivityQuery
	// Short holds groups whose report says why machines do not come, as far as spare calls allow.
	// Planning does not need it.
	Short []string
	// Failures holds groups whose failed launches are needed, as far as spare calls allow.
	Failures []string
	// Updates are nodegroups whose newest update is needed.
	Updates []NodegroupName
	// TemplateUsers asks which groups of the whole account launch from which
	// template: read before a template is deleted.
	TemplateUsers bool
	// Numbers lists templates whose version numbers are needed. VersionUsers lists templates whose
	// users of versions are needed, before versions are deleted.
	Numbers      []string
	VersionUsers []string
	// LaunchConfigurations lists those whose content is needed.
	LaunchConfigurations []string
	// Launched lists instances whose launch time is needed.
	Launched []string
	// Alarms lists CloudWatch alarms whose state is needed, as far as spare calls allow:
	// State.Alarms and State.AlarmsUnknown.
	Alarms []string
	// Commits lists those whose relation to the followed commit is needed: Input.Relations.
	Commits []string
}

// Empty reports whether nothing is needed of AWS.
func (n Needs) Empty() bool {
	return len(n.TemplateNames)+len(n.GroupNames)+len(n.Nodegroups)+len(n.Versions)+len(n.Refreshes)+len(n.Polls)+len(n.Activities)+len(n.Hooks)+len(n.Updates)+len(n.Numbers)+len(n.VersionUsers)+len(n.Launched)+len(n.Alarms)+len(n.LaunchConfigurations) == 0 && !n.TemplateUsers
}

func (n *Needs) Sort() {
	n.TemplateNames = sortedUnique(n.TemplateNames)
	n.Commits = sortedUnique(n.Commits)
	n.GroupNames = sortedUnique(n.GroupNames)
	n.Refreshes, n.Polls = sortedUnique(n.Refreshes), sortedUnique(n.Polls)
	n.Hooks = sortedUnique(n.Hooks)
	n.Alarms = sortedUnique(n.Alarms)
	n.LaunchConfigurations = sortedUnique(n.LaunchConfigurations)
	n.Numbers, n.VersionUsers, n.Launched = sortedUnique(n.Numbers), sortedUnique(n.VersionUsers), sortedUnique(n.Launched)
	byName := func(a, b NodegroupName) int {
		if a.String() < b.String() {
			return -1
		}
		if a == b {
			return 0
		}
		return 1
	}
	slices.SortFunc(n.Nodegroups, byName)
	n.Nodegroups = slices.Compact(n.Nodegroups)
	slices.SortFunc(n.Updates, byName)
	n.Updates = slices.Compact(n.Updates)
	sort.Slice(n.Versions, func(i, j int) bool { return n.Versions[i].ID < n.Versions[j].ID })
	n.Versions = slices.Compact(n.Versions)
}

func sortedUnique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// Add joins the needs of several targets, except commits: each keeps those of its own
// source.
func (n *Needs) Add(o Needs) {
	o.Commits = nil
	n.Append(o)
	n.Sort()
}

func (n *Needs) Append(o Needs) {
	n.TemplateNames, n.Commits = append(n.TemplateNames, o.TemplateNames...), append(n.Commits, o.Commits...)
	n.GroupNames = append(n.GroupNames, o.GroupNames...)
	n.Nodegroups = append(n.Nodegroups, o.Nodegroups...)
	n.Versions = append(n.Versions, o.Versions...)
	n.Refreshes = append(n.Refreshes, o.Refreshes...)
	n.Polls = append(n.Polls, o.Polls...)
	n.Hooks = append(n.Hooks, o.Hooks...)
	n.Activities = append(n.Activities, o.Activities...)
	n.Updates = append(n.Updates, o.Updates...)
	n.Numbers = append(n.Numbers, o.Numbers...)
	n.VersionUsers = append(n.VersionUsers, o.VersionUsers...)
	n.Launched, n.Alarms = append(n.Launched, o.Launched...), append(n.Alarms, o.Alarms...)
	n.LaunchConfigurations = append(n.LaunchConfigurations, o.LaunchConfigurations...)
	n.TemplateUsers = n.TemplateUsers || o.TemplateUsers
}
