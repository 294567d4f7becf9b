package app

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/rollout/ledger"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/proposal/reverts"
	"github.com/weir-gitops/weir/status/pulls"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// rollouts conducts FleetRollouts. For each source that this daemon owns, it computes the next record from
// the reports, and triggers a read of pools whose permits have changed. Owners of accounts only read the
// record.
type rollouts struct {
	rolloutsOptions
	// answers contains the last answers, by source. Only the goroutine of run uses it.
	answers map[string]map[string]rollout.Answer
	// lastRead contains the records of other members at the last read.
	lastRead map[string]*rollout.Record
	// leads contains the sources that this daemon owned when it last read the records of other members.
	leads map[string]bool
}

// rolloutsOptions lists the parts of the daemon that rollouts use.
type rolloutsOptions struct {
	ledger *ledger.Ledger
	// due says that there is new data to conduct with.
	due signal
	// gates answers queries of gates.
	gates  answerer
	passes *passes
	// sources returns the sources of the current configuration. stopped wakes the proposers of a source.
	sources func() follow.Sources
	stopped func(source string)
	clock   *clock.Clock
	current *current.State
	log     *slog.Logger
	redact  func(string) string
}

func newRollouts(o rolloutsOptions) *rollouts {
	return &rollouts{rolloutsOptions: o, answers: map[string]map[string]rollout.Answer{}, lastRead: map[string]*rollout.Record{}}
}

// answerer answers gates. It waits for a provider for a few seconds at most; without a response, the result
// is unknown.
type answerer interface {
	Answers(ctx context.Context, asks []rollout.Ask, pools []rollout.Pool) map[string]rollout.Answer
}

// fleetSpecs contains the FleetRollouts of a source's renders. unread lists the targets whose files cannot
// be read now.
type fleetSpecs struct {
	specs   []rollout.Spec
	unread  map[string]bool
	targets map[string]string // the rendered commit of each target
}

// specsOf returns the FleetRollouts of a composition, by source.
func specsOf(batches map[reconciler.ScopeKey]reconciler.Batch) map[string]fleetSpecs {
	out := map[string]fleetSpecs{}
	for _, b := range batches {
		for i := range b.Targets {
			d := &b.Targets[i]
			s, known := out[d.Source]
			if !known {
				s = fleetSpecs{unread: map[string]bool{}, targets: map[string]string{}}
			}
			s.targets[d.Policy.Target] = d.Commit.Revision
			if !d.Whole || d.Set == nil {
				s.unread[d.Policy.Target] = true
			}
			if d.Set != nil && d.Policy.Fallback == nil {
				for _, r := range d.Set.Rollouts {
					s.specs = append(s.specs, rollout.Spec{FleetRollout: r, Target: d.Policy.Target})
				}
			}
			out[d.Source] = s
		}
	}
	return out
}

// askEvery is the interval between checks of gates while part of a FleetRollout is changing, bakes or waits
// for gates.
const askEvery = 5 * time.Second

// run conducts until ctx ends.
func (r *rollouts) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.due:
		case <-timer.C:
		}
		if again := r.turn(ctx); !again.IsZero() {
			timer.Reset(max(time.Until(again), 10*time.Millisecond))
		}
	}
}

// turn conducts all sources that this daemon owns, and returns the time of the next turn if nothing new
// happens.
func (r *rollouts) turn(ctx context.Context) (again time.Time) {
	sources := r.sources()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		f := sources[name]
		if !f.Leads() {
			continue
		}
		var in state.Store
		if f.Member != nil {
			if in = sources.Held(name); in == nil {
				again = time.Now().Add(askEvery) // the lease is ending, or is not in use yet
				continue
			}
		}
		at, err := r.conduct(ctx, in, name, f.At())
		if err != nil && ctx.Err() == nil {
			r.log.Error("cannot conduct rollouts; pools of FleetRollouts wait", "source", name, "error", err)
			at = time.Now().Add(askEvery)
		}
		if again.IsZero() || !at.IsZero() && at.Before(again) {
			again = at
		}
	}
	return again
}

// conduct advances the FleetRollouts of a source with the newest reports, and stores their record if it
// changes. again is the time of the next turn, zero if only new reports matter.
func (r *rollouts) conduct(ctx context.Context, store state.Store, source, revision string) (again time.Time, err error) {
	old, err := r.ledger.Read(source)
	if err != nil {
		return again, err
	}
	input, known := r.input(source, revision, old)
	if !known {
		return again, nil
	}
	input.Now = r.now()
	input.Answers = r.answers[source]
	first := rollout.Next(*old, input)
	if len(first.Asks) > 0 && r.gates != nil {
		input.Answers = r.gates.Answers(ctx, first.Asks, input.Pools)
		r.answers[source] = input.Answers
		input.Now = r.now()
	}
	out := rollout.Next(*old, input)
	if out.Record.Seq == old.Seq {
		return r.nextTurn(out), nil
	}
	err = r.ledger.Change(store, source, func(now rollout.Record) (rollout.Record, error) {
		out = rollout.Next(now, input)
		return out.Record, nil
	})
	if err != nil {
		return again, err
	}
	for _, e := range out.Events {
		r.current.Activity.Add(events.Event{Kind: string(e.Kind), Source: source, Revision: revision, Name: e.Rollout, Text: e.Text})
		if e.Kind == rollout.Stopped {
			r.stopped(source)
		}
	}
	r.changed(old, &out.Record)
	return r.nextTurn(out), nil
}

// now returns the time of AWS's clock, which the reports about machines, activities and alarms also use.
// This machine's clock may be set at any time.
func (r *rollouts) now() time.Time {
	return r.clock.Earliest().UTC().Truncate(time.Millisecond)
}

// nextTurn returns the time of the next turn if nothing new arrives first.
func (r *rollouts) nextTurn(out rollout.Output) time.Time {
	wait := time.Minute // because this machine's clock may be set
	switch {
	case len(out.Asks) > 0:
		wait = askEvery
	case out.Again.IsZero():
		return out.Again
	}
	if !out.Again.IsZero() {
		wait = min(wait, out.Again.Sub(r.now()))
	}
	return time.Now().Add(wait)
}

// input returns the input of a source's turn. It returns false before the first composition, and if there
// is nothing to conduct.
func (r *rollouts) input(source, revision string, old *rollout.Record) (in rollout.Input, known bool) {
	r.passes.read(func(m *memory) { in, known = r.inputOf(m, source, revision, old) })
	return in, known
}

// inputOf collects the facts about a source's FleetRollouts for rollout.Next. It returns false while the
// source is not composed yet, or if it has no FleetRollouts and no record of any.
func (r *rollouts) inputOf(m *memory, source, revision string, old *rollout.Record) (rollout.Input, bool) {
	s, composed := m.specs[source]
	if m.batches == nil || !composed || len(s.specs)+len(old.Runs)+len(old.Permits)+len(old.Bad) == 0 {
		return rollout.Input{}, false
	}
	in := rollout.Input{Revision: revision, Specs: s.specs, Unread: s.unread, Missing: map[string]string{}, Fresh: map[string]time.Time{}}
	concerned := func(target string) bool {
		return slices.ContainsFunc(s.specs, func(spec rollout.Spec) bool { return spec.Concerns(target) }) ||
			slices.ContainsFunc(old.Runs, func(run rollout.Run) bool { return run.Spec.Concerns(target) })
	}
	for target, rendered := range s.targets {
		last := m.before.Reports[target]
		if last != nil && last.Plan != nil {
			in.Pools, in.Fresh[target] = append(in.Pools, last.Governed...), last.Fresh
		}
		if !concerned(target) {
			continue
		}
		switch {
		case s.unread[target]:
			in.Missing[target] = "cannot be rendered at " + wording.Short(revision)
		case last == nil:
			in.Missing[target] = "has not been observed yet"
		case last.Plan == nil || last.Err != nil:
			in.Missing[target] = r.planless(last)
		case last.Revision != rendered || rendered != revision:
			in.Missing[target] = "has not been observed since " + wording.Short(revision)
		}
	}
	return in, true
}

// planless returns the reason why a report has no plan. It removes the request ID that AWS adds to each
// error, because the record would otherwise change in every pass.
func (r *rollouts) planless(of *plan.Report) string {
	why, more := report.FirstFault(of)
	var refused *observed.Error
	if errors.As(of.Err, &refused) && refused.RequestID != "" {
		why = strings.ReplaceAll(why, " (request "+refused.RequestID+")", "")
	}
	if why == "" {
		return "has no plan"
	}
	return "has no plan: " + r.redact(report.AndMore(why, more))
}

// changed triggers a read of the pools whose permits have changed, and ends passes that started with a
// permit that was withdrawn.
func (r *rollouts) changed(old, now *rollout.Record) {
	nudged, withdrawn := map[string]bool{}, map[string]bool{}
	for _, p := range now.Permits {
		before, had := old.PermitOf(p.ID)
		if had && before.Seq == p.Seq {
			continue
		}
		if before.Share != p.Share || before.Hash != p.Hash || before.Stopped != p.Stopped || before.Watched != p.Watched || now.Gathers(p.Target).After(old.Gathers(p.Target)) {
			nudged[p.Target] = true
		}
		if had && before.Share > 0 && p.Share == 0 {
			withdrawn[p.Target] = true
		}
	}
	for _, p := range old.Permits { // pools that are no longer governed
		if _, still := now.PermitOf(p.ID); !still {
			nudged[p.Target] = true
		}
	}
	r.passes.again(withdrawn, nudged)
}

// handleNews triggers a read of pools whose permits another member has written. It wakes the conductor of
// rollouts if a record has changed, or if this daemon owns other sources than before. Reports of other
// members also wake it.
func (r *rollouts) handleNews() {
	sources, leads, news := r.sources(), map[string]bool{}, false
	for source, f := range sources {
		if f.Leads() && sources.Held(source) != nil {
			leads[source] = true
		}
		now, err := r.ledger.Read(source)
		if err != nil {
			r.log.Error("the record of rollouts cannot be read", "source", source, "error", err)
			continue
		}
		if old := r.lastRead[source]; old == nil || old.Seq != now.Seq {
			news = true
			if r.lastRead[source] = now; old != nil {
				r.changed(old, now)
			}
		}
	}
	if news || !maps.Equal(leads, r.leads) {
		r.leads = leads
		r.due.send()
	}
}

// retry permits the stopped changes of a target to be rolled out again.
func (r *rollouts) retry(target string) error {
	t, _ := r.current.Targets.Find(target)
	record, err := r.ledger.Read(t.Source)
	if err != nil || !slices.ContainsFunc(record.Bad, func(b rollout.Bad) bool { return b.Target == target }) {
		return err
	}
	return r.ledger.Change(nil, t.Source, func(now rollout.Record) (rollout.Record, error) {
		next, _ := now.Retry(target, nil)
		return next, nil
	})
}

// standing returns the state of a source's rollouts at a commit.
func (r *rollouts) standing(source, head string) (out reverts.Standing, err error) {
	if out.Record, err = r.ledger.Read(source); err != nil {
		return out, err
	}
	input, known := r.input(source, head, out.Record)
	if out.Pools, out.Missing = input.Pools, input.Missing; !known {
		err = pulls.ErrEarly
	}
	return out, err
}
