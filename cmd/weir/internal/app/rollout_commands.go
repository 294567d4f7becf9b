package app

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/status/commands"
)

// List implements commands.Rollouts.
func (r *rollouts) List() (commands.RolloutList, error) {
	out := commands.RolloutList{Rollouts: []commands.Rollout{}}
	for _, source := range slices.Sorted(maps.Keys(r.app.gen.Load().followers)) {
		record, err := r.ledger.Read(source)
		if err != nil {
			return out, err
		}
		for i := range record.Runs {
			out.Rollouts = append(out.Rollouts, commands.RolloutOf(source, record, &record.Runs[i]))
		}
	}
	return out, nil
}

// Do implements commands.Rollouts.
func (r *rollouts) Do(in commands.RolloutRequest) (out commands.Rollout, err error) {
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
		return out, &gates.Fault{Message: "there is no rollout " + gates.Line(in.Name, 100), Hint: "weir rollout list names them"}
	case 1:
	default:
		return out, &gates.Fault{Message: "several sources have a rollout " + gates.Line(in.Name, 100), Hint: "name one with --source"}
	}
	word := rollout.Word{By: in.By, Why: in.Reason, At: time.Now().UTC().Truncate(time.Millisecond)}
	old, err := r.ledger.Read(sources[0])
	if err != nil {
		return out, err
	}
	var now rollout.Record
	err = r.ledger.Change(nil, sources[0], func(record rollout.Record) (rollout.Record, error) {
		var err error
		switch in.Do {
		case "pause":
			now, err = record.Pause(in.Name, word)
		case "resume":
			now, err = record.Resume(in.Name)
		case "abort":
			now, err = record.Abort(in.Name, word)
		default:
			return record, &gates.Fault{Message: "a rollout cannot do that", Hint: "use the weir command of the same version"}
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
	r.wake()
	run, err := now.Find(in.Name)
	if err != nil {
		return out, err
	}
	return commands.RolloutOf(sources[0], &now, run), nil
}
