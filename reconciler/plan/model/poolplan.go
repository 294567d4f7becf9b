package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
)

// PoolPlan contains the facts that planning one pool establishes, apart from its steps and
// diagnostics. A planner sets each fact once, in the place that learns it. The plan keeps one
// PoolPlan for each pool. To add a fact, add a field here and the line that sets it.
type PoolPlan struct {
	Key intent.Key

	// Image is the image of the launch template version that the pool wants, empty if it
	// is unknown.
	Image string
	// SharedVersion is the version that the pool wants of a template that several pools
	// share, zero if that version does not exist yet.
	SharedVersion int64
	// RunsShared reports whether the pool's machines run SharedVersion. TakenOver reports whether
	// that version has the content from before the adoption, so adopting replaces no machine.
	RunsShared, TakenOver bool
	// Moved names the launch template aliases that now resolve to a version other than the pool's.
	Moved string
	// Behind reports whether the pool follows images and leaves a newer one to a later plan.
	Behind bool
	// Reviewed identifies the reviewed image that the pool has in AWS, empty for none.
	Reviewed string
	// Nodegroup is the nodegroup that matches Git. Release is the version that the pool's nodegroup
	// runs, zero if it has none.
	Nodegroup observed.NodegroupName
	Release   Release
	// Watched is the instance refresh that the pool waits for, nil for none.
	Watched *Watched
	// Outstanding describes a part of the desired state that is missing in AWS although no step is
	// left to plan, nil for none.
	Outstanding *Outstanding
	// Governed contains the facts that the conductor of the pool's FleetRollouts needs. It is nil
	// for a pool that no FleetRollout governs.
	Governed *rollout.Pool

	// Blocked reports whether an error prevents planning of the pool. Fault is that error. Waits
	// reports whether the pool cannot be planned yet although nothing is wrong with it.
	Blocked, Waits bool
	Fault          string
	// Failing reports whether AWS differs from the desired state although weir must not plan
	// anything, such as after a failed rollout.
	Failing bool

	// The following fields are for a pool that uses an earlier revision. Differs reports whether
	// AWS differs from that revision. Unclear explains why that cannot be decided now. Foreign
	// reports whether somebody else owns a resource with the pool's name.
	Differs, Foreign bool
	Unclear          string
	// Undone reports whether work remains until the pool follows Git again.
	Undone bool
	// Verdict is the decision whether the pool is held to its revision. It is nil if weir did not
	// try an earlier revision for this pool alone.
	Verdict *lastgood.Verdict
}

// Unplanned explains why it is unknown whether the pool is as Git wants it; empty if it is known.
func (p *PoolPlan) Unplanned() string {
	if p == nil || !p.Blocked && !p.Waits {
		return ""
	}
	return cmp.Or(p.Fault, "it cannot be planned now")
}

// Outstands records that a part of the desired state is outstanding.
func (p *PoolPlan) Outstands(severity, reason, message string) {
	p.Outstanding = &Outstanding{Severity: severity, Reason: reason, Message: message}
}

// Fails makes the pool report its outstanding work as a failure.
func (p *PoolPlan) Fails(code, cause string) {
	p.Outstanding.Failure, p.Outstanding.Cause = code, cause
}

// Outstanding is a part of the desired state that is missing in AWS although no step is left to
// plan. Either it resolves by itself, or a person must act.
type Outstanding struct {
	// Severity is Info for a state that resolves by itself, and Warning for one that a person must
	// look at. Severity, Reason and Message go into the condition Ready.
	Severity, Reason, Message string
	// Failure is the pool's FailureReason, "" if it has not failed. Cause is its FailureCause.
	Failure, Cause string
}

// Release is the version that a nodegroup runs, in EKS's words.
type Release struct {
	// Version is the Kubernetes version. Name is the release of the images, such as
	// 1.34.1-20251120. It is empty if the image comes from a launch template.
	Version, Name string
}

// PoolPlans contains the plans of a target's pools, in the order of their keys.
type PoolPlans []PoolPlan

// NewPoolPlans returns an empty PoolPlan for each pool of a set.
func NewPoolPlans(set *intent.Set) PoolPlans {
	out := make(PoolPlans, len(set.Pools))
	for i := range set.Pools {
		out[i].Key = set.Pools[i].Key
	}
	slices.SortStableFunc(out, func(a, b PoolPlan) int { return compareKeys(a.Key, b.Key) })
	return out
}

// Of returns the plan of the pool with a key, nil if the target has no such pool.
func (p PoolPlans) Of(key intent.Key) *PoolPlan {
	i, found := slices.BinarySearchFunc(p, key, func(one PoolPlan, key intent.Key) int { return compareKeys(one.Key, key) })
	if !found {
		return nil
	}
	return &p[i]
}

// Named returns the plan of the pool "namespace/name", nil if the target has no such pool.
func (p PoolPlans) Named(pool string) *PoolPlan {
	var key intent.Key
	key.Namespace, key.Name, _ = strings.Cut(pool, "/")
	return p.Of(key)
}

func compareKeys(a, b intent.Key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
