package model

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Waves contains the demands in a target's configuration on the FleetRollouts of its source, and
// all these FleetRollouts by name.
type Waves struct {
	rollout.Demand
	Specs map[string]rollout.Spec
}

// Demand adds to the policy the demands on waves that a change does not meet.
func (p *Policy) Demand(unmet map[string]string) {
	if len(unmet) == 0 {
		return
	}
	all := maps.Clone(unmet)
	maps.Copy(all, p.Unmet) // entries about too few waves in Git take precedence
	p.Unmet = all
}

// Way limits how much of a pool may be rolled to the desired configuration. A pool that no
// FleetRollout governs may be rolled whole. A governed pool starts nothing beyond its permit. The
// permit is for one hash of the launch configuration. The part of the pool that is left waits, and
// is no drift.
type Way struct {
	Governed bool
	Hash     string
	Permit   rollout.Permit
	// Still is the hash of an earlier change that was stopped and that the desired state still
	// contains.
	Still string
}

// WayTo returns the Way of a pool to the configuration that hash identifies and values describe.
func (in Input) WayTo(pool *intent.Pool, hash func() string, values func() []rollout.Field) Way {
	permit, governed := in.Policy.Gates.Rollouts[pool.Key.String()]
	if !governed {
		return Way{}
	}
	w := Way{Governed: true, Hash: hash(), Permit: permit}
	if b := rollout.Still(permit.Stops, w.Hash, values); b != nil {
		w.Permit.Hash, w.Still = w.Hash, b.Hash
		w.Permit.Stop(b, true)
	}
	return w
}

// Share returns the percentage of the pool's machines that may run the desired configuration.
func (w Way) Share() int32 {
	switch {
	case !w.Governed:
		return 100
	case w.Permit.Hash != w.Hash || w.Permit.Stopped:
		return 0
	}
	return w.Permit.Share
}

// Stopped reports whether the desired configuration was stopped because it is bad for the pool.
func (w Way) Stopped() bool { return w.Governed && w.Permit.Stopped && w.Permit.Hash == w.Hash }

// Hold returns the step as held until a permit allows it. A step with another hold is unchanged.
func (w Way) Hold(s step.Step) step.Step {
	if s.Held != "" {
		return s
	}
	s.Held, s.HeldReason = step.HeldWave, w.Wait()
	switch {
	case w.Stopped():
		s.Held = step.HeldStopped
	case w.Permit.Gate && w.Permit.Hash == w.Hash:
		s.Held = step.HeldGate
	}
	if w.Permit.Hash == w.Hash || w.unrecorded() {
		s.HeldEnds = w.Permit.Ends
	}
	return s
}

// Wait explains why a held step waits, until when, and who can end it.
func (w Way) Wait() string {
	unknown := "waits until its place in the waves of " + cmp.Or(strings.Join(w.Permit.Rollouts, " and "), "its FleetRollout") + " is decided, in the next pass"
	if w.unrecorded() {
		return w.Permit.Wait
	}
	if w.Permit.Hash != w.Hash {
		return unknown
	}
	return cmp.Or(w.Permit.Wait, unknown)
}

// unrecorded reports whether no record of the pool exists yet.
func (w Way) unrecorded() bool {
	return w.Permit.Hash == "" && w.Permit.Seq == 0 && len(w.Permit.Rollouts) > 0 && w.Permit.Wait != ""
}

// Report returns the state of a governed pool, as far as the pool's machines show it. members are
// the instances of the group, or of the groups behind the nodegroup.
func (w Way) Report(in Input, pool *intent.Pool, members []observed.Instance, fresh func(observed.Instance) bool) rollout.Pool {
	p := NewGoverned(in, pool)
	p.Hash, p.Still = w.Hash, w.Still
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
			p.Facts.Waiting = append(p.Facts.Waiting, waiting(in.State, in.Memory, in.Now, in.Nodes, pool, i))
		}
	}
	slices.Sort(p.Zones)
	judgeWaiting(in.Memory, in.Now, &p)
	return p
}

// NewGoverned returns a governed pool with its names, place and source of node readiness, without a
// hash.
func NewGoverned(in Input, pool *intent.Pool) rollout.Pool {
	p := rollout.Pool{
		ID: rollout.ID{Target: in.Policy.Target, Pool: pool.Key.String()}, Namespace: pool.Key.Namespace, Cluster: pool.ClusterKey.Name,
		Labels: pool.Labels, Account: in.Policy.Account, Region: in.Policy.Region, Revision: in.Commit.Revision,
		Watched: in.Policy.Gates.Rollouts[pool.Key.String()].Watched,
		Facts:   rollout.Facts{NodesFrom: rollout.FromInService, ReadAt: in.Now},
	}
	if in.Nodes != nil {
		p.Facts.NodesFrom = rollout.FromNodes
		if in.Nodes.Err != nil {
			p.Facts.NodesFrom, p.Facts.NodesUnknown = rollout.FromInService, in.Nodes.Err.Error()
		}
	}
	return p
}

// settlesWithin is the time after a machine has joined in which a change of its node's readiness
// counts as part of joining.
const settlesWithin = time.Minute

// waiting returns the entry of a machine that is not ready. Since is the launch time, or the time
// when a Ready node stopped being Ready. It is zero if unknown, because AWS returns launch times
// only in a separate call. The launch time of a machine from a warm pool is not used, as the
// machine was launched long before it was needed.
func waiting(state *observed.State, memory Memory, now time.Time, nodes *Nodes, pool *intent.Pool, i observed.Instance) rollout.Machine {
	m := rollout.Machine{Instance: i.ID, Why: i.LifecycleState, Since: state.Launched[i.ID]}
	warm := pool.Group != nil && pool.Group.Options.WarmPool != nil
	if warm {
		m.Since = time.Time{}
	}
	if !i.Ready() {
		return m
	}
	if m.Why = "it has not joined the cluster"; m.Since.IsZero() {
		m.Since = inService(memory, state, now, i.ID)
	}
	if nodes == nil {
		return m
	}
	if node, joined := nodes.ByInstance[i.ID]; joined {
		m.Why = "the node " + node.Name + " is not Ready"
		if node.Why != "" {
			m.Why += " (" + node.Why + ")"
		}
		if node.Since.After(m.Since) && node.Since.Sub(node.Created) > settlesWithin {
			m.Since = node.Since
		}
	}
	return m
}

// judgeWaiting sorts the waiting machines of a pool: the longest wait first, unknown times last. If
// readiness is read from nodes, it sets Failed once one of them has been in service without a Ready
// node for joinsWithin. Such a rollout has failed, even if AWS reports success.
func judgeWaiting(memory Memory, now time.Time, p *rollout.Pool) {
	f := &p.Facts
	slices.SortFunc(f.Waiting, func(a, b rollout.Machine) int {
		return cmp.Or(cmp.Compare(unknownLast(a.Since), unknownLast(b.Since)), cmp.Compare(a.Instance, b.Instance))
	})
	for _, m := range f.Waiting {
		since, inService := memory.InService[m.Instance]
		if since.Before(m.Since) {
			since = m.Since
		}
		if f.NodesFrom == rollout.FromNodes && inService && now.Sub(since) >= joinsWithin && p.Failed == "" {
			p.Failed = strconv.Itoa(int(p.New-f.Ready)) + " of its " + strconv.Itoa(int(p.New)) + " machines of the new version have no Ready node, and one is in service for " + joinsWithin.String() + " and longer: " + m.Instance + " (" + m.Why + ")"
		}
	}
}

func unknownLast(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return t.UnixNano()
}

// NoteActivities gives the conductor the recent failed launches of the governed pools' groups,
// newest first. weir reads them from AWS after planning.
func (in Input) NoteActivities(governed []rollout.Pool) {
	for i := range in.Set.Pools {
		pool := &in.Set.Pools[i]
		n := slices.IndexFunc(governed, func(p rollout.Pool) bool { return p.Pool == pool.Key.String() })
		if n < 0 {
			continue
		}
		var out []rollout.Activity
		var read time.Time
		for k, name := range in.GroupsOf(pool) {
			l := in.State.Launches[name]
			if k == 0 || l.Read.Before(read) {
				read = l.Read
			}
			for _, f := range l.Failed {
				out = append(out, rollout.Activity{At: f.At, Cause: f.Message})
			}
		}
		slices.SortFunc(out, func(a, b rollout.Activity) int { return b.At.Compare(a.At) })
		for j := range out {
			if j >= causesTold {
				out[j].Cause = ""
			}
		}
		governed[n].Facts.Activities, governed[n].Facts.ActivitiesRead = out, read
	}
}

// causesTold is the number of failed launches for which a report contains AWS's text.
const causesTold = 3

// GroupsOf returns the names of a pool's groups: its own, or those behind its nodegroups.
func (in Input) GroupsOf(pool *intent.Pool) []string {
	if pool.Group != nil {
		return []string{pool.Group.Name}
	}
	var out []string
	for _, n := range in.NodegroupsOf(pool) {
		out = append(out, n.GroupNames...)
	}
	return out
}
