package basis

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Way is how far a pool may be rolled to what Git wants. A pool that no FleetRollout
// governs may be rolled whole. One that is governed starts nothing beyond its permit, which
// is for one hash of what its machines are launched of; what it then lacks is a wait and no
// drift.
type Way struct {
	Governed bool
	Hash     string
	Permit   rollout.Permit
}

// WayTo is the way of a pool to what hash stands for.
func (in Input) WayTo(pool *intent.Pool, hash func() string) Way {
	permit, governed := in.Policy.Gates.Rollouts[pool.Key.String()]
	if !governed {
		return Way{}
	}
	return Way{Governed: true, Hash: hash(), Permit: permit}
}

// Share is the percentage of the pool's machines that may run what Git wants.
func (w Way) Share() int32 {
	switch {
	case !w.Governed:
		return 100
	case w.Permit.Hash != w.Hash || w.Permit.Stopped:
		return 0
	}
	return w.Permit.Share
}

// Stopped reports whether what Git wants is bad for the pool.
func (w Way) Stopped() bool { return w.Governed && w.Permit.Stopped && w.Permit.Hash == w.Hash }

// Hold is the step held for want of a permit. A hold of another kind stays.
func (w Way) Hold(s step.Step) step.Step {
	if s.Held != "" {
		return s
	}
	s.Held, s.HeldReason = step.HeldWave, w.Wait()
	if w.Stopped() {
		s.Held = step.HeldStopped
	}
	return s
}

// Wait says what a held step waits for, until when, and who can end that.
func (w Way) Wait() string {
	unknown := "waits until its place in the waves of " + cmp.Or(strings.Join(w.Permit.Rollouts, " and "), "its FleetRollout") + " is known, which takes a pass"
	if w.Permit.Hash != w.Hash {
		return unknown
	}
	return cmp.Or(w.Permit.Wait, unknown)
}

// Report is how a governed pool stands, as far as that follows from its machines; members
// are those of the group, or of the groups behind the nodegroup.
func (w Way) Report(in Input, pool *intent.Pool, members []observed.Instance, fresh func(observed.Instance) bool) rollout.Pool {
	p := NewGoverned(in, pool)
	p.Hash = w.Hash
	for _, i := range members {
		if !slices.Contains(p.Zones, i.Zone) {
			p.Zones = append(p.Zones, i.Zone)
		}
		if !i.Counts() || !fresh(i) {
			continue
		}
		p.New++
		if ready, _ := in.Machine(pool, i); ready {
			p.Facts.Ready++
		} else {
			p.Facts.Waiting = append(p.Facts.Waiting, in.waiting(i))
		}
	}
	slices.Sort(p.Zones)
	return p
}

// NewGoverned is a governed pool of which nothing but its place is known.
func NewGoverned(in Input, pool *intent.Pool) rollout.Pool {
	p := rollout.Pool{
		ID: rollout.ID{Target: in.Policy.Target, Pool: pool.Key.String()}, Namespace: pool.Key.Namespace, Cluster: pool.ClusterKey.Name,
		Labels: pool.Labels, Account: in.Policy.Account, Region: in.Policy.Region, Revision: in.Commit.Revision,
		Facts: rollout.Facts{NodesFrom: "InService", ReadAt: in.Now},
	}
	if in.Nodes != nil {
		p.Facts.NodesFrom = "nodes"
		if in.Nodes.Err != nil {
			p.Facts.NodesFrom, p.Facts.NodesUnknown = "InService", in.Nodes.Err.Error()
		}
	}
	return p
}

// waiting is a machine that is not ready. Since is zero where nobody knows: AWS says when a
// group's machine was launched only in an answer of its own.
func (in Input) waiting(i observed.Instance) rollout.Machine {
	m := rollout.Machine{Instance: i.ID, Why: i.LifecycleState, Since: in.State.Launched[i.ID]}
	if !i.Ready() {
		return m
	}
	m.Since, m.Why = in.inService(i.ID), "it has not joined the cluster"
	if in.Nodes == nil {
		return m
	}
	if node, joined := in.Nodes.ByInstance[i.ID]; joined {
		m.Why = "the node " + node.Name + " is not Ready"
		if node.Why != "" {
			m.Why += " (" + node.Why + ")"
		}
	}
	return m
}

// Activities are the launches of groups that failed of late, the newest first.
func (in Input) Activities(groups ...string) (out []rollout.Activity) {
	for _, name := range groups {
		if f := in.State.Launches[name].Failure; !f.At.IsZero() {
			out = append(out, rollout.Activity{At: f.At, Cause: f.Message})
		}
	}
	slices.SortFunc(out, func(a, b rollout.Activity) int { return b.At.Compare(a.At) })
	return out
}
