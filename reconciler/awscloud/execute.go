package awscloud

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// Execute does one action. Its error is a *plan.Error. Doing an action twice is
// the same as doing it once: a retry, a crash before the answer was read and a
// second weir all end in one template, one group, one refresh. What "exists
// already" is looked at and counts as done if it carries the tags and the content
// that were asked for; deleting what is gone is done as well.
func (c *Cloud) Execute(ctx context.Context, a step.Action) (step.Result, error) {
	res, err := c.execute(ctx, a)
	if err == nil {
		return res, nil
	}
	e := classify("", "", err)
	if e.Kind == observed.NotFound || e.Kind == observed.Invalid {
		// Versions are remembered because they never change, but somebody may have
		// deleted one: what was refused is planned anew from what is there.
		for _, id := range a.About().Subjects() {
			c.versions.forget(id)
		}
	}
	if e.Kind == observed.NotFound || e.Kind == observed.Invalid {
		if u, ok := observed.FindUnknownName(e.Message); ok {
			return step.Result{}, c.unknownName(e, u)
		}
	}
	if c.settles(a, e) {
		e = &observed.Error{
			Kind: observed.Transient, Service: e.Service, Operation: e.Operation, Code: e.Code, RequestID: e.RequestID, Err: e,
			Message: e.Message + " (it was made a moment ago and is not visible everywhere yet)",
		}
	}
	return step.Result{}, e
}

func (c *Cloud) execute(ctx context.Context, a step.Action) (step.Result, error) {
	switch a := a.(type) {
	case step.CreateLaunchTemplate:
		return c.createTemplate(ctx, a)
	case step.CreateLaunchTemplateVersion:
		return c.createVersion(ctx, a)
	case step.DeleteLaunchTemplateVersions:
		return step.Result{}, c.deleteVersions(ctx, a)
	case step.SetDefaultVersion:
		return step.Result{}, c.setDefault(ctx, a)
	case step.DeleteLaunchTemplate:
		return step.Result{}, c.deleteTemplate(ctx, a)
	case step.TagLaunchTemplate:
		return step.Result{}, c.tagTemplate(ctx, a)
	case step.CreateGroup:
		return step.Result{}, c.createGroup(ctx, a)
	case step.UpdateGroup:
		return step.Result{}, c.updateGroup(ctx, a)
	case step.StartRefresh:
		return c.startRefresh(ctx, a)
	case step.CancelRefresh:
		return step.Result{}, c.cancelRefresh(ctx, a)
	case step.SetProcesses:
		return step.Result{}, c.setProcesses(ctx, a)
	case step.SetTrafficSources:
		return step.Result{}, c.setTrafficSources(ctx, a)
	case step.PutWarmPool:
		return step.Result{}, c.putWarmPool(ctx, a)
	case step.DeleteWarmPool:
		return step.Result{}, c.deleteWarmPool(ctx, a)
	case step.SetMetrics:
		return step.Result{}, c.setMetrics(ctx, a)
	case step.TagGroup:
		return step.Result{}, c.tagGroup(ctx, a)
	case step.DeleteGroup:
		return step.Result{}, c.deleteGroup(ctx, a)
	case step.PutHook:
		return step.Result{}, c.putHook(ctx, a)
	case step.DeleteHook:
		return step.Result{}, c.deleteHook(ctx, a)
	case step.CreateNodegroup:
		return step.Result{}, c.createNodegroup(ctx, a)
	case step.UpdateNodegroupConfig:
		return c.updateNodegroupConfig(ctx, a)
	case step.UpdateNodegroupVersion:
		return c.updateNodegroupVersion(ctx, a)
	case step.TagNodegroup:
		return step.Result{}, c.tagNodegroup(ctx, a)
	case step.DeleteNodegroup:
		return step.Result{}, c.deleteNodegroup(ctx, a)
	}
	return step.Result{}, &observed.Error{Kind: observed.Invalid, Service: "weir", Operation: "Execute", Code: "UnknownAction",
		Message: fmt.Sprintf("there is no way to do a %T", a)}
}

// settles reports whether a failure comes from something that weir made so
// short a while ago that other services do not see it yet.
func (c *Cloud) settles(a step.Action, e *observed.Error) bool {
	return e.Kind == observed.NotFound && c.fresh.any(a.About().Subjects()...)
}

// unknownName is the failure of a step that needs what weir does not make. As nobody
// says when that was made, it counts as new from the first refusal on: once it had
// the time that AWS needs, it is not there.
func (c *Cloud) unknownName(e *observed.Error, u observed.UnknownName) *observed.Error {
	out := *e
	out.Kind, out.Unknown, out.Err = observed.Invalid, u, e
	if c.unknown.young(u.String()) {
		out.Kind = observed.Transient
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
	if owner := wanted[observed.TagOwner]; owner == "" || existing[observed.TagOwner] != owner {
		return foreign
	}
	for _, key := range []string{observed.TagTarget, observed.TagSource, observed.TagPool} {
		if existing[key] != wanted[key] {
			return related
		}
	}
	return mine
}

// taken is the error for a name that something else has: a conflict where it is
// foreign, else a matter for the next pass.
func taken(conflict *observed.Error, whose claim, what string) *observed.Error {
	if whose == related {
		return busy(conflict.Service, conflict.Operation, "the "+what+" exists for another pool or target of this instance")
	}
	conflict.Message = "the " + what + " exists, and its weir.dev/owner tag is not this instance's: it is not touched"
	return conflict
}

// busy says that a name is taken by something of weir's own that is not what was
// asked for: the next pass observes it and plans anew.
func busy(service, operation, message string) *observed.Error {
	return &observed.Error{Kind: observed.Busy, Service: service, Operation: operation, Code: "ObserveAgain", Message: message}
}
