package commands

import (
	"errors"
	"net/http"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/rollout"
)

// The addresses of rollouts: what there is, and what people decide about one.
const (
	RolloutsPath = "/api/v1/rollouts"
	RolloutPath  = "/api/v1/rollout"
)

// RolloutRequest asks for something to be done with a FleetRollout.
type RolloutRequest struct {
	// By is who asks, where nobody has proved it.
	By string `json:"by,omitempty"`
	// Do is pause, resume or abort.
	Do     string `json:"do"`
	Name   string `json:"name"`
	Source string `json:"source,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// RolloutList are the FleetRollouts of all sources.
type RolloutList struct {
	Rollouts []Rollout `json:"rollouts"`
}

// Rollout is a FleetRollout with the change that it rolls out, or rolled out last.
type Rollout struct {
	Source string `json:"source"`
	Name   string `json:"name"`
	// Phase is Idle, Gathering, Running, Paused, Stopped or Done.
	Phase    string       `json:"phase"`
	Revision string       `json:"revision,omitempty"`
	Wave     string       `json:"wave,omitempty"`
	Waits    string       `json:"waits,omitempty"`
	Pools    []WavePool   `json:"pools"`
	Gates    []GateAnswer `json:"gates"`
	Bad      []BadHash    `json:"bad"`
}

// WavePool is a pool in its wave.
type WavePool struct {
	Target   string `json:"target"`
	Pool     string `json:"pool"`
	Wave     string `json:"wave"`
	Machines int32  `json:"machines"`
	// Share is how far it may roll, Moves how many machines that still replaces.
	Share int32  `json:"share"`
	Moves int32  `json:"moves"`
	Waits string `json:"waits,omitempty"`
}

// GateAnswer is the last answer of a gate.
type GateAnswer struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	What    string `json:"what,omitempty"`
}

// BadHash is what is rolled out no more to a pool.
type BadHash struct {
	Target string `json:"target"`
	Pool   string `json:"pool"`
	Hash   string `json:"hash"`
	Why    string `json:"why"`
}

// Rollouts are the records of rollouts. A *gates.Fault says what is wrong with a request.
type Rollouts interface {
	List() (RolloutList, error)
	Do(r RolloutRequest) (Rollout, error)
}

// RolloutOf is how a run is shown.
func RolloutOf(source string, record *rollout.Record, run *rollout.Run) Rollout {
	out := Rollout{Source: source, Name: run.Name, Revision: run.Revision, Waits: run.Wait, Phase: "Running", Pools: []WavePool{}, Gates: []GateAnswer{}, Bad: []BadHash{}}
	switch {
	case run.Stopped != nil:
		out.Phase, out.Waits = "Stopped", run.Stopped.Why
	case run.Paused != nil:
		out.Phase = "Paused"
	case run.Began.IsZero():
		out.Phase = "Idle"
	case !run.Ended.IsZero():
		out.Phase = "Done"
	case run.Gathers:
		out.Phase = "Gathering"
	}
	if run.Active() && !run.Gathers {
		out.Wave = run.Spec.WaveName(run.Wave)
	}
	for _, m := range run.Members {
		p := WavePool{Target: m.Target, Pool: m.Pool, Wave: run.Spec.WaveName(m.Wave), Machines: m.Machines, Share: m.Granted, Moves: m.Reserved}
		if permit, known := record.PermitOf(m.ID); known {
			p.Waits = permit.Wait
		}
		out.Pools = append(out.Pools, p)
	}
	for _, g := range run.Gates {
		out.Gates = append(out.Gates, GateAnswer{g.Name, string(g.Verdict), g.What})
	}
	for _, b := range record.Bad {
		if b.Rollout == run.Name {
			out.Bad = append(out.Bad, BadHash{b.Target, b.Pool, b.Hash, b.Why})
		}
	}
	return out
}

// rollouts answers a program what there is.
func (h handler) rollouts(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	list, err := h.Rollouts.List()
	if err != nil {
		h.Logger.Error("rollouts cannot be read", "error", err)
		answer(w, http.StatusInternalServerError, fault("look at weir's log", "the records of rollouts cannot be read"))
		return
	}
	answer(w, http.StatusOK, list)
}

// rollout does what somebody decided about one.
func (h handler) rollout(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	by, err := h.speaker(r)
	if err != nil {
		answer(w, http.StatusForbidden, err)
		return
	}
	var in RolloutRequest
	if err := request(w, r, &in); err != nil {
		answer(w, http.StatusBadRequest, err)
		return
	}
	if by != "" {
		in.By = by // what the request says of itself is not heard
	}
	in.By, in.Reason = gates.Who(in.By), gates.Line(h.Redact(in.Reason), 500)
	out, err := h.Rollouts.Do(in)
	var wrong *gates.Fault
	switch {
	case errors.As(err, &wrong):
		answer(w, http.StatusBadRequest, err)
		return
	case err != nil:
		h.Logger.Error("command failed", "command", "rollout", "error", err)
		answer(w, http.StatusInternalServerError, fault("look at weir's log", "the command could not be done"))
		return
	}
	text := map[string]string{"pause": "paused", "resume": "resumed", "abort": "aborted"}[in.Do] + " the rollout " + out.Name
	if in.Reason != "" {
		text += ": " + in.Reason
	}
	h.Logger.Info("command", "command", "rollout "+in.Do, "by", in.By, "rollout", out.Name, "reason", in.Reason)
	h.Done(Action{Command: "rollout " + in.Do, By: in.By, Text: gates.Line(in.By+" "+text, 600)})
	answer(w, http.StatusOK, out)
}
