// Package commands receives commands over HTTP: API requests from programs, and forms of the page. It
// checks who may give commands; package gates executes them. A program must send a header that shows that
// it is not a page in a browser. Without authentication, commands are accepted only from this machine.
package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/weir-gitops/weir/reconciler/gates"
)

// The paths of the commands, and the header that each request must have. A form of a page cannot send it,
// and neither can a script of another origin.
const (
	SuspendPath   = "/api/v1/suspend"
	ResumePath    = "/api/v1/resume"
	ApprovePath   = "/api/v1/approve"
	UnapprovePath = "/api/v1/unapprove"
	ReconcilePath = "/api/v1/reconcile"
	RecordsPath   = "/api/v1/control"
	Header        = "X-Weir-Command"
)

const jsonType = "application/json"

// maxRequest is the maximum size of a request body.
const maxRequest = 64 << 10

func fault(hint, format string, args ...any) error {
	return &gates.Fault{Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Options configures the HTTP handler of commands.
type Options struct {
	Book   *gates.Recorder
	Daemon gates.Daemon
	// Members gives access to the members that share the work; nil for a single daemon.
	Members Members
	// Rollouts executes commands about FleetRollouts; nil rejects them.
	Rollouts Rollouts
	Logger   *slog.Logger
	// Redact removes secrets from texts that users wrote.
	Redact func(string) string
	// Who returns the name of an authenticated and authorized caller. It returns an empty name for an
	// unknown caller; such callers can give commands only from programs on this machine. If Who is nil, all
	// callers are unknown.
	Who func(*http.Request) string
	// Plan plans a draft; nil disables plans.
	Plan func(context.Context, Draft) (*Planned, error)
	// Accept opens a pull request that keeps the values in AWS; nil disables this.
	Accept func(context.Context, AcceptRequest) (Accepted, error)
	// Done is called after each successful command.
	Done func(Action)
	// Say makes the next page in the same browser show the result of a form, and Refuse makes it show why a
	// form had no effect. Without them, no forms are accepted.
	Say    func(http.ResponseWriter, string)
	Refuse func(w http.ResponseWriter, status int, wrong *gates.Fault, back string)
}

// Action is a successful command.
type Action struct {
	// Command is suspend, resume, approve, unapprove, reconcile, accept, drain or take.
	Command string
	By      string
	Request gates.Request
	// Targets lists the affected targets. It is empty if all are affected, or if they are unknown.
	Targets []string
	// Text describes the action in a sentence that starts with the user.
	Text string
}

type handler struct{ Options }

// Handler serves the commands, as API and as forms of the page. It passes all other requests to next.
func Handler(o Options, next http.Handler) http.Handler {
	if o.Who == nil {
		o.Who = func(*http.Request) string { return "" }
	}
	if o.Done == nil {
		o.Done = func(Action) {}
	}
	h := handler{o}
	mux := http.NewServeMux()
	mux.Handle("/", next)
	for path, do := range commands {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { h.api(w, r, strings.TrimPrefix(path, "/api/v1/"), do) })
	}
	if h.Members == nil {
		h.Members = alone{}
	}
	mux.HandleFunc("POST "+DrainPath, func(w http.ResponseWriter, r *http.Request) { h.move(w, r, "drain", h.Members.Drain) })
	mux.HandleFunc("POST "+TakePath, func(w http.ResponseWriter, r *http.Request) { h.move(w, r, "take", h.Members.Take) })
	mux.HandleFunc("GET "+RecordsPath, h.records)
	if o.Rollouts != nil {
		mux.HandleFunc("GET "+RolloutsPath, h.rollouts)
		mux.HandleFunc("POST "+RolloutPath, h.rollout)
	}
	if o.Accept != nil {
		mux.HandleFunc("POST "+AcceptPath, h.accept)
	}
	if o.Plan != nil {
		mux.HandleFunc("POST "+PlanPath, h.plan)
	}
	if o.Say != nil {
		mux.HandleFunc("POST "+formPrefix+"{command}", h.form)
	}
	return mux
}

type command func(*gates.Recorder, gates.Daemon, gates.Request) (gates.Answer, error)

var commands = map[string]command{SuspendPath: gates.Suspend, ResumePath: gates.Resume, ApprovePath: gates.Approve, UnapprovePath: gates.Unapprove, ReconcilePath: gates.Reconcile}

// api answers the API request for the command with the given name. An authenticated caller replaces the
// name in the request.
func (h handler) api(w http.ResponseWriter, r *http.Request, name string, do command) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	by, err := h.speaker(r)
	if err != nil {
		answer(w, http.StatusForbidden, err)
		return
	}
	var in gates.Request
	if err := request(w, r, &in); err != nil {
		answer(w, http.StatusBadRequest, err)
		return
	}
	if by != "" {
		in.By = by // ignore the name in the request
	}
	out, _, err := h.do(r.Context(), name, do, in)
	if err != nil {
		status, told := failed(err)
		answer(w, status, told)
		return
	}
	answer(w, http.StatusOK, out)
}

// failed returns the response to a failed command. It contains errors that the user can fix; all other
// errors are only in the log.
func failed(err error) (status int, told *gates.Fault) {
	if errors.As(err, &told) {
		return http.StatusBadRequest, told
	}
	if told, ok := gates.Unstored(err); ok {
		return http.StatusServiceUnavailable, told
	}
	return http.StatusInternalServerError, &gates.Fault{Message: "the command failed", Hint: "see weir's log"}
}

// do executes a command, logs it, and returns its description.
func (h handler) do(ctx context.Context, name string, do command, in gates.Request) (gates.Answer, Action, error) {
	in.Reason = h.Redact(in.Reason)
	out, err := do(h.Book, h.Daemon, in)
	var wrong *gates.Fault
	if err != nil {
		if !errors.As(err, &wrong) {
			h.Logger.Error("command failed", "command", name, "error", err)
		}
		return gates.Answer{}, Action{}, err
	}
	d := Action{Command: name, By: gates.Who(in.By), Request: in, Targets: append(out.Plans, in.Targets...)}
	if in.Target != "" {
		d.Targets = append(d.Targets, in.Target)
	}
	d.Text = gates.Line(d.By+" "+action(name, in, out), 600)
	h.Logger.Info("command", "command", name, "by", d.By, "target", gates.Line(in.Target, 80), "targets", in.Targets,
		"pool", in.Pool, "for", in.For, "reason", gates.Line(in.Reason, 500), "digest", gates.Line(in.Digest, 80))
	h.Done(d)
	if h.Members != Members(alone{}) {
		out.HeededBy, out.Stored = h.followers(ctx, name, in, out)
	}
	return out, d, nil
}

// followers returns the names of the owners that have read a command, and reports whether other owners have
// not read it yet, so that it is only stored for them.
func (h handler) followers(ctx context.Context, name string, in gates.Request, out gates.Answer) (by []string, stored bool) {
	targets := append(append([]string{}, out.Plans...), out.Reconciled...)
	if in.Target != "" {
		targets = append(targets, in.Target)
	}
	if (name == "approve" || name == "unapprove") && len(targets) == 0 {
		return nil, true // the plan is unknown here; its owner applies the command once there is such a plan
	}
	by, all := h.Members.Followers(ctx, targets)
	return by, !all
}

func (h handler) records(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	answer(w, http.StatusOK, h.Book.Read())
}

func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer could not be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // ignore a disconnected reader
}
