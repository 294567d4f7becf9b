package plan

import (
	"cmp"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// result is what planning a pool, or a part of what it takes, gives. It only grows:
// who may not want a part makes it apart (fork), and takes it or leaves it.
type result struct {
	steps []step.Step
	diags diag.List
	needs observed.Needs
	// conflicts are steps that stand for names which somebody else has. They are all that
	// is left of a result that is blocked: it has an error.
	conflicts []step.Step
	blocked   bool
	// waits is set where the pool cannot be planned yet though nothing is wrong with it.
	waits bool
	// contested says that no further version is made: something undoes each rollout.
	contested bool
	// adopts says that something is taken over, levels that the launch configuration of
	// the pool decides which kubelet its machines have.
	adopts, levels bool
	// home is the nodegroup that is what Git wants, replaces says that the pool's
	// nodegroup is the one of its cluster that is being replaced.
	home     observed.NodegroupName
	replaces bool
	// moved says which launch templates that the pool brings along have moved.
	moved string
	// settled says that the pool runs the version that it wants of a shared template,
	// handover that this version changes nothing but who makes versions.
	settled, handover bool
	// watched are the refreshes that the pool waits for, by group.
	watched map[string]Watched
	// outstanding is nil where nothing is.
	outstanding *outstanding
	// resolved, reviewed and behind are the plan's.
	resolved map[string]ReviewedImage
	reviewed map[string]string
	behind   map[string]bool
}

// take adds what another result holds.
func (r *result) take(o result) {
	r.steps, r.conflicts = append(r.steps, o.steps...), append(r.conflicts, o.conflicts...)
	r.diags = append(r.diags, o.diags...)
	r.needs.Append(o.needs)
	r.blocked, r.waits, r.contested = r.blocked || o.blocked, r.waits || o.waits, r.contested || o.contested
	r.adopts, r.levels, r.replaces = r.adopts || o.adopts, r.levels || o.levels, r.replaces || o.replaces
	r.settled, r.handover = r.settled || o.settled, r.handover || o.handover
	if o.home != (observed.NodegroupName{}) {
		r.home = o.home
	}
	if o.moved != "" {
		r.moved = o.moved
	}
	if o.outstanding != nil {
		r.outstanding = o.outstanding
	}
	addAll(&r.watched, o.watched)
	addAll(&r.resolved, o.resolved)
	addAll(&r.reviewed, o.reviewed)
	addAll(&r.behind, o.behind)
}

// note records a diagnostic about the pool's infrastructure object. Positions
// are attached by the caller, who can ask the render.
func (r *result) note(sev diag.Severity, pool *intent.Pool, path intent.Path, code, summary, detail string) {
	r.noteAt(sev, pool.Infrastructure, path, code, summary, detail)
}

// noteAt is note about another object of the pool.
func (r *result) noteAt(sev diag.Severity, object intent.ObjectRef, path intent.Path, code, summary, detail string) {
	r.diags = append(r.diags, diag.Diagnostic{
		Severity: sev, Code: code, Summary: summary, Detail: cmp.Or(detail, diag.Hint(code)),
		Object: object.String(), Field: path.String(),
	})
}

// blockf records an error that keeps the pool from being planned.
func (r *result) blockf(pool *intent.Pool, path intent.Path, code, summary, detail string) {
	r.blockAt(pool.Infrastructure, path, code, summary, detail)
}

// blockAt is blockf about another object of the pool.
func (r *result) blockAt(object intent.ObjectRef, path intent.Path, code, summary, detail string) {
	r.blocked = true
	r.noteAt(diag.Error, object, path, code, summary, detail)
}

// step adds a step of a pool.
func (r *result) step(pool *intent.Pool, s step.Step) {
	s.Pool = pool.Key.String()
	r.steps = append(r.steps, s)
}

// codeConflict is the diagnostic of a name that somebody else has.
const codeConflict = "conflict"

// conflict records that a wanted name is taken by what is not ours. Nothing of
// the pool runs.
func (r *result) conflict(pool *intent.Pool, kind step.Resource, name string, o ownership) {
	r.blockf(pool, nil, codeConflict, "the "+string(kind)+" "+name+" exists and is not touched: "+o.why,
		cmp.Or(o.wayOut, "rename the pool or remove the existing resource"))
	r.conflicts = append(r.conflicts, step.Step{
		Verb: step.Adopt, Resource: kind, Pool: pool.Key.String(), Name: name, Reason: o.why, Held: step.HeldConflict,
	})
}

// unread blocks the pool where err says that something of it could not be read.
func (r *result) unread(pool *intent.Pool, what string, err *observed.Error) bool {
	if err == nil {
		return false
	}
	r.blockf(pool, nil, "read-denied", "AWS does not let weir read "+what+", so nothing of the pool is changed: "+err.Message,
		"allow weir the action that the message names; it looks again at the next pass")
	return true
}

// work is the planning of one pool, or of what pools share: what it reads, and the
// result so far.
type work struct {
	in Input
	// hold is what holds the steps that are planned.
	hold step.Hold
	// others are the pools whose nodegroups are being replaced, by EKS cluster.
	others map[string]string
	// said are the diagnostics of the work that this one is part of.
	said diag.List
	result
}

// fork begins a part of the work, whose result is apart. It knows what is taken over and
// has moved before it.
func (c *work) fork() *work {
	part := *c
	part.said, part.result = append(slices.Clip(c.said), c.diags...), result{adopts: c.adopts, moved: c.moved}
	return &part
}
