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

// Result collects the results of planning. It only grows: a caller that may not want a part makes
// it in a fork, and then adds or drops it.
type Result struct {
	Steps []step.Step
	Diags diag.List
	Needs observed.Needs
	// Conflicts lists steps for names that somebody else uses. A blocked result, which has an
	// error, keeps only these.
	Conflicts []step.Step
	Blocked   bool
	// Adopts reports whether a step adopts a resource.
	Adopts bool
}

// Take adds everything in another result.
func (r *Result) Take(o Result) {
	r.Steps, r.Conflicts = append(r.Steps, o.Steps...), append(r.Conflicts, o.Conflicts...)
	r.Diags = append(r.Diags, o.Diags...)
	r.Needs.Append(o.Needs)
	r.Blocked, r.Adopts = r.Blocked || o.Blocked, r.Adopts || o.Adopts
}

// Note records a diagnostic about the pool's infrastructure object. The caller adds positions, as
// it can ask the render.
func (r *Result) Note(sev diag.Severity, pool *intent.Pool, path intent.Path, code, summary, detail string) {
	r.NoteAt(sev, pool.Infrastructure, path, code, summary, detail)
}

// NoteAt is Note for another object of the pool.
func (r *Result) NoteAt(sev diag.Severity, object intent.ObjectRef, path intent.Path, code, summary, detail string) {
	r.Diags = append(r.Diags, diag.Diagnostic{
		Severity: sev, Code: code, Summary: summary, Detail: cmp.Or(detail, diag.Hint(code)),
		Object: object.String(), Field: path.String(),
	})
}

// Blockf records an error that prevents planning of the pool.
func (r *Result) Blockf(pool *intent.Pool, path intent.Path, code, summary, detail string) {
	r.blockAt(pool.Infrastructure, path, code, summary, detail)
}

// blockAt is Blockf for another object of the pool.
func (r *Result) blockAt(object intent.ObjectRef, path intent.Path, code, summary, detail string) {
	r.Blocked = true
	r.NoteAt(diag.Error, object, path, code, summary, detail)
}

// Step adds a step of a pool.
func (r *Result) Step(pool *intent.Pool, s step.Step) {
	s.Pool = pool.Key.String()
	r.Steps = append(r.Steps, s)
}

// CodeConflict is the diagnostic code for a name that somebody else uses.
const CodeConflict = "conflict"

// Conflict records that a wanted name belongs to a resource of somebody else. No step of the pool
// runs.
func (r *Result) Conflict(pool *intent.Pool, kind step.Resource, name string, o Ownership) {
	remedy := cmp.Or(o.remedy, "rename the pool or remove the existing resource")
	r.Blockf(pool, nil, CodeConflict, "the "+string(kind)+" "+name+" exists and is not touched: "+o.Why, remedy)
	r.Conflicts = append(r.Conflicts, step.Step{
		Verb: step.Adopt, Resource: kind, Pool: pool.Key.String(), Name: name, Reason: o.Why, Held: step.HeldConflict, HeldReason: o.Why, HeldEnds: remedy,
	})
}

// Unread blocks the pool if err reports that weir could not read a part of it.
func (r *Result) Unread(pool *intent.Pool, what string, err *observed.Error) bool {
	if err == nil {
		return false
	}
	r.Blockf(pool, nil, "read-denied", "AWS does not let weir read "+what+", so nothing of the pool is changed: "+err.Message,
		"allow weir the action that the message names; it looks again at the next pass")
	return true
}

// Work is the planning of one pool, or of a template that pools share: its input, and the result so
// far.
type Work struct {
	In *Input
	// Hold is the hold on all planned steps.
	Hold step.Hold
	// Pool is the pool of the work, nil for a template that pools share. Pools contains all pools
	// of the target.
	Pool  *PoolPlan
	Pools PoolPlans
	// Replacing maps each EKS cluster to the pool whose nodegroup is being replaced. Resolved maps
	// the SourceHash of each version that the plan makes to its image. All work on a target shares
	// both maps.
	Replacing map[string]string
	Resolved  map[string]ReviewedImage
	// Said lists the diagnostics of the work that this one is part of.
	Said diag.List
	// Contested is set if something undoes each rollout. The planner then makes no further version.
	Contested bool
	// Levels reports whether the pool's launch configuration decides the kubelet version of its
	// machines.
	Levels bool
	Result
}

// Fork starts a part of the work, with a separate result. The part sees the diagnostics and
// adoptions so far. Facts that it sets in Pool stay, even if the caller drops the result.
func (c *Work) Fork() *Work {
	part := *c
	part.Said, part.Result = append(slices.Clip(c.Said), c.Diags...), Result{Adopts: c.Adopts}
	return &part
}

// Version returns a version of a template. If the version is unread and may exist, Version adds it
// to Needs.
func (r *Result) Version(t observed.Template, number int64) (v observed.TemplateVersion, read bool) {
	v, read = t.Versions[number]
	if !read && number > 0 && !t.Missing[number] {
		r.Needs.Versions = append(r.Needs.Versions, observed.TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(number, 10)})
	}
	return v, read
}
