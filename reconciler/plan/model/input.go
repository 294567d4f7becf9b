// Package model defines the types that all of planning shares: the Input of a plan with the Policy
// of its target, the rules of ownership, and the work on one pool with its Result.
//
// Packages template, group, nodegroup and orphan below plan get a Work, which contains the Input.
// They add to its Result: steps, diagnostics, and Needs, which name facts missing from the state. A
// result only grows. A caller that may not want a part creates it with Fork and then adds or drops
// its result, so no planner ever undoes anything.
//
// Everything here is a value or a pure function of values, as in all of planning.
package model

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Input is everything that the plan of one target depends on.
type Input struct {
	Policy Policy
	Commit content.Commit
	Set    *intent.Set
	// Unplanned lists the pools and launch configurations of the followed revision that Set does
	// not contain, or contains as an earlier revision has them.
	Unplanned []intent.Unplanned
	Answers   observed.Answers
	// Levels maps lookups whose answers can change without a commit to these answers.
	Levels map[intent.Lookup]Level
	State  *observed.State
	// Index is NewIndex(State). Compute builds it if it is nil.
	Index  *Index
	Fleet  Fleet
	Memory Memory
	// Fenced makes weir leave pools alone if AWS has the work of a newer commit. Relations maps
	// such commits, by full or short hash, to their relation to Commit.
	Fenced    bool
	Relations map[string]Relation
	// Now is the start of the pass.
	Now time.Time
	// Began is the start of the pass by the process's own clock. It is comparable with the ReadAt
	// times of the state. Manifests cannot change it.
	Began time.Time
	// AskEvery is the time for which weir does not read an instance refresh again while its
	// machines do not change. Zero means DefaultAskEvery.
	AskEvery time.Duration
	// Reviewed maps the SourceHash of each reviewed version to its image. Checked contains AWS's
	// answer whether each of these images still matches its lookup.
	Reviewed map[string]ReviewedImage
	Checked  map[ImageCheck]observed.Answer
	// Own is set for the plan of one commit by itself: it ignores images that were published since,
	// even for pools that follow images. If the commit is a proposal, Base is the desired state of
	// the followed commit. Base is nil for a new target and for a commit that is no proposal.
	Own  bool
	Base *intent.Set
	// Nodes is the workload cluster's answer about its nodes, nil if weir did not read them.
	Nodes *Nodes
}

// Nodes lists the nodes of a workload cluster by the EC2 instance id in their provider id.
type Nodes struct {
	ByInstance map[string]Node
	// APIServer is the Kubernetes version of the cluster's API server, such as "v1.33.4". It is
	// empty if weir could not read it.
	APIServer string
	// Unnamed is the number of nodes without a provider id.
	Unnamed int
	// Err is the error of a failed read. ByInstance is then empty.
	Err error
}

// Node is a node of the workload cluster with its condition Ready.
type Node struct {
	Name  string
	UID   string
	Ready bool
	// Since is the time of the last change of Ready. Created is the time when the machine joined.
	Since, Created time.Time
	// Why is the cluster's reason if the node is not ready.
	Why string
	// Cordoned reports whether the node accepts no further pods. Draining is the value of the
	// annotation that names the program that drains it.
	Cordoned bool
	Draining string
}

// Policy is the configuration of one target.
type Policy struct {
	// Instance is the value of the tag weir.dev/owner.
	Instance string
	Target   string
	// Source is the value of the tag weir.dev/source. Sources lists the values of all sources of
	// the instance.
	Source  string
	Sources []string
	Account string
	Region  string
	// Suspended targets get a plan, but weir never writes them.
	Suspended bool
	// ReportOnly is set in report mode: weir shows drift and changes nothing.
	ReportOnly bool
	Prune      Prune
	// KeepVersions is the number of launch template versions to keep in addition to the wanted one,
	// if the pool does not set it. Zero means DefaultKeepVersions.
	KeepVersions int32
	// AccountUnknown is the set of the instance's targets whose account and region are missing from
	// the configuration. Resources with their tags stay theirs, here and elsewhere.
	AccountUnknown map[string]bool
	// Unlisted contains patterns of target names, in which * stands for any text. A target of a
	// source that cannot be read may match one of them, although the configuration no longer says
	// in which account it is applied. Listed is the set of targets for which that is excluded.
	Unlisted []string
	Listed   map[string]bool
	// OwnTargetOnly refuses resources of other targets of the same instance and source. It is set
	// in path mode, in which the desired state of other targets is unknown.
	OwnTargetOnly bool
	// DigestKey is the key of the HMAC that replaces user data in changes.
	DigestKey []byte
	// Adoption selects resources of other owners that the target adopts.
	Adoption Adoption
	// JoinTokens configures whether and where weir stores join tokens.
	JoinTokens JoinTokens
	// Secretless marks a plan that was made without the target's secrets.
	Secretless bool
	// Gates contains the holds that people, the clock and other targets cause.
	Gates Gates
	// Disputed explains why resources cannot pass from one target to another now: members with
	// different configurations would pass them back and forth. It is empty if they can.
	Disputed string
	// Unmet maps pools ("namespace/name") to the reason why weir does not replace their machines:
	// the configuration demands a FleetRollout that Git does not have.
	Unmet map[string]string
	// Waves contains the configuration's demands on waves, nil for none.
	Waves *Waves
	// Fallback is the earlier revision that the target uses while the followed revision cannot be
	// rendered. It is nil while the target uses the followed revision.
	Fallback *Fallback
	// FallbackPools contains the pools ("namespace/name") that use an earlier revision because the
	// followed revision breaks them. All other pools use the followed revision. For these pools,
	// Set has the intents of the earlier revision.
	FallbackPools map[string]*Fallback
	// Fault is the first error of the followed revision with its position, or empty. A target with
	// a fault has no orphans.
	Fault string
	// MaxRollouts limits the rollouts in progress at the same time in the account and region. It is
	// the smallest limit of the targets there. Zero means no limit.
	MaxRollouts int
}

// Prune configures whether weir deletes orphans, and how many at most.
type Prune struct {
	// Enabled turns deletion on. Silent leaves orphans unmentioned (path mode without --prune).
	Enabled bool
	Silent  bool
	// Percent limits deletions to a percentage of the pools that the target owns in AWS, rounded
	// down but at least 1. If Percent is 0, Count is the limit.
	// If both are 0, DefaultPrunePercent applies.
	Percent int
	Count   int
	// Allowed is the set of pools ("namespace/name") that the commit's trailer allows to delete
	// regardless of the limit. Granted is the set that an approval allows.
	Allowed, Granted map[string]bool
	// Waits names the fact that weir must find out before the trailer is valid. Deletions beyond
	// the limit wait for it. It is empty if nothing is missing.
	Waits string
	// Kept explains why weir deletes nothing now, regardless of commits and approvals. It is empty
	// if weir may delete.
	Kept string
}

// DefaultKeepVersions is the number of earlier launch template versions to keep if neither a pool
// nor the configuration sets it.
const DefaultKeepVersions = 10

// DefaultPrunePercent is the limit if the configuration sets none.
const DefaultPrunePercent = 20

// Limit returns the number of pools that one pass may delete if the target owns owned pools.
func (p Prune) Limit(owned int) int {
	if p.Percent == 0 && p.Count > 0 {
		return p.Count
	}
	percent := p.Percent
	if percent == 0 {
		percent = DefaultPrunePercent
	}
	return max(1, owned*percent/100)
}

// Claim names an AWS resource that a target wants to exist.
type Claim struct {
	Resource step.Resource
	// Name is the resource's name. Cluster is set for nodegroups only.
	Name    string
	Cluster string
}

// Fleet combines the desired state of all targets of the instance in the account and region.
type Fleet struct {
	// Wanted maps a resource to the first target that wants it. Contested lists all targets if
	// several want the same resource.
	Wanted    map[Claim]string
	Contested map[Claim][]string
	// Brought is the set of launch templates, by name or id, that pools bring along.
	Brought map[string]bool
	// Unplanned lists the unplanned pools and launch configurations of all these targets.
	Unplanned []intent.Unplanned
	// Whole reports whether all of these targets rendered completely. Otherwise weir deletes
	// nothing.
	Whole bool
}

// Claims returns the resources that a set of intents wants.
func Claims(set *intent.Set) []Claim {
	var out []Claim
	for i := range set.Pools {
		p := &set.Pools[i]
		if p.LaunchTemplate != nil {
			out = append(out, Claim{Resource: step.LaunchTemplate, Name: p.LaunchTemplate.Name})
		}
		if p.Group != nil {
			out = append(out, Claim{Resource: step.AutoScalingGroup, Name: p.Group.Name})
		}
		if p.Nodegroup != nil {
			out = append(out, Claim{Resource: step.ManagedNodegroup, Name: p.Nodegroup.Name, Cluster: p.Nodegroup.ClusterName})
		}
	}
	return out
}

// NewFleet joins the claims of several targets.
func NewFleet(claims map[string][]Claim, whole bool) Fleet {
	f := Fleet{Wanted: map[Claim]string{}, Contested: map[Claim][]string{}, Whole: whole}
	for _, target := range slices.Sorted(maps.Keys(claims)) {
		for _, c := range claims[target] {
			first, taken := f.Wanted[c]
			switch {
			case !taken:
				f.Wanted[c] = target
			case first != target:
				if len(f.Contested[c]) == 0 {
					f.Contested[c] = []string{first}
				}
				if !slices.Contains(f.Contested[c], target) { // several of the target's pools may share the template
					f.Contested[c] = append(f.Contested[c], target)
				}
			}
		}
	}
	return f
}

// Memory contains the facts that a running process remembers between passes. For example, EKS
// returns a nodegroup as ACTIVE with its old values after a failed update. Only the memory of the
// attempt keeps weir from trying forever. After a restart weir tries once more.
type Memory struct {
	// Started contains the last update that the process started of each nodegroup.
	Started map[observed.NodegroupName]StartedUpdate
	// Cancelled is the set of ids of the instance refreshes that weir cancelled. A daemon records
	// them, as AWS does not say who cancelled a refresh.
	Cancelled map[string]bool
	// Refreshes maps group names to the instance refreshes that pools wait for.
	Refreshes map[string]Watched
	// Converged maps each ConvergedKey to the pool's desired state when it last had converged. The
	// map is replaced as a whole and never changed.
	Converged map[string]LastConverged
	// InService maps instance ids to the time since which the instances are in service, for pools
	// with minReadySeconds, and for all pools if weir reads the nodes. It is nil in the first pass of
	// a process.
	InService map[string]time.Time
	// Refusals lists the requests that weir must not repeat for now.
	Refusals refusals.View
}

// StartedUpdate is a nodegroup update that this process started. Fingerprint identifies the wanted
// nodegroup.
type StartedUpdate struct {
	UpdateID    string
	Fingerprint string
}
