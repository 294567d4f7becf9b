// Package reconciler makes AWS what Git says: it observes, resolves, plans and applies, target by
// target, and reports the result. It knows neither Git, YAML, the AWS SDK nor any forge: it asks
// for what it needs through the small interfaces in this file. A pass never waits for AWS to finish
// something; it reads again after a delay what is still changing.
package reconciler

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/disruption"
	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/preflight"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Cloud is one account and region of AWS.
type Cloud interface {
	// Observe reads what the instance owns, in batches.
	Observe(ctx context.Context, q observed.Query) (observed.State, error)
	// Fill reads what planning found missing and returns a state that has it.
	Fill(ctx context.Context, s observed.State, n observed.Needs) (observed.State, error)
	// Confirm fails unless a resource that was seen is there still, and as much the
	// instance's as it was. Its error is a *observed.Error.
	Confirm(ctx context.Context, seen step.Seen) error
	// Execute does one step. Its error is a *observed.Error.
	Execute(ctx context.Context, a step.Action) (step.Result, error)
	// UntilSpare returns the time until AWS's limits on reads leave spare calls again: a pass that
	// nobody requested waits that long.
	UntilSpare() time.Duration
}

// Resolver answers what only AWS can answer, one answer for each request.
type Resolver interface {
	Answer(ctx context.Context, requests []resolve.Request) ([]observed.Answer, error)
	// Renew makes the answers that follow be asked for at fresh or later, where they
	// may have changed.
	Renew(fresh time.Time)
}

// Preflight reports what AWS would refuse of plans, one answer for each. It never fails: missing
// answers of AWS are among the findings.
type Preflight interface {
	Ask(ctx context.Context, plans []preflight.Plan) []preflight.Answer
}

// Workload is the Kubernetes cluster that a target's machines join. Its errors carry a
// workload.Kind.
type Workload interface {
	// Nodes lists all nodes, by name.
	Nodes(ctx context.Context) ([]workload.Node, error)
	// Version is the Kubernetes version of the API server.
	Version(ctx context.Context) (string, error)
	// Its budgets and their pods are read if a rollout is due.
	disruption.Cluster
}

// Ancestry gives the relation of commits that AWS names to a followed one.
type Ancestry interface {
	// Relations answers for each of the commits, which may be short names.
	Relations(ctx context.Context, followed string, commits []string) (map[string]model.Relation, error)
}

// AttemptStore keeps failed attempts for the next owner of a scope.
type AttemptStore interface {
	// Recall returns the kept attempts, by target.
	Recall() (map[string]refusals.Stored, error)
	// Keep takes the place of what was kept of a target. It fails where somebody else owns
	// the scope by now.
	Keep(target string, attempts refusals.Stored) error
}

// Reporter gets the actions and findings of a pass.
type Reporter interface {
	Report(ctx context.Context, r *plan.Report)
}

// Desired holds the desired state of one target: the composition of source and render.
type Desired struct {
	Policy model.Policy
	// Network is the target's configured network.
	Network resolve.Network
	Source  string
	Ref     string
	Commit  content.Commit
	// HideSubject keeps the commit's subject out of reports while other targets of its
	// source are still being rendered.
	HideSubject bool
	// Seq counts the commits that the source came to: it goes up with each, also where one
	// comes back. It is the same for all who follow the source.
	Seq int64
	// Workload is the cluster that the target's machines join, nil where weir was
	// given no access to it.
	Workload Workload
	// Tokens is the same cluster where weir keeps join tokens in it, nil else.
	Tokens jointoken.Cluster
	// Drains is the same cluster where weir may move pods off its machines, nil else.
	Drains drain.Cluster
	// Ancestry compares commits of the target's source. Without it nothing is fenced.
	Ancestry Ancestry
	// Touched says that the commit changed what the target renders.
	Touched bool
	// Reviewed are the images of versions that plans of the target showed to people, by
	// content.SourceHash. Reviews says that commits of the source are shown so before they
	// are followed.
	Reviewed map[string]model.ReviewedImage
	Reviews  bool
	// Proposed says that the commit is not followed yet, Base is the followed state;
	// nil where the target is new.
	Proposed bool
	Base     *intent.Set
	// Wanted identifies what Git and the configuration want, so that others can see whether a
	// report is about the present desired state.
	Wanted string
	// Rendered stands for what is rendered and where that is placed: it is the same at each
	// commit that wants the same. Empty where nobody remembers it.
	Rendered string
	// Begin records that the grant of the policy's gates has begun. The pass calls it before the
	// first step, if the grant is Exact and its plan has a step to run. So a recorded grant has
	// begun, and an unrecorded one allows only its very plan, whenever the process ends. If Begin
	// fails, no step runs. Nil records nothing.
	Begin func(approved *plan.Plan) error
	// Set is nil where the source or the render gave nothing; Err or
	// Diagnostics say why. It never counts as an empty desired state.
	Set *intent.Set
	// Unplanned are the pools and launch configurations of the followed commit that gave no
	// intent. They are there also where Set is nil or that of an earlier commit.
	Unplanned   []intent.Unplanned
	Diagnostics diag.List
	// Whole says that the render has no error.
	Whole bool
	Err   error
	// Origins answers where fields of rendered objects were set, an unknown position
	// where it does not know; nil for no answers. It may take a build.
	Origins func(ctx context.Context, asked []intent.Question) []diag.Position
}

// Mode says how far a pass goes.
type Mode int

// Modes.
const (
	PlanOnly Mode = iota
	Apply
)
