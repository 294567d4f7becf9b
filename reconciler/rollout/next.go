package rollout

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// Settle is the time for which the start of a run waits for targets that have not reported the
// effect of a commit on their pools. Late targets are rolled last.
const Settle = 2 * time.Minute

// Input contains the facts for the next record.
type Input struct {
	// Revision is the followed commit.
	Revision string
	// Specs lists the FleetRollouts of all renders of the source. Unread is the set of targets
	// whose files do not render, so that their FleetRollouts are unknown.
	Specs  []Spec
	Unread map[string]bool
	// Pools contains the last reports about pools.
	Pools []Pool
	// Missing maps targets that have not reported the effect of Revision on their pools to the
	// reason. Their entries in Pools may be outdated.
	Missing map[string]string
	// Fresh maps each target to the minimum time of the lookup answers in its last report.
	Fresh map[string]time.Time
	// Answers contains the answers of gates, by Ask.Key.
	Answers map[string]Answer
	Now     time.Time
}

// Output is the next record, with the requests to gates and the events.
type Output struct {
	Record Record
	Asks   []Ask
	Events []Event
	// Again is the time at which to call Next even without news, zero for none.
	Again time.Time
}

// Kind is a kind of event.
type Kind string

// Kinds of events.
const (
	Began    Kind = "fleet-rollout-began"
	Advanced Kind = "fleet-rollout-wave"
	Finished Kind = "fleet-rollout-ended"
	Stopped  Kind = "fleet-rollout-stopped"
)

// Event is a milestone of a run.
type Event struct {
	Kind    Kind
	Rollout string
	Text    string
}

// Next returns the record after old.
func Next(old Record, in Input) Output {
	n := &next{in: in, old: old, out: Output{Record: Record{Seq: old.Seq, Bad: slices.Clone(old.Bad)}}, pools: map[ID]*Pool{}}
	n.in.Pools = slices.Clone(in.Pools)
	slices.SortFunc(n.in.Pools, func(a, b Pool) int { return compare(a.ID, b.ID) })
	for i := range n.in.Pools {
		n.pools[n.in.Pools[i].ID] = &n.in.Pools[i]
	}
	for _, r := range n.runs() {
		if n.conduct(r) {
			n.out.Record.Runs = append(n.out.Record.Runs, *r)
		}
	}
	n.crossed()
	n.permits()
	if len(n.out.Record.Bad) == 0 {
		n.out.Record.Bad = nil // the form after a record is written and read
	}
	if !reflect.DeepEqual(n.out.Record, old) {
		n.out.Record.Seq++
		for i := range n.out.Record.Permits {
			p := &n.out.Record.Permits[i]
			if before, had := old.PermitOf(p.ID); !had || before.Seq == 0 || !samePermit(before, *p) {
				p.Seq = n.out.Record.Seq
			}
		}
	}
	return n.out
}

type next struct {
	in    Input
	old   Record
	out   Output
	pools map[ID]*Pool
}

// ByName returns FleetRollouts by name. Equal ones of several targets are one. Different ones with
// the same name get the target as a prefix.
func ByName(specs []Spec) map[string]Spec {
	out := map[string]Spec{}
	specs = slices.SortedFunc(slices.Values(specs), func(a, b Spec) int {
		return cmp.Or(cmp.Compare(a.Key.String(), b.Key.String()), cmp.Compare(a.Target, b.Target))
	})
	for _, s := range specs {
		name := s.Key.String()
		if first, taken := out[name]; taken {
			if same(first, s) {
				continue
			}
			name = s.Target + ":" + name
		}
		out[name] = s
	}
	return out
}

// same reports whether two FleetRollouts are equal, whichever targets render them.
func same(a, b Spec) bool {
	a.Target = b.Target
	one, errOne := json.Marshal(a)
	two, errTwo := json.Marshal(b)
	return errOne == nil && errTwo == nil && bytes.Equal(one, two)
}

// runs returns the earlier runs, and one for each new FleetRollout, by name.
func (n *next) runs() []*Run {
	specs := ByName(n.in.Specs)
	var out []*Run
	for i := range n.old.Runs {
		r := n.old.Runs[i]
		r.Members, r.Left, r.Gates, r.Failed = slices.Clone(r.Members), slices.Clone(r.Left), slices.Clone(r.Gates), slices.Clone(r.Failed)
		s, there := specs[r.Name]
		delete(specs, r.Name)
		r.Next, r.Gone = nil, !there && !n.in.Unread[r.Spec.Target]
		switch {
		case !there || same(r.Spec, s):
			if there {
				r.Spec.Target = s.Target
			}
		case moves(n.pools, &r):
			r.Next = &s
		default:
			r.Spec = s
			if r.Active() {
				r = r.idle() // the remaining pools start again at the first of the new waves
			}
		}
		out = append(out, &r)
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		out = append(out, &Run{Name: name, Spec: specs[name]})
	}
	slices.SortFunc(out, func(a, b *Run) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// governed returns the pools that a run governs.
func governed(in Input, r *Run) (out []Pool) {
	for _, p := range in.Pools {
		if Selects(r.Spec.Selector, p) {
			out = append(out, p)
		}
	}
	return out
}

// moves reports whether machines of a pool of the run are being replaced now.
func moves(pools map[ID]*Pool, r *Run) bool {
	return r.Active() && slices.ContainsFunc(r.Members, func(m Member) bool {
		p := pools[m.ID]
		return p != nil && (p.Moving != nil || p.Hash == "" && m.Reserved > 0)
	})
}

// due reports whether a pool has machines to replace, the wanted hash is not bad, and nothing else
// is wrong.
func (n *next) due(p Pool) bool {
	return p.Pending && p.Failed == "" && p.Hash != "" && !n.stopped(p)
}

// stopped reports whether the wanted configuration of a pool was stopped, or contains a whole
// stopped change.
func (n *next) stopped(p Pool) bool {
	b, _ := n.out.Record.bad(p)
	return b != nil
}

// permits gives each governed pool the permit that all of its runs allow.
func (n *next) permits() {
	for _, p := range n.in.Pools {
		if p.Hash == "" { // it could not be planned, which does not change its permit
			if before, had := n.old.PermitOf(p.ID); had {
				n.keep(before)
				continue
			}
		}
		var all []string
		permit := Permit{ID: p.ID, Hash: p.Hash, Share: 100}
		for i := range n.out.Record.Runs {
			r := &n.out.Record.Runs[i]
			if !Selects(r.Spec.Selector, p) && (r.Next == nil || !Selects(r.Next.Selector, p)) {
				continue
			}
			all = append(all, r.Name)
			share, wait := r.allows(p)
			if share < permit.Share {
				permit.Share, permit.Wait, permit.Gate, permit.Ends = share, wait, r.Gated && r.watches(p.ID), r.ends(p)
			}
			if r.watches(p.ID) {
				permit.Watched, permit.Alarms = true, append(permit.Alarms, r.Spec.alarms()...)
			}
		}
		slices.Sort(permit.Alarms)
		permit.Alarms = slices.Compact(permit.Alarms)
		if bad, still := n.out.Record.bad(p); bad != nil {
			permit.Stop(bad, still)
		}
		if permit.Rollouts = all; len(all) > 0 || n.out.Record.everBad(p.ID) {
			n.keep(permit)
		}
	}
	for _, p := range n.old.Permits { // pools of silent owners keep their permits
		if _, missing := n.in.Missing[p.Target]; missing && n.pools[p.ID] == nil {
			n.keep(p)
		}
	}
	slices.SortFunc(n.out.Record.Permits, func(a, b Permit) int { return compare(a.ID, b.ID) })
}

func (n *next) keep(p Permit) {
	if before, had := n.old.PermitOf(p.ID); had {
		p.Seq = before.Seq
	}
	n.out.Record.Permits = append(n.out.Record.Permits, p)
}

func samePermit(a, b Permit) bool { b.Seq = a.Seq; return reflect.DeepEqual(a, b) }

// Governor finds the permits of pools from a record and from the FleetRollouts in Git, which may be
// newer than the record.
type Governor struct {
	record *Record
	specs  map[string]Spec
	bad    map[ID][]Bad
}

// NewGovernor returns a Governor for a record and the FleetRollouts of all renders of the source.
func NewGovernor(r *Record, specs []Spec) *Governor {
	g := &Governor{record: r, specs: ByName(specs), bad: map[ID][]Bad{}}
	for _, run := range r.Runs {
		if _, there := g.specs[run.Name]; !there {
			g.specs[run.Name] = run.Spec
		}
	}
	for _, b := range r.Bad {
		g.bad[b.ID] = append(g.bad[b.ID], b)
	}
	return g
}

// Activities reports whether a gate of an active run needs failed launches.
func (g *Governor) Activities() bool {
	return slices.ContainsFunc(g.record.Runs, func(r Run) bool {
		return r.Active() && slices.ContainsFunc(r.Spec.Gates, func(gate intent.RolloutGate) bool { return gate.FailedActivities != nil })
	})
}

// Gathers returns Record.Gathers.
func (g *Governor) Gathers(target string) time.Time { return g.record.Gathers(target) }

// Idle reports whether nothing is governed.
func (g *Governor) Idle() bool { return len(g.specs)+len(g.record.Permits)+len(g.bad) == 0 }

// Of returns the permit of a pool. A pool that is not in the record yet, but that a FleetRollout
// selects or that has a bad hash, may start nothing. Of returns false for a pool that is not
// governed.
func (g *Governor) Of(p Pool) (Permit, bool) {
	if permit, known := g.record.PermitOf(p.ID); known {
		permit.Stops = g.bad[p.ID]
		return permit, true
	}
	var all []string
	for name, s := range g.specs {
		if Selects(s.Selector, p) {
			all = append(all, name)
		}
	}
	if len(all) == 0 && len(g.bad[p.ID]) == 0 {
		return Permit{}, false
	}
	slices.Sort(all)
	return Permit{ID: p.ID, Rollouts: all, Stops: g.bad[p.ID], Wait: "waits until its place in the waves of " + cmp.Or(strings.Join(all, " and "), "its FleetRollout") + " is decided, in the next pass"}, true
}

// Permits returns the permits of a target's governed pools, nil if nothing is governed.
func (g *Governor) Permits(target string, pools []intent.Pool) map[string]Permit {
	if g.Idle() {
		return nil
	}
	out := map[string]Permit{}
	for i := range pools {
		key := pools[i].Key
		p := Pool{ID: ID{Target: target, Pool: key.String()}, Namespace: key.Namespace, Labels: pools[i].Labels}
		if permit, governed := g.Of(p); governed {
			out[p.Pool] = permit
		}
	}
	return out
}

// Concerns reports whether a FleetRollout may govern pools of a target.
func (s Spec) Concerns(target string) bool {
	return len(s.Selector.Targets) == 0 || slices.ContainsFunc(s.Selector.Targets, func(pattern string) bool { return fits(pattern, target) })
}

func itoa(n int) string { return strconv.Itoa(n) }

// questions returns the requests of a run to its gates.
func (r *Run) questions() (out []Ask) {
	var about []Subject
	for _, m := range r.Members {
		if r.watches(m.ID) {
			about = append(about, Subject{ID: m.ID, Hash: m.Hash})
		}
	}
	for _, g := range r.Spec.Gates {
		out = append(out, Ask{Rollout: r.Name, Gate: g, Pools: about, Since: r.Since})
	}
	return out
}

// alarms returns the CloudWatch alarms of the gates.
func (s Spec) alarms() (out []string) {
	for _, g := range s.Gates {
		if g.CloudWatchAlarms != nil {
			out = append(out, g.CloudWatchAlarms.Alarms...)
		}
	}
	return out
}

// watches reports whether the gates of a run need a pool's facts.
func (r *Run) watches(id ID) bool {
	i, is := r.member(id)
	return is && r.Active() && !r.Gathers && r.Members[i].Wave <= r.Wave
}

// outside reports whether the gate depends on a system that does not know the change.
func outside(g intent.RolloutGate) bool { return g.CloudWatchAlarms != nil || g.Prometheus != nil }
