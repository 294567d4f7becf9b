package basis

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// AddAll adds the entries of a map to another, which may be nil.
func AddAll[K comparable, V any](to *map[K]V, more map[K]V) {
	if *to == nil && len(more) > 0 {
		*to = make(map[K]V, len(more))
	}
	maps.Copy(*to, more)
}

// Outstanding is a wish of Git that AWS does not fulfil yet although no step is left to
// plan: it passes by itself, or a person has to look at it.
type Outstanding struct {
	// Severity is Info for what passes by itself, Warning for what needs a person's
	// look; it, Reason and Message are those of the condition Ready.
	Severity, Reason, Message string
	// Failure is the pool's FailureReason, "" where it has not failed, and Cause its
	// FailureCause.
	Failure, Cause string
}

// Outstands records that something that Git asks for of the pool is outstanding.
func (r *Result) Outstands(severity, reason, message string) {
	r.Outstanding = &Outstanding{Severity: severity, Reason: reason, Message: message}
}

// Fails makes the pool report its outstanding work as a failure.
func (r *Result) Fails(code, cause string) {
	r.Outstanding.Failure, r.Outstanding.Cause = code, cause
}

// Result is the result of planning a pool, or a part of it. It only grows: a caller
// that may not want a part makes it in a fork, and takes or drops it.
type Result struct {
	Steps []step.Step
	Diags diag.List
	Needs observed.Needs
	// Conflicts are steps that stand for names that somebody else uses. They are all that
	// is left of a result that is blocked: it holds an error.
	Conflicts []step.Step
	Blocked   bool
	// Waits is set where the pool cannot be planned yet though nothing is wrong with it.
	Waits bool
	// Contested says that no further version is made: something undoes each rollout.
	Contested bool
	// Adopts says that something is taken over, Levels that the launch configuration of
	// the pool decides which kubelet its machines have.
	Adopts, Levels bool
	// Home is the nodegroup that matches Git, Replaces says that the pool's nodegroup
	// is the one of its cluster that is being replaced.
	Home     observed.NodegroupName
	Replaces bool
	// Moved says which launch templates that the pool brings along have moved.
	Moved string
	// Image is that of the version that the pool wants, empty where none is known.
	Image string
	// Release is that of the images of the pool's nodegroup, zero where it has none.
	Release Release
	// Settled says that the pool runs the version that it wants of a shared template,
	// TakenOver that this version changes nothing but who makes versions.
	Settled, TakenOver bool
	// Watched are the refreshes that the pool waits for, by group.
	Watched map[string]Watched
	// Outstanding is nil where nothing is.
	Outstanding *Outstanding
	// Governed is the pool as the conductor of its FleetRollouts must know it.
	Governed []rollout.Pool
	// Resolved, Reviewed and Behind are the plan's.
	Resolved map[string]ReviewedImage
	Reviewed map[string]string
	Behind   map[string]bool
}

// Release is what a nodegroup runs, in EKS's words.
type Release struct {
	// Version is that of Kubernetes, Name the release of the images, such as
	// 1.34.1-20251120; empty where a launch template has the image.
	Version, Name string
}

// Take adds what another result holds.
func (r *Result) Take(o Result) {
	r.Steps, r.Conflicts = append(r.Steps, o.Steps...), append(r.Conflicts, o.Conflicts...)
	r.Diags = append(r.Diags, o.Diags...)
	r.Needs.Append(o.Needs)
	r.Blocked, r.Waits, r.Contested = r.Blocked || o.Blocked, r.Waits || o.Waits, r.Contested || o.Contested
	r.Adopts, r.Levels, r.Replaces = r.Adopts || o.Adopts, r.Levels || o.Levels, r.Replaces || o.Replaces
	r.Settled, r.TakenOver = r.Settled || o.Settled, r.TakenOver || o.TakenOver
	if o.Home != (observed.NodegroupName{}) {
		r.Home = o.Home
	}
	r.Moved, r.Image, r.Release = cmp.Or(o.Moved, r.Moved), cmp.Or(o.Image, r.Image), cmp.Or(o.Release, r.Release)
	if o.Outstanding != nil {
		r.Outstanding = o.Outstanding
	}
	r.Governed = append(r.Governed, o.Governed...)
	AddAll(&r.Watched, o.Watched)
	AddAll(&r.Resolved, o.Resolved)
	AddAll(&r.Reviewed, o.Reviewed)
	AddAll(&r.Behind, o.Behind)
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

// codeConflict is the diagnostic of a name that somebody else uses.
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
	In Input
	// Hold holds the planned steps.
	Hold step.Hold
	// Others are the pools whose nodegroups are being replaced, by EKS cluster.
	Others map[string]string
	// Said are the diagnostics of the work that this one is part of.
	Said diag.List
	Result
}

// Fork begins a part of the work, with a separate result. It knows what was taken over
// and what moved before it.
func (c *Work) Fork() *Work {
	part := *c
	part.Said, part.Result = append(slices.Clip(c.Said), c.Diags...), Result{Adopts: c.Adopts, Moved: c.Moved}
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
