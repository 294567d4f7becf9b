package commands

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/reconciler/gates"
)

// AcceptPath is the path for requests to keep the values in AWS.
const AcceptPath = "/api/v1/accept"

// AcceptRequest requests a pull request that keeps AWS's values of a pool, for all drifted fields or for
// named ones.
type AcceptRequest struct {
	// By names the user if the caller is not authenticated.
	By     string   `json:"by,omitempty"`
	Target string   `json:"target"`
	Pool   string   `json:"pool"`
	Fields []string `json:"fields,omitempty"`
}

// Accepted is the resulting pull request.
type Accepted struct {
	Schema string         `json:"schema"`
	Target string         `json:"target"`
	Pool   string         `json:"pool"`
	Number int64          `json:"number"`
	URL    string         `json:"url"`
	Branch string         `json:"branch"`
	Fields []accept.Field `json:"fields"`
	// More lists further steps of weir after the merge, which are not about the accepted fields.
	More []string `json:"more"`
}

// accept answers the API request to keep a change that was made in AWS.
func (h handler) accept(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	by, err := h.speaker(r)
	if err != nil {
		answer(w, http.StatusForbidden, err)
		return
	}
	var in AcceptRequest
	if err := request(w, r, &in); err != nil {
		answer(w, http.StatusBadRequest, err)
		return
	}
	if by != "" {
		in.By = by // ignore the name in the request
	}
	out, _, err := h.keeps(r.Context(), in)
	if err != nil {
		status, told := failed(err)
		answer(w, status, told)
		return
	}
	answer(w, http.StatusOK, out)
}

// keeps opens the pull request, and returns a sentence that names the requester.
func (h handler) keeps(ctx context.Context, in AcceptRequest) (out Accepted, text string, err error) {
	in.By = gates.Who(in.By)
	if in.Target == "" || in.Pool == "" || len(in.Fields) > 100 || slices.ContainsFunc(in.Fields, func(f string) bool { return f == "" || len(f) > 500 }) {
		return out, "", fault("name a target and one of its pools", "the request names no pool, or unknown fields")
	}
	if out, err = h.Accept(ctx, in); err != nil {
		if status, _ := failed(err); status != http.StatusBadRequest {
			h.Logger.Error("command failed", "command", "accept", "error", err)
		}
		return out, "", err
	}
	text = gates.Line(in.By+" requested to keep AWS's values of pool "+out.Pool+" of "+out.Target+": "+out.URL, 600)
	h.Logger.Info("command", "command", "accept", "by", in.By, "target", gates.Line(in.Target, 80), "pool", gates.Line(in.Pool, 80), "url", out.URL)
	h.Done(Action{Command: "accept", By: in.By, Request: gates.Request{Target: out.Target, Pool: out.Pool}, Targets: []string{out.Target}, Text: text})
	return out, text, nil
}

// acceptForm handles the same request from a form of the page.
func (h handler) acceptForm(w http.ResponseWriter, r *http.Request, by, back string) {
	_, text, err := h.keeps(r.Context(), AcceptRequest{By: by, Target: r.PostFormValue("target"), Pool: r.PostFormValue("pool"), Fields: strings.Fields(r.PostFormValue("fields"))})
	if err != nil {
		status, told := failed(err)
		h.Refuse(w, status, told, back)
		return
	}
	h.Say(w, text+".")
	http.Redirect(w, r, back, http.StatusSeeOther)
}
