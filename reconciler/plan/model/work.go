package model

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Result collects what planning adds to a plan. It only grows: a caller that may not want
// a part makes it in a fork, and takes or drops it.
type Result struct {
	Steps []step.Step
	Diags diag.List
	Needs observed.Needs
	// Conflicts are steps that stand for names that somebody else uses. They are all that
	// is left of a result that is blocked: it holds an error.
	Conflicts []step.Step
	Blocked   bool
	// Adopts says that something is taken over.
	Adopts bool
}

// Take adds what another result holds.
func (r *Result) Take(o Result) {
	r.Steps, r.Conflicts = append(r.Steps, o.Steps...), append(r.Conflicts, o.Conflicts...)
	r.Diags = append(r.Diags, o.Diags...)
	r.Needs.Append(o.Needs)
	r.Blocked, r.Adopts = r.Blocked || o.Blocked, r.Adopts || o.Adopts
}

// Note records a diagnostic about the pool's infrastructure object. Positions
// are attached by the caller, who can ask the render.
func (r *Result) Note(sev diag.Severity, pool *intent.Pool, path intent.Path, code, summary, detail string) {
	r.NoteAt(sev, pool.Infrastructure, path, code, summary, detail)
}

// NoteAt is note about another object of the pool.
func (r *Result) NoteAt(sev diag.Severity, object intent.ObjectRef, path intent.Path, code, summary, detail string) {
	r.Diags = append(r.Diags, diag.Diagnostic{
		Severity: sev, Code: code, Summary: summary, Detail: cmp.Or(detail, diag.Hint(code)),
		Object: object.String(), Field: path.String(),
	})
}

// Blockf records an error that keeps the pool from being planned.
func (r *Result) Blockf(pool *intent.Pool, path intent.Path, code, summary, detail string) {
	r.blockAt(pool.Infrastructure, path, code, summary, detail)
}

// blockAt is blockf about another object of the pool.
func (r *Result) blockAt(object intent.ObjectRef, path intent.Path, code, summary, detail string) {
	r.Blocked = true
	r.NoteAt(diag.Error, object, path, code, summary, detail)
}

// Step adds a step of a pool.
func (r *Result) Step(pool *intent.Pool, s step.Step) {
	s.Pool = pool.Key.String()
	r.Steps = append(r.Steps, s)
}

// CodeConflict is the diagnostic of a name that somebody else uses.
const CodeConflict = "conflict"

// Conflict records that a wanted name belongs to a resource that is not ours. Nothing
// of the pool runs.
func (r *Result) Conflict(pool *intent.Pool, kind step.Resource, name string, o Ownership) {
	remedy := cmp.Or(o.remedy, "rename the pool or remove the existing resource")
	r.Blockf(pool, nil, CodeConflict, "the "+string(kind)+" "+name+" exists and is not touched: "+o.Why, remedy)
	r.Conflicts = append(r.Conflicts, step.Step{
		Verb: step.Adopt, Resource: kind, Pool: pool.Key.String(), Name: name, Reason: o.Why, Held: step.HeldConflict, HeldReason: o.Why, HeldEnds: remedy,
	})
}

// Unread blocks the pool where err says that something of it could not be read.
func (r *Result) Unread(pool *intent.Pool, what string, err *observed.Error) bool {
	if err == nil {
		return false
	}
	r.Blockf(pool, nil, "read-denied", "AWS does not let weir read "+what+", so nothing of the pool is changed: "+err.Message,
		"allow weir the action that the message names; it looks again at the next pass")
	return true
}

// Work is the planning of one pool, or of what pools share: what it reads, and the
// result so far.
type Work struct {
	In *Input
	// Hold holds the planned steps.
	Hold step.Hold
	// Pool is the pool of the work, nil for a template that pools share. Pools are all
	// pools of the target.
	Pool  *PoolPlan
	Pools PoolPlans
	// Replacing are the pools whose nodegroups are being replaced, by EKS cluster. Resolved
	// are the images of the versions that the plan makes, by what Git says of them. All
	// work on a target shares both.
	Replacing map[string]string
	Resolved  map[string]ReviewedImage
	// Said are the diagnostics of the work that this one is part of.
	Said diag.List
	// Contested says that no further version is made: something undoes each rollout.
	Contested bool
	// Levels says that the pool's launch configuration decides which kubelet its machines
	// have.
	Levels bool
	Result
}

// Fork begins a part of the work, with a separate result. It knows what was taken over
// before it. Facts about the pool are facts, whatever becomes of the part.
func (c *Work) Fork() *Work {
	part := *c
	part.Said, part.Result = append(slices.Clip(c.Said), c.Diags...), Result{Adopts: c.Adopts}
	return &part
}

// Version is a version of a template. Where it is yet to be read, it is asked for.
func (r *Result) Version(t observed.Template, number int64) (v observed.TemplateVersion, read bool) {
	v, read = t.Versions[number]
	if !read && number > 0 && !t.Missing[number] {
		r.Needs.Versions = append(r.Needs.Versions, observed.TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(number, 10)})
	}
	return v, read
}
