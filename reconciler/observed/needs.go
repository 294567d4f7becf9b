package observed

import (
	"slices"
	"sort"
	"time"
)

// Query defines what to read in one account and region.
type Query struct {
	// Owner is the value of the tag weir.dev/owner.
	Owner string
	// EKSClusters lists the clusters that intents name, sorted. The adapter adds the clusters of groups
	// behind owned nodegroups.
	EKSClusters []string
	// Groups and Templates say whether weir must read these resources at all.
	Groups, Templates bool
	// Round is the time in which each idle nodegroup is described once, evenly spread. Zero describes all in
	// every pass. A changing nodegroup is described again after as long as it has been changing, at most
	// AskEvery. AskEvery defaults to DefaultAskEvery.
	Round    time.Duration
	AskEvery time.Duration
	// Moving limits the read of groups and templates. If it is nil, all resources of the owner are listed.
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
	TemplateNames []string // to read by name, sorted
	GroupNames    []string
	Nodegroups    []NodegroupName
	// Versions lists template versions whose contents are needed.
	Versions []TemplateRef
	// Refreshes lists groups whose newest instance refresh is needed.
	Refreshes []string
	// Polls lists groups whose newest instance refresh is known and may have changed. No step waits for the
	// answer: if AWS's limits allow no call for a group, a later pass reads it.
	Polls []string
	// Hooks lists groups whose lifecycle hooks are needed.
	Hooks []string
	// Activities lists queries for the reasons of changed sizes or machines.
	Activities []ActivityQuery
	// Short lists groups whose report explains why machines are missing. They are read only if AWS's limits
	// allow it. Planning does not need them.
	Short []string
	// Failures lists groups whose failed launches are needed. They are read only if AWS's limits allow it.
	Failures []string
	// Updates lists nodegroups whose newest update is needed.
	Updates []NodegroupName
	// TemplateUsers requests the groups of the whole account by launch template, before a template is
	// deleted.
	TemplateUsers bool
	// Numbers lists templates whose version numbers are needed. VersionUsers lists templates whose
	// users of versions are needed, before versions are deleted.
	Numbers      []string
	VersionUsers []string
	// LaunchConfigurations lists launch configurations whose contents are needed.
	LaunchConfigurations []string
	// Launched lists instances whose launch time is needed.
	Launched []string
	// Alarms lists CloudWatch alarms whose states are needed (State.Alarms and State.AlarmsUnknown). They
	// are read only if AWS's limits allow it.
	Alarms []string
	// Commits lists commits whose relation to the followed commit is needed (Input.Relations).
	Commits []string
}

// Empty reports whether nothing is needed from AWS.
func (n Needs) Empty() bool {
	return len(n.TemplateNames)+len(n.GroupNames)+len(n.Nodegroups)+len(n.Versions)+len(n.Refreshes)+len(n.Polls)+len(n.Activities)+len(n.Hooks)+len(n.Updates)+len(n.Numbers)+len(n.VersionUsers)+len(n.Launched)+len(n.Alarms)+len(n.LaunchConfigurations) == 0 && !n.TemplateUsers
}

// Sort sorts the needs and removes duplicates.
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

// Add adds the needs of another target, except commits: they belong to the target's own source.
func (n *Needs) Add(o Needs) {
	o.Commits = nil
	n.Append(o)
	n.Sort()
}

// Append adds other needs. The result may have duplicates, see Sort.
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
