package awscloud

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// Execute does one action. Its error is a *plan.Error. Doing an action twice is
// the same as doing it once: a retry, a crash before the answer was read and a
// second weir all end in one template, one group, one refresh. What "exists
// already" is looked at and counts as done if it carries the tags and the content
// that were asked for; deleting what is gone is done as well.
func (c *Cloud) Execute(ctx context.Context, a plan.Action) (plan.Result, error) {
	res, err := c.execute(ctx, a)
	if err == nil {
		return res, nil
	}
	e := classify("", "", err)
	if e.Kind == plan.NotFound || e.Kind == plan.Invalid {
		// Versions are remembered because they never change, but somebody may have
		// deleted one: what was refused is planned anew from what is there.
		for _, id := range a.About().Subjects() {
			c.versions.forget(id)
		}
	}
	if e.Kind == plan.NotFound || e.Kind == plan.Invalid {
		if u, ok := plan.FindUnknownName(e.Message); ok {
			return plan.Result{}, c.unknownName(e, u)
		}
	}
	if c.settles(a, e) {
		e = &plan.Error{
			Kind: plan.Transient, Service: e.Service, Operation: e.Operation, Code: e.Code, RequestID: e.RequestID, Err: e,
			Message: e.Message + " (it was made a moment ago and is not visible everywhere yet)",
		}
	}
	return plan.Result{}, e
}

func (c *Cloud) execute(ctx context.Context, a plan.Action) (plan.Result, error) {
	switch a := a.(type) {
	case plan.CreateLaunchTemplate:
		return c.createTemplate(ctx, a)
	case plan.CreateLaunchTemplateVersion:
		return c.createVersion(ctx, a)
	case plan.DeleteLaunchTemplateVersions:
		return plan.Result{}, c.deleteVersions(ctx, a)
	case plan.SetDefaultVersion:
		return plan.Result{}, c.setDefault(ctx, a)
	case plan.DeleteLaunchTemplate:
		return plan.Result{}, c.deleteTemplate(ctx, a)
	case plan.TagLaunchTemplate:
		return plan.Result{}, c.tagTemplate(ctx, a)
	case plan.CreateGroup:
		return plan.Result{}, c.createGroup(ctx, a)
	case plan.UpdateGroup:
		return plan.Result{}, c.updateGroup(ctx, a)
	case plan.StartRefresh:
		return c.startRefresh(ctx, a)
	case plan.CancelRefresh:
		return plan.Result{}, c.cancelRefresh(ctx, a)
	case plan.SetProcesses:
		return plan.Result{}, c.setProcesses(ctx, a)
	case plan.SetTrafficSources:
		return plan.Result{}, c.setTrafficSources(ctx, a)
	case plan.PutWarmPool:
		return plan.Result{}, c.putWarmPool(ctx, a)
	case plan.DeleteWarmPool:
		return plan.Result{}, c.deleteWarmPool(ctx, a)
	case plan.SetMetrics:
		return plan.Result{}, c.setMetrics(ctx, a)
	case plan.TagGroup:
		return plan.Result{}, c.tagGroup(ctx, a)
	case plan.DeleteGroup:
		return plan.Result{}, c.deleteGroup(ctx, a)
	case plan.PutHook:
		return plan.Result{}, c.putHook(ctx, a)
	case plan.DeleteHook:
		return plan.Result{}, c.deleteHook(ctx, a)
	case plan.CreateNodegroup:
		return plan.Result{}, c.createNodegroup(ctx, a)
	case plan.UpdateNodegroupConfig:
		return c.updateNodegroupConfig(ctx, a)
	case plan.UpdateNodegroupVersion:
		return c.updateNodegroupVersion(ctx, a)
	case plan.TagNodegroup:
		return plan.Result{}, c.tagNodegroup(ctx, a)
	case plan.DeleteNodegroup:
		return plan.Result{}, c.deleteNodegroup(ctx, a)
	}
	return plan.Result{}, &plan.Error{Kind: plan.Invalid, Service: "weir", Operation: "Execute", Code: "UnknownAction",
		Message: fmt.Sprintf("there is no way to do a %T", a)}
}

// settles reports whether a failure comes from something that weir made so
// short a while ago that other services do not see it yet.
func (c *Cloud) settles(a plan.Action, e *plan.Error) bool {
	return e.Kind == plan.NotFound && c.fresh.any(a.About().Subjects()...)
}

// unknownName is the failure of a step that needs what weir does not make. As nobody
// says when that was made, it counts as new from the first refusal on: once it had
// the time that AWS needs, it is not there.
func (c *Cloud) unknownName(e *plan.Error, u plan.UnknownName) *plan.Error {
	out := *e
	out.Kind, out.Unknown, out.Err = plan.Invalid, u, e
	if c.unknown.young(u.String()) {
		out.Kind = plan.Transient
	}
	return &out
}

// claim says whose an existing resource is, seen from an action that wanted to
// make it.
type claim int

const (
	foreign claim = iota // another owner's, or nobody's
	related              // this instance's, for another pool or target
	mine                 // what an earlier attempt made
)

func claimOf(existing, wanted map[string]string) claim {
	if owner := wanted[plan.TagOwner]; owner == "" || existing[plan.TagOwner] != owner {
		return foreign
	}
	for _, key := range []string{plan.TagTarget, plan.TagSource, plan.TagPool} {
		if existing[key] != wanted[key] {
			return related
		}
	}
	return mine
}

// taken is the error for a name that something else has: a conflict where it is
// foreign, else a matter for the next pass.
func taken(conflict *plan.Error, whose claim, what string) *plan.Error {
	if whose == related {
		return busy(conflict.Service, conflict.Operation, "the "+what+" exists for another pool or target of this instance")
	}
	conflict.Message = "the " + what + " exists, and its weir.dev/owner tag is not this instance's: it is not touched"
	return conflict
}

// busy says that a name is taken by something of weir's own that is not what was
// asked for: the next pass observes it and plans anew.
func busy(service, operation, message string) *plan.Error {
	return &plan.Error{Kind: plan.Busy, Service: service, Operation: operation, Code: "ObserveAgain", Message: message}
}
