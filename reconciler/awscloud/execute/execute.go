// Package execute executes the steps of a plan, and reads a resource again before it is deleted.
//
// # Every write has the same result if it runs twice
//
// After a retry, a crash before the answer was read, or a concurrent second daemon, there is still
// one template, one group, one refresh. Each kind of write achieves this in its own way:
//
//   - EC2's templates and versions, EKS's nodegroups and updates have client tokens, which are
//     hashes of the whole request and the observed state. EC2 repeats its first answer for a
//     long time. If that version was deleted since, another token is needed.
//   - Auto Scaling has no client tokens. If a name is taken, a resource with the requested tags
//     comes from an earlier attempt, and the action is done. A resource of another owner is a
//     conflict and stays untouched. A resource of another pool of this instance is left to the
//     next pass.
//   - An instance refresh is requested again only if AWS said that it did not accept it
//     (notRepeated). A running refresh with the same configuration counts as the requested one.
//   - A rollback is requested once. The refresh itself shows whether AWS accepted a refused or
//     unanswered request.
//   - Deleting a missing resource, cancelling something that has ended and detaching something
//     that is not attached succeed. If a policy limits writes by tags, AWS denies a write to a
//     missing resource, so weir reads the resource after a denied write (gone).
//   - weir never sends an empty list if AWS would interpret it as everything: tags to delete,
//     processes to suspend, metrics to disable.
//
// A new resource may not be visible to another AWS service yet. "Not found" is then a transient error, which
// does not park the pool (memory.MadeNames).
package execute

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/awscloud/memory"
	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// Executor writes to one account and region.
type Executor struct {
	reader     *read.Reader
	memory     *memory.Memory
	templates  templates
	groups     groups
	nodegroups nodegroups
}

// templates executes the actions on launch templates with EC2.
type templates struct {
	client *sdk.Client
	ec2    EC2Calls
	reader *read.Reader
	memory *memory.Memory
}

// groups executes the actions on Auto Scaling groups.
type groups struct {
	autoscaling AutoScalingCalls
	reader      *read.Reader
	memory      *memory.Memory
}

// nodegroups executes the actions on managed nodegroups with EKS.
type nodegroups struct {
	eks    EKSCalls
	reader *read.Reader
	memory *memory.Memory
}

// New returns an Executor.
func New(c *sdk.Client, r *read.Reader, m *memory.Memory, ec2 EC2Calls, autoscaling AutoScalingCalls, eks EKSCalls) *Executor {
	return &Executor{r, m, templates{c, ec2, r, m}, groups{autoscaling, r, m}, nodegroups{eks, r, m}}
}

// Execute executes one action. Its error is an *observed.Error. Executing an action twice has the same
// result as executing it once. If AWS reports that the resource exists already, weir reads it, and the
// action is done if the resource has the requested tags and content. Deleting a missing resource is done as
// well.
func (x *Executor) Execute(ctx context.Context, a step.Action) (step.Result, error) {
	res, err := x.execute(ctx, a)
	if err == nil {
		return res, nil
	}
	e := sdk.Classify("", "", err)
	if e.Kind == observed.Denied && x.gone(ctx, a.About()) {
		if a.About().Ends {
			return step.Result{}, nil
		}
		e = missing(e)
	}
	if e.Kind == observed.NotFound || e.Kind == observed.Invalid {
		// Versions are remembered because they never change, but a version may have been deleted.
		// After a refusal weir plans again from the versions that exist.
		for _, id := range a.About().Subjects() {
			x.memory.Versions.Forget(id)
		}
		if u, ok := observed.FindUnknownName(e.Message); ok {
			return step.Result{}, x.unknownName(e, u)
		}
	}
	if x.settles(a, e) {
		e = &observed.Error{
			Kind: observed.Transient, Service: e.Service, Operation: e.Operation, Code: e.Code, RequestID: e.RequestID, Err: e,
			Message: e.Message + " (it was created a moment ago and is not visible everywhere yet)",
		}
	}
	return step.Result{}, e
}

// execute has one case for each action of package step, so that both lists can be compared.
func (x *Executor) execute(ctx context.Context, a step.Action) (step.Result, error) {
	switch a := a.(type) {
	case step.CreateLaunchTemplate:
		return x.templates.createTemplate(ctx, a)
	case step.CreateLaunchTemplateVersion:
		return x.templates.createVersion(ctx, a)
	case step.DeleteLaunchTemplateVersions:
		return step.Result{}, x.templates.deleteVersions(ctx, a)
	case step.SetDefaultVersion:
		return step.Result{}, x.templates.setDefault(ctx, a)
	case step.DeleteLaunchTemplate:
		return step.Result{}, x.templates.deleteTemplate(ctx, a)
	case step.TagLaunchTemplate:
		return step.Result{}, x.templates.tagTemplate(ctx, a)
	case step.CreateGroup:
		return x.groups.createGroup(ctx, a)
	case step.UpdateGroup:
		return step.Result{}, x.groups.updateGroup(ctx, a)
	case step.StartRefresh:
		return x.groups.startRefresh(ctx, a)
	case step.CancelRefresh:
		return step.Result{}, x.groups.cancelRefresh(ctx, a)
	case step.RollbackRefresh:
		return x.groups.rollbackRefresh(ctx, a)
	case step.SetProcesses:
		return step.Result{}, x.groups.setProcesses(ctx, a)
	case step.SetTrafficSources:
		return step.Result{}, x.groups.setTrafficSources(ctx, a)
	case step.PutWarmPool:
		return step.Result{}, x.groups.putWarmPool(ctx, a)
	case step.DeleteWarmPool:
		return step.Result{}, x.groups.deleteWarmPool(ctx, a)
	case step.SetMetrics:
		return step.Result{}, x.groups.setMetrics(ctx, a)
	case step.TagGroup:
		return step.Result{}, x.groups.tagGroup(ctx, a)
	case step.DeleteGroup:
		return step.Result{}, x.groups.deleteGroup(ctx, a)
	case step.PutHook:
		return step.Result{}, x.groups.putHook(ctx, a)
	case step.DeleteHook:
		return step.Result{}, x.groups.deleteHook(ctx, a)
	case step.HoldMachine:
		return step.Result{}, x.groups.holdMachine(ctx, a)
	case step.ReleaseMachine:
		return step.Result{}, x.groups.releaseMachine(ctx, a)
	case step.CreateNodegroup:
		return x.nodegroups.createNodegroup(ctx, a)
	case step.UpdateNodegroupConfig:
		return x.nodegroups.updateNodegroupConfig(ctx, a)
	case step.UpdateNodegroupVersion:
		return x.nodegroups.updateNodegroupVersion(ctx, a)
	case step.TagNodegroup:
		return step.Result{}, x.nodegroups.tagNodegroup(ctx, a)
	case step.DeleteNodegroup:
		return step.Result{}, x.nodegroups.deleteNodegroup(ctx, a)
	}
	return step.Result{}, &observed.Error{Kind: observed.Invalid, Service: "weir", Operation: "Execute", Code: "UnknownAction",
		Message: fmt.Sprintf("there is no way to do a %T", a)}
}

// settles reports whether an error is caused by a new resource of weir that other services do not see yet.
func (x *Executor) settles(a step.Action, e *observed.Error) bool {
	return e.Kind == observed.NotFound && x.memory.Made.Any(a.About().Subjects()...)
}

// unknownName returns the error of a step that names a resource that weir does not make. No answer says when
// it was made, so it counts as new from the first refusal on. If it is still unknown after the time that AWS
// needs, it does not exist.
func (x *Executor) unknownName(e *observed.Error, u observed.UnknownName) *observed.Error {
	out := *e
	out.Kind, out.Unknown, out.Err = observed.Invalid, u, e
	if x.memory.Unknown.Young(u.String()) {
		out.Kind = observed.Transient
	}
	return &out
}

// claim is the owner of an existing resource, relative to an action that tried to make it.
type claim int

const (
	foreign claim = iota // another owner's, or without an owner
	related              // this instance's, but another pool's or target's
	mine                 // made by an earlier attempt
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

// taken returns the error for a name that is in use: a conflict if another owner has it, else an error that
// the next pass resolves.
func taken(conflict *observed.Error, whose claim, what string) *observed.Error {
	if whose == related {
		return busy(conflict.Service, conflict.Operation, "the "+what+" exists for another pool or target of this instance")
	}
	conflict.Message = "the " + what + " exists, and its weir.dev/owner tag is not this instance's: it is not touched"
	return conflict
}

// busy returns the error for a name that another resource of weir has, with other content than requested.
// The next pass observes it and plans again.
func busy(service, operation, message string) *observed.Error {
	return &observed.Error{Kind: observed.Busy, Service: service, Operation: operation, Code: "ObserveAgain", Message: message}
}
