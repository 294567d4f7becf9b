package commands

import (
	"net/http"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/waves"
)

// The paths that list rollouts, and act on one.
const (
	RolloutsPath = "/api/v1/rollouts"
	RolloutPath  = "/api/v1/rollout"
)

// RolloutRequest requests an action on a FleetRollout.
type RolloutRequest struct {
	// By names the user if the caller is not authenticated.
	By string `json:"by,omitempty"`
	// Do is pause, resume or abort.
	Do     string `json:"do"`
	Name   string `json:"name"`
	Source string `json:"source,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Revision is the change that the user saw. If another change is being rolled out by now, nothing
	// happens. Empty means any change.
	Revision string `json:"revision,omitempty"`
}

// Rollouts gives access to the records of rollouts. Errors that describe an invalid request are of type
// *gates.Fault.
type Rollouts interface {
	List() (waves.List, error)
	Do(r RolloutRequest) (waves.Rollout, error)
}

// rollouts lists the rollouts for an API request.
func (h handler) rollouts(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	list, err := h.Rollouts.List()
	if err != nil {
		h.Logger.Error("rollouts cannot be read", "error", err)
		answer(w, http.StatusInternalServerError, fault("see weir's log", "the records of rollouts cannot be read"))
		return
	}
	answer(w, http.StatusOK, list)
}

// rollout answers the API request for an action on a rollout.
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
		in.By = by // ignore the name in the request
	}
	out, _, err := h.decide(in)
	if err != nil {
		status, told := failed(err)
		answer(w, status, told)
		return
	}
	answer(w, http.StatusOK, out)
}

// decide executes an action, and describes it in a sentence that starts with the user.
func (h handler) decide(in RolloutRequest) (out waves.Rollout, text string, err error) {
	in.By, in.Reason = gates.Who(in.By), gates.Line(h.Redact(in.Reason), 500)
	if out, err = h.Rollouts.Do(in); err != nil {
		if status, _ := failed(err); status != http.StatusBadRequest {
			h.Logger.Error("command failed", "command", "rollout", "error", err)
		}
		return out, "", err
	}
	text = in.By + " " + map[string]string{"pause": "paused", "resume": "resumed", "abort": "aborted"}[in.Do] + " the rollout " + out.Name
	if in.Reason != "" {
		text += ": " + in.Reason
	}
	text = gates.Line(text, 600)
	h.Logger.Info("command", "command", "rollout "+in.Do, "by", in.By, "rollout", out.Name, "reason", in.Reason)
	h.Done(Action{Command: "rollout " + in.Do, By: in.By, Text: text})
	return out, text, nil
}

// rolloutForm executes an action of a form of the page.
func (h handler) rolloutForm(w http.ResponseWriter, r *http.Request, by, back string) {
	_, text, err := h.decide(RolloutRequest{
		By: by, Do: r.PostFormValue("do"), Name: r.PostFormValue("name"), Source: r.PostFormValue("source"), Reason: r.PostFormValue("reason"), Revision: r.PostFormValue("revision"),
	})
	if err != nil {
		status, told := failed(err)
		h.Refuse(w, status, told, back)
		return
	}
	h.Say(w, text+".")
	http.Redirect(w, r, back, http.StatusSeeOther)
}
