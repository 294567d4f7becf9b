package commands

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/source/upload"
)

// PlanPath is the path that plans a work tree. The query contains the repositories, targets and ref. The
// first two parameters may be repeated.
const PlanPath = "/api/v1/plan"

// PlanWithin is the maximum duration of such a plan, and sendWithin the maximum time to send the tree.
const (
	PlanWithin = 3 * time.Minute
	sendWithin = 2 * time.Minute
)

// Draft is a work tree that a user sent.
type Draft struct {
	By string
	// Repositories are the identities of the repository of the tree. Targets are the targets to plan.
	Repositories, Targets []string
	// Archive is read when it is the draft's turn.
	Archive io.Reader
}

// Planned is the plan of a draft, in the schema weir.dev/plans/v1 with additional fields.
type Planned struct {
	Schema string       `json:"schema"`
	Plans  []*plan.Plan `json:"plans"`
	// Source is the source that the draft replaces. Against is the commit of the source that the draft is
	// compared with.
	Source  string `json:"source"`
	Against string `json:"against"`
	// Locations maps targets to their accounts and regions.
	Locations map[string]Location `json:"places"`
	// Gone lists the targets that the draft removes. Unaffected is the number of targets that it does not
	// change. Withheld lists the targets that were rendered without their secrets.
	Gone       []string `json:"gone"`
	Unaffected int      `json:"unaffected"`
	Withheld   []string `json:"withheld"`
}

// Location is the account and region of a target.
type Location struct {
	Account string `json:"account"`
	Region  string `json:"region"`
}

// ErrBusy means that a draft must wait for other drafts.
var ErrBusy = errors.New("not now")

// plan answers a program that sends a work tree.
func (h handler) plan(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	by := h.Who(r)
	err := program(r, upload.ContentType)
	if by == "" {
		by, err = "somebody", local(r, upload.ContentType)
	}
	if err != nil {
		answer(w, http.StatusForbidden, err)
		return
	}
	until := http.NewResponseController(w)
	// If the deadline cannot be set, the server's own applies.
	_ = until.SetReadDeadline(time.Now().Add(sendWithin))
	_ = until.SetWriteDeadline(time.Now().Add(sendWithin + 2*PlanWithin))
	asked := r.URL.Query()
	began := time.Now()
	h.Logger.Info("planning an uploaded work tree", "by", by, "targets", gates.Line(strings.Join(asked["target"], ", "), 200))
	out, err := h.Plan(r.Context(), Draft{
		By: by, Repositories: asked["repository"], Targets: asked["target"], Archive: http.MaxBytesReader(w, r.Body, upload.MaxPacked),
	})
	h.Logger.Info("a work tree was planned", "by", by, "took", time.Since(began).Round(time.Millisecond), "error", err)
	var wrong *gates.Fault
	switch {
	case err == nil:
		answer(w, http.StatusOK, out)
	case errors.As(err, &wrong):
		answer(w, http.StatusBadRequest, err)
	case errors.Is(err, ErrBusy):
		w.Header().Set("Retry-After", "30")
		answer(w, http.StatusTooManyRequests, fault("try again in a minute", "%v", err))
	case r.Context().Err() != nil:
		// the client has disconnected
	default:
		answer(w, http.StatusInternalServerError, fault("see weir's log", "the work tree could not be planned: %s", gates.Line(h.Redact(err.Error()), 500)))
	}
}
