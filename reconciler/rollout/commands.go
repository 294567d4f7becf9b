package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknown is the error of a command about a FleetRollout that does not exist.
var ErrUnknown = errors.New("unknown FleetRollout")

// Find returns the run of a FleetRollout by its name, or by the last part of its name if that is
// unique.
func (r *Record) Find(name string) (*Run, error) {
	var found *Run
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Name == name {
			return run, nil
		}
		if strings.HasSuffix(run.Name, "/"+name) {
			if found != nil {
				return nil, fmt.Errorf("%w: more than one matches, such as %s and %s", ErrUnknown, found.Name, run.Name)
			}
			found = run
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	return found, nil
}

// copied returns a copy of r with runs and bad hashes that may be changed.
func (r Record) copied() Record {
	r.Seq++
	r.Runs, r.Bad, r.Permits = slices.Clone(r.Runs), slices.Clone(r.Bad), slices.Clone(r.Permits)
	for i := range r.Runs {
		r.Runs[i].Members = slices.Clone(r.Runs[i].Members)
	}
	return r
}

// Pause makes a FleetRollout start nothing more. A wave in progress continues until its share of
// machines is replaced, because AWS cannot pause it.
func (r Record) Pause(name string, w Decision) (Record, error) {
	return r.change(name, func(out *Record, run *Run) error {
		run.Paused = &w
		out.withdraw(run, run.PauseText())
		return nil
	})
}

// PauseText describes who paused a run, and how to end the pause.
func (r *Run) PauseText() string {
	return "is paused by " + r.Paused.By + because(r.Paused.Why) + ": weir rollout resume " + r.Name
}

// Resume ends a pause.
func (r Record) Resume(name string) (Record, error) {
	return r.change(name, func(_ *Record, run *Run) error {
		if run.Paused == nil {
			if run.Stopped != nil {
				return fmt.Errorf("%s is stopped, not paused: to start again, change its pools in a commit or run weir reconcile TARGET --retry", run.Name)
			}
			return fmt.Errorf("%s is not paused", run.Name)
		}
		run.Paused = nil
		return nil
	})
}

// Abort stops the change of a FleetRollout, like a failed gate.
func (r Record) Abort(name string, w Decision) (Record, error) {
	return r.change(name, func(out *Record, run *Run) error {
		if !run.Active() {
			return fmt.Errorf("%s has no rollout in progress", run.Name)
		}
		run.Stopped, run.Wait, run.Gated, run.Gathers = &w, "", false, false
		for i := range run.Members {
			out.mark(run, run.Members[i])
		}
		for i := range out.Permits {
			p := &out.Permits[i]
			if bad := out.BadOf(p.ID, p.Hash); bad != nil {
				p.Stop(bad, false)
				p.Seq = out.Seq
			}
		}
		return nil
	})
}

// Retry allows the bad hashes of a target's pools, or of the given pools only, to be rolled out
// again, from the first wave.
func (r Record) Retry(target string, pools []string) (Record, bool) {
	out := r.copied()
	freed := map[string]bool{}
	out.Bad = slices.DeleteFunc(out.Bad, func(b Bad) bool {
		is := b.Target == target && (len(pools) == 0 || slices.Contains(pools, b.Pool))
		if is {
			freed[b.Rollout] = true
		}
		return is
	})
	if len(freed) == 0 {
		return r, false
	}
	for i := range out.Runs {
		if run := &out.Runs[i]; freed[run.Name] && !run.Active() {
			*run = run.idle()
		}
	}
	return out, true
}

func (r Record) change(name string, do func(*Record, *Run) error) (Record, error) {
	out := r.copied()
	run, err := out.Find(name)
	if err == nil {
		err = do(&out, run)
	}
	if err != nil {
		return r, err
	}
	return out, nil
}

// withdraw withdraws all permissions of a run until Next has determined which pools are changing.
func (r *Record) withdraw(run *Run, wait string) {
	for i := range r.Permits {
		p := &r.Permits[i]
		if slices.Contains(p.Rollouts, run.Name) && p.Share > 0 {
			p.Share, p.Wait, p.Gate, p.Ends, p.Seq = 0, run.Name+" "+wait, false, run.ends(Pool{ID: p.ID}), r.Seq
		}
	}
}

// Moves returns the pools whose machines a run replaces now.
func (r *Run) Moves() (out []Member) {
	for _, m := range r.Members {
		if m.Reserved > 0 {
			out = append(out, m)
		}
	}
	return out
}
