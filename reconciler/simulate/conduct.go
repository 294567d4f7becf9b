package simulate

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/rollout/gate"
)

// source is a source whose FleetRollouts are conducted.
type source struct {
	name, revision string
	record         rollout.Record
	specs          []rollout.Spec
	targets        map[string]bool
	asker          *gate.Asker
	// again is the time of the next run without new facts, or zero for none.
	again time.Time
	now   time.Time
}

// askAgain is the time after which a conductor that waits for unknown facts runs again.
const askAgain = 30 * time.Second

// findSources finds the FleetRollouts of all desired states.
func (w *staging) findSources() {
	by := map[string]*source{}
	simulated := map[string]bool{}
	all := slices.Clone(w.scene.Elsewhere)
	for i, p := range w.places {
		all = slices.Insert(all, i, p.batch)
	}
	for i, b := range all {
		for j := range b.Targets {
			d := &b.Targets[j]
			own := i < len(w.places)
			s := by[d.Source]
			switch {
			case !own && (simulated[d.Policy.Target] || s == nil):
				continue
			case own:
				simulated[d.Policy.Target] = true
			}
			if s == nil {
				s = &source{name: d.Source, revision: d.Commit.Revision, targets: map[string]bool{}}
				s.asker = &gate.Asker{Now: func() time.Time { return s.now }, MaxAge: func() time.Duration { return 2 * w.a.Most }}
				if known := w.scene.Rollouts[d.Source]; known != nil {
					s.record = *known
				}
				by[d.Source] = s
			}
			if own {
				s.targets[d.Policy.Target] = true
			}
			if d.Set == nil || d.Policy.Fallback != nil {
				continue
			}
			for _, r := range d.Set.Rollouts {
				s.specs = append(s.specs, rollout.Spec{FleetRollout: r, Target: d.Policy.Target})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if s := by[name]; len(s.specs)+len(s.record.Runs)+len(s.record.Permits)+len(s.record.Bad) > 0 {
			w.sources = append(w.sources, s)
		}
	}
}

// permit gives the targets of a batch their permits.
func (w *staging) permit(b *reconciler.Batch) {
	for _, s := range w.sources {
		g := rollout.NewGovernor(&s.record, s.specs)
		for i := range b.Targets {
			d := &b.Targets[i]
			if d.Source != s.name || d.Set == nil {
				continue
			}
			d.Policy.Gates.Rollouts = g.Permits(d.Policy.Target, d.Set.Pools)
			if d.Policy.Waves != nil {
				d.Policy.Demand(g.Unmet(d.Policy.Waves.Demand, d.Policy.Target, d.Policy.Gates.Rollouts))
			}
			d.Policy.Gates.Activities = len(d.Policy.Gates.Rollouts) > 0 && g.Activities()
			if since := g.Gathers(d.Policy.Target); since.After(b.Fresh) {
				b.Fresh = since
			}
		}
	}
}

// conduct makes the next record of a source's rollouts.
func (w *staging) conduct(s *source, now time.Time) {
	s.now = now
	in := rollout.Input{Revision: s.revision, Specs: s.specs, Missing: map[string]string{}, Fresh: map[string]time.Time{}, Now: now.UTC().Truncate(time.Millisecond)}
	for _, target := range slices.Sorted(maps.Keys(s.targets)) {
		last := w.known.Reports[target]
		switch {
		case last == nil:
			in.Missing[target] = "has not been observed yet"
		case last.Plan == nil || last.Err != nil:
			in.Missing[target] = "has no plan"
		default:
			in.Pools, in.Fresh[target] = append(in.Pools, last.Governed...), last.Fresh
		}
	}
	out := rollout.Next(s.record, in)
	if len(out.Asks) > 0 {
		in.Answers = s.answers(out.Asks, in.Pools)
		out = rollout.Next(s.record, in)
	}
	s.again = out.Again
	if !s.again.IsZero() && !s.again.After(now) {
		s.again = now.Add(askAgain)
	}
	if out.Record.Seq == s.record.Seq {
		return
	}
	old := s.record
	s.record = out.Record
	for _, e := range out.Events {
		switch e.Kind {
		case rollout.Began, rollout.Advanced:
			w.rec.Wave(now, e.Rollout+": "+e.Text)
		default:
			w.rec.Fact(now, e.Rollout+": "+e.Text)
		}
	}
	for _, p := range out.Record.Permits {
		if before, had := old.PermitOf(p.ID); !had || before.Seq != p.Seq || out.Record.Gathers(p.Target).After(old.Gathers(p.Target)) {
			w.wake(p.Target, now)
		}
	}
	for _, p := range old.Permits {
		if _, still := out.Record.PermitOf(p.ID); !still {
			w.wake(p.Target, now)
		}
	}
	if s.again.IsZero() || s.again.After(now.Add(time.Second)) {
		s.again = now.Add(time.Second) // for consequences of the record itself
	}
}

// answers returns the answers of gates. It judges the owners' reports, and assumes that gates outside the
// simulation pass.
func (s *source) answers(asks []rollout.Ask, pools []rollout.Pool) map[string]rollout.Answer {
	var judged []rollout.Ask
	out := map[string]rollout.Answer{}
	for _, a := range asks {
		if a.Gate.Prometheus != nil || a.Gate.CloudWatchAlarms != nil {
			out[a.Key()] = rollout.Answer{Verdict: rollout.Pass, What: "is assumed to pass", At: s.now}
			continue
		}
		judged = append(judged, a)
	}
	maps.Copy(out, s.asker.Answers(context.Background(), judged, pools))
	return out
}
