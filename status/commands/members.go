package commands

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/weir-gitops/weir/reconciler/gates"
)

// The paths of the commands that move work between the members of an instance.
const (
	DrainPath = "/api/v1/drain"
	TakePath  = "/api/v1/take"
)

// Move is a request to move work between members.
type Move struct {
	// By names the user if the caller is not authenticated.
	By string `json:"by,omitempty"`
	// Member is the member that drains or takes. If it is empty, it is the member that receives the
	// request.
	Member string `json:"member,omitempty"`
	// Undo ends draining.
	Undo bool `json:"undo,omitempty"`
	// Scope identifies the work to take: a key, account/region, or a target.
	Scope string `json:"scope,omitempty"`
}

// Moved is the response to a Move.
type Moved struct {
	Member string `json:"member"`
	// Scope is the key of the taken work.
	Scope string `json:"scope,omitempty"`
	Undo  bool   `json:"undo,omitempty"`
	// Followed says that the move is complete. Otherwise it is stored, and the member executes it as soon as
	// it can.
	Followed bool `json:"heeded"`
	// Left is the number of scopes and sources that a draining member still owns.
	Left int `json:"left,omitempty"`
}

// Members gives access to the members of an instance. The engine stores requests, and each member reads the
// ones for it there. Errors that describe an invalid request are of type *gates.Fault.
type Members interface {
	Drain(ctx context.Context, m Move) (Moved, error)
	Take(ctx context.Context, m Move) (Moved, error)
	// Followers waits a few seconds until the owners of targets have read all requests that were stored
	// before. An empty list means all owners. It returns the names of the owners that have read them. all
	// reports whether every owner has.
	Followers(ctx context.Context, targets []string) (by []string, all bool)
}

// move answers the API request to drain a member, or to give a scope to a member, with the given function.
func (h handler) move(w http.ResponseWriter, r *http.Request, name string, do func(context.Context, Move) (Moved, error)) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	by, err := h.speaker(r)
	if err != nil {
		answer(w, http.StatusForbidden, err)
		return
	}
	var in Move
	if err := request(w, r, &in); err != nil {
		answer(w, http.StatusBadRequest, err)
		return
	}
	if by != "" {
		in.By = by // ignore the name in the request
	}
	in.By = gates.Who(in.By)
	out, err := do(r.Context(), in)
	if err != nil {
		status, told := failed(err)
		if status != http.StatusBadRequest {
			h.Logger.Error("command failed", "command", name, "error", err)
		}
		answer(w, status, told)
		return
	}
	text := in.By + " drained " + out.Member
	switch {
	case name == "take":
		text = in.By + " gave " + out.Scope + " to " + out.Member
	case out.Undo:
		text = in.By + " let " + out.Member + " take work again"
	}
	h.Logger.Info("command", "command", name, "by", in.By, "member", out.Member, "scope", out.Scope, "undo", out.Undo, "heeded", out.Followed)
	h.Done(Action{Command: name, By: in.By, Text: gates.Line(text, 600)})
	answer(w, http.StatusOK, out)
}

// speaker returns the user who gives a command, empty for a program on this machine that is not
// authenticated.
func (h handler) speaker(r *http.Request) (string, error) {
	by := h.Who(r)
	if by == "" {
		return "", local(r, jsonType)
	}
	return by, program(r, jsonType)
}

// request decodes the body of a command.
func request(w http.ResponseWriter, r *http.Request, into any) error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil || dec.More() {
		return fault("use the weir command of the same version", "the request cannot be read")
	}
	return nil
}

// alone implements Members for a single daemon.
type alone struct{}

// Drain implements Members.
func (alone) Drain(context.Context, Move) (Moved, error) { return Moved{}, errAlone() }

// Take implements Members.
func (alone) Take(context.Context, Move) (Moved, error) { return Moved{}, errAlone() }

// Followers implements Members.
func (alone) Followers(context.Context, []string) ([]string, bool) { return nil, false }

func errAlone() error {
	return fault("stop it, or write a section coordination into its configuration and run several", "this daemon does not share its work")
}
