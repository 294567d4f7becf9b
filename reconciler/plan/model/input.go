// Package model holds the terms that all of planning shares: the Input of a plan with the
// Policy of its target, the rules of ownership, and the work on one pool with its Result.
//
// Packages template, group, nodegroup and orphan below plan take a Work, which holds the
// Input, and add to its Result: steps, diagnostics, and the Needs of what the state lacks.
// A result only grows. A caller that may not want a part begins it with Fork, and takes or
// drops its result; so nothing is ever taken back.
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

// Input is everything a plan of one target depends on.
type Input struct {
	Policy Policy
	Commit content.Commit
	Set    *intent.Set
	// Unplanned are the pools and launch configurations of the followed revision that are
	// not in Set, or are there as an earlier revision has them.
	Unplanned []intent.Unplanned
	Answers   observed.Answers
	// Levels are those of the answers, and of others.
	Levels map[intent.Lookup]Level
	State  *observed.State
	// Index is NewIndex(State); Compute makes it where it is nil.
	Index  *Index
	Fleet  Fleet
	Memory Memory
	// Fenced keeps pools untouched where AWS holds the work of a newer commit. Relations gives the
	// relation of such commits, in full or short, to Commit.
	Fenced    bool
	Relations map[string]Relation
	// Now is the start of the pass.
	Now time.Time
	// Began is the start of the pass by the process's own clock, like ReadAt of what was read: no
	// manifest sets it.
	Began time.Time
	// AskEvery is the time for which weir does not read an instance refresh whose machines show
	// nothing new; DefaultAskEvery if 0.
	AskEvery time.Duration
	// Reviewed are the images of reviewed versions, by SourceHash; Checked says of each
	// whether it is an answer to its lookup still.
	Reviewed map[string]ReviewedImage
	Checked  map[ImageCheck]observed.Answer
	// Own says that the plan is a commit's own: images that were published since are no
	// part of it, also for pools that follow them. Base is the state that is followed
	// where the commit is a proposal, nil where the target is new or the commit is no
	// proposal.
	Own  bool
	Base *intent.Set
	// Nodes is the workload cluster's answer about its nodes, nil where no read was
	// made.
	Nodes *Nodes
}

// Nodes holds the nodes of a workload cluster by the EC2 instance id in their
// provider id.
type Nodes struct {
	ByInstance map[string]Node
	// APIServer is the Kubernetes version of the cluster's API server, such as
	// "v1.33.4"; empty where it could not be read.
	APIServer string
	// Unnamed is the number of nodes without a provider id.
	Unnamed int
	// Err says why the nodes could not be read; ByInstance is then empty.
	Err error
}

// Node is a node of the workload cluster, by its condition Ready.
type Node struct {
	Name  string
	UID   string
	Ready bool
	// Since is the time of the last change of Ready. Created is the time when the machine joined.
	Since, Created time.Time
	// Why is the cluster's reason where it is not ready.
	Why string
	// Cordoned says that it accepts no further pods. Draining is the value of its annotation that
	// names the drainer.
	Cordoned bool
	Draining string
}

// Policy is the configuration of one target.
type Policy struct {
	// Instance is the value of the tag weir.dev/owner.
	Instance string
	Target   string
	// Source is the value of the tag weir.dev/source; Sources holds those of
	// all of the instance's sources.
	Source  string
	Sources []string
	Account string
	Region  string
	// Suspended targets are planned and never written.
	Suspended bool
	// ReportOnly targets (mode: report) show drift and change nothing.
	ReportOnly bool
	Prune      Prune
	// KeepVersions is the number of launch template versions to keep in addition to the wanted one,
	// where the pool does not set it. Zero means DefaultKeepVersions.
	KeepVersions int32
	// AccountUnknown holds targets of the instance whose account and region the configuration does
	// not give. Their resources belong to them, here or elsewhere.
	AccountUnknown map[string]bool
	// Unlisted are patterns of names, in which * stands for any text: targets of a source
	// that cannot be read may have them, though the configuration no longer says where
	// those are applied. Listed are the targets that are known to be others.
	Unlisted []string
	Listed   map[string]bool
	// OwnTargetOnly refuses resources of another target of the same instance
	// and source: path mode, where the desired state of other targets is unknown.
	OwnTargetOnly bool
	// DigestKey keys the HMAC that replaces user data in changes.
	DigestKey []byte
	// Adoption says what of others becomes the target's.
	Adoption Adoption
	// JoinTokens says whether and where join tokens are kept.
	JoinTokens JoinTokens
	// Secretless marks a plan that was made without the target's secrets.
	Secretless bool
	// Gates are the holds of people, the clock and other targets.
	Gates Gates
	// Disputed says why no resource moves from one target to another now: members whose
	// configurations differ would move it back and forth. Empty where it may.
	Disputed string
	// Unmet maps pools ("namespace/name") whose machines weir does not replace to the reason: the
	// configuration demands a FleetRollout that Git does not have.
	Unmet map[string]string
	// Waves holds the configuration's demands on waves, nil for none.
	Waves *Waves
	// Fallback is the earlier revision that the target uses while the followed one cannot be
	// rendered. It is nil if the target uses the followed one.
	Fallback *Fallback
	// FallbackPools are the pools ("namespace/name") that use an earlier revision because the
	// followed one breaks them. All other pools follow it. The set has the pools' intents of that
	// earlier revision.
	FallbackPools map[string]*Fallback
	// Fault is the first error of the followed revision with its position, empty if it has no error.
	// A target with a fault has no orphans.
	Fault string
	// MaxRollouts bounds the rollouts that move at a time in the account and
	// region: the smallest of its targets' counts. 0 is no bound.
	MaxRollouts int
}

// Prune says whether orphans are deleted, and how many at most.
type Prune struct {
	// Enabled turns deleting on; Silent leaves orphans unmentioned (path mode
	// without --prune).
	Enabled bool
	Silent  bool
	// Percent of the pools that the target owns in AWS, rounded down but at
	// least 1; or Count where Percent is 0.
	Percent int
	Count   int
	// Allowed are pools ("namespace/name") that the commit's trailer allows to delete
	// whatever the limit says, Granted those that an approval allows.
	Allowed, Granted map[string]bool
	// Waits says what must be known before the trailer is valid: deletions beyond the
	// limit wait for it. Empty where nothing has.
	Waits string
	// Kept says why nothing is deleted now, whatever a commit or an approval allows, empty where something may be.
	Kept string
}

// DefaultKeepVersions is the number of earlier launch template versions to keep where neither a pool
// nor the configuration sets it.
const DefaultKeepVersions = 10

// DefaultPrunePercent is the limit if the configuration sets none.
const DefaultPrunePercent = 20

// Limit returns how many of owned pools may be deleted in one pass.
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
	// Name is the resource's; Cluster is set for nodegroups only.
	Name    string
	Cluster string
}

// Fleet is the sum of what all targets of the instance in the account and region want.
type Fleet struct {
	// Wanted names the target that wants a resource; several targets that want
	// the same one are in Contested.
	Wanted    map[Claim]string
	Contested map[Claim][]string
	// Brought names, by name or by id, the launch templates that pools bring along.
	Brought map[string]bool
	// Unplanned are those of all these targets.
	Unplanned []intent.Unplanned
	// Whole says that every one of those targets rendered whole. Unless it is, nothing
	// is deleted.
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
				if !slices.Contains(f.Contested[c], target) { // several pools of it may share the template
					f.Contested[c] = append(f.Contested[c], target)
				}
			}
		}
	}
	return f
}

// Memory holds the facts that a running process remembers between passes: EKS hands a nodegroup
// whose update failed back as ACTIVE with its old values, so only the memory of the attempt keeps
// weir from trying without end. A restart forgets it and costs one more try.
type Memory struct {
	// Started holds the fingerprint of the wanted nodegroup for which an
	// update was last started.
	Started map[observed.NodegroupName]StartedUpdate
	// Cancelled holds the ids of instance refreshes that weir cancelled. A daemon records
	// them, as AWS does not say who cancelled one.
	Cancelled map[string]bool
	// Refreshes holds the instance refreshes that pools wait for, by group name.
	Refreshes map[string]Watched
	// Settled holds what pools wanted when they last had converged, by SettledKey.
	// It is replaced as a whole and never changed.
	Converged map[string]LastConverged
	// InService holds since when instances are in service, of pools with
	// minReadySeconds; nil in the first pass of a process.
	InService map[string]time.Time
	// Refusals holds what weir must not try again.
	Refusals refusals.View
}

// StartedUpdate is a nodegroup update that this process started.
type StartedUpdate struct {
	UpdateID    string
	Fingerprint string
}
