package page

import (
	"net/http"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/report"
)

type apiPools struct {
	Pools         []plan.PoolStatus         `json:"pools"`
	LaunchConfigs []plan.LaunchConfigStatus `json:"launchConfigs"`
}

func (w *web) apiPools(rw http.ResponseWriter, r *http.Request) {
	w.sendJSON(rw, r, apiPools{Pools: w.current.Targets.Pools(), LaunchConfigs: w.current.Targets.LaunchConfigs()})
}

type apiTargets struct {
	// Held is the reason why weir writes nothing, missing if it may write.
	Held    string      `json:"held,omitempty"`
	Targets []apiTarget `json:"targets"`
}

// apiTarget is a target with its last pass. Plan has the schema weir.dev/plan/v1, and is null without a
// plan. Outcomes are from the same pass.
type apiTarget struct {
	current.Target
	Phase       report.Phase       `json:"phase"`
	Suspended   bool               `json:"suspended"`
	Ref         string             `json:"ref"`
	Revision    string             `json:"revision"`
	Subject     string             `json:"subject"`
	LastPass    time.Time          `json:"lastPass,omitzero"`
	Duration    float64            `json:"durationSeconds"`
	NextDue     time.Time          `json:"nextDue,omitzero"`
	Error       string             `json:"error,omitempty"`
	Diagnostics diag.List          `json:"diagnostics"`
	Plan        *plan.Plan         `json:"plan"`
	Steps       history.StepCounts `json:"steps"`
	Outcomes    []step.Outcome     `json:"outcomes"`
	Pools       int                `json:"pools"`
	// PoolsAt is the time at which the pools were last read. It is before LastPass if that pass could not
	// read them.
	PoolsAt time.Time `json:"poolsAt,omitzero"`
	// Rendering is the commit that is still being rendered. UnansweredSince is the time since which the
	// current pass has been waiting for a response from AWS.
	Rendering       current.Rendering `json:"rendering,omitzero"`
	UnansweredSince time.Time         `json:"unansweredSince,omitzero"`
	// HeldTo describes the hold of a target whose followed commit cannot be rendered. It is missing if the
	// target is not held.
	HeldTo *report.Kept `json:"heldTo,omitempty"`
}

func (w *web) apiTargets(rw http.ResponseWriter, r *http.Request) {
	out := apiTargets{Held: w.current.Daemon.Facts().Unwritten, Targets: []apiTarget{}}
	for _, t := range w.current.Targets.All() {
		out.Targets = append(out.Targets, apiTargetOf(t))
	}
	w.sendJSON(rw, r, out)
}

// apiTargetOf returns a target for the API. Before its first pass, it has no plan and no times.
func apiTargetOf(t current.TargetState) apiTarget {
	a := apiTarget{
		Target: t.Target, Phase: t.Phase, NextDue: t.NextDue, Pools: len(t.Pools), PoolsAt: t.PoolsAt,
		Diagnostics: diag.List{}, Outcomes: []step.Outcome{}, Rendering: t.Rendering, UnansweredSince: t.Unanswered,
	}
	r := t.Last
	if r == nil {
		return a
	}
	a.Suspended, a.Ref, a.Revision, a.Subject = r.Suspended, r.Ref, r.Revision, r.Subject
	a.LastPass, a.Duration, a.Plan, a.Steps = r.StartedAt, r.Duration.Seconds(), r.Plan, history.CountSteps(r.Outcomes)
	a.Diagnostics = append(a.Diagnostics, r.Diagnostics...)
	if r.Err != nil {
		a.Error = r.Err.Error()
	}
	a.Outcomes = append(a.Outcomes, r.Outcomes...)
	a.HeldTo = report.KeptOf(r, t.HeldSince)
	return a
}
