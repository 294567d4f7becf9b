package app

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/waves"
)

// Any reports whether there is a FleetRollout, or a target that may have to wait for its turn.
func (r *rollouts) Any() bool {
	turns := false
	if r.passes.read(func(m *memory) { turns = m.takesTurns() }); turns {
		return true
	}
	for source := range r.sources() {
		if record, err := r.ledger.Read(source); err != nil || len(record.Runs) > 0 {
			return true
		}
	}
	return false
}

// List implements commands.Rollouts. Any member can answer, because all members read the record and the
// owners' reports.
func (r *rollouts) List() (waves.List, error) {
	out := waves.List{Rollouts: []waves.Rollout{}, Turns: r.turns()}
	var pools map[rollout.ID]rollout.Pool
	for _, source := range slices.Sorted(maps.Keys(r.sources())) {
		record, err := r.ledger.Read(source)
		if err != nil {
			return out, err
		}
		if len(record.Runs) > 0 && pools == nil {
			pools = r.reported()
		}
		for i := range record.Runs {
			out.Rollouts = append(out.Rollouts, r.shown(source, record, &record.Runs[i], pools))
		}
	}
	return out, nil
}

// turns returns the targets that waited for their turn when last seen.
func (r *rollouts) turns() []waves.Turn {
	var reports []*plan.Report
	r.passes.read(func(m *memory) { reports = m.reports() })
	out := waves.Turns(reports)
	for i := range out {
		out[i].Waits = r.redact(out[i].Waits)
	}
	return out
}

// reported returns the governed pools as last seen.
func (r *rollouts) reported() (out map[rollout.ID]rollout.Pool) {
	r.passes.read(func(m *memory) { out = m.governed() })
	return out
}

func (r *rollouts) shown(source string, record *rollout.Record, run *rollout.Run, pools map[rollout.ID]rollout.Pool) waves.Rollout {
	return waves.Of(source, record, run, pools, r.now()).Redacted(r.redact)
}

// Do implements commands.Rollouts.
func (r *rollouts) Do(in commands.RolloutRequest) (out waves.Rollout, err error) {
	list, err := r.List()
	if err != nil {
		return out, err
	}
	var sources []string
	for _, one := range list.Rollouts {
		record, err := r.ledger.Read(one.Source)
		if err != nil {
			return out, err
		}
		if found, err := record.Find(in.Name); err == nil && found.Name == one.Name && (in.Source == "" || in.Source == one.Source) {
			sources = append(sources, one.Source)
		}
	}
	switch len(sources) {
	case 0:
		return out, &gates.Fault{Message: fmt.Sprintf("unknown rollout %q", gates.Line(in.Name, 100)), Hint: list.Nearest(in.Name)}
	case 1:
	default:
		return out, &gates.Fault{Message: "several sources have a rollout " + gates.Line(in.Name, 100), Hint: "name one with --source"}
	}
	word := rollout.Decision{By: in.By, Why: in.Reason, At: r.now()}
	old, err := r.ledger.Read(sources[0])
	if err != nil {
		return out, err
	}
	var now rollout.Record
	err = r.ledger.Change(nil, sources[0], func(record rollout.Record) (rollout.Record, error) {
		var err error
		if run, _ := record.Find(in.Name); run != nil && in.Revision != "" && run.Revision != in.Revision {
			return record, &gates.Fault{Message: run.Name + " now rolls out another change than the one shown", Hint: "load it again"}
		}
		switch in.Do {
		case "pause":
			now, err = record.Pause(in.Name, word)
		case "resume":
			now, err = record.Resume(in.Name)
		case "abort":
			now, err = record.Abort(in.Name, word)
		default:
			return record, &gates.Fault{Message: "unknown command for a rollout", Hint: "use the weir command of the same version"}
		}
		if err != nil {
			err = &gates.Fault{Message: err.Error(), Hint: "weir rollout show " + gates.Line(in.Name, 100)}
		}
		return now, err
	})
	if err != nil {
		return out, err
	}
	r.changed(old, &now)
	r.due.send()
	run, err := now.Find(in.Name)
	if err != nil {
		return out, err
	}
	return r.shown(sources[0], &now, run, r.reported()), nil
}
