// Package reconciler makes AWS match Git: it observes, resolves, plans and applies, target by
// target, and reports the result. It knows neither Git, YAML, the AWS SDK nor any forge, and
// reaches them through the small interfaces in this file. A pass never waits until AWS has finished
// something; a later pass reads it again.
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
	// Observe reads the instance's resources, in batches.
	Observe(ctx context.Context, q observed.Query) (observed.State, error)
	// Fill reads the facts that planning needs and returns a state with them.
	Fill(ctx context.Context, s observed.State, n observed.Needs) (observed.State, error)
	// Confirm fails unless the resource still exists and has the same owner tags as in seen. Its
	// error is a *observed.Error.
	Confirm(ctx context.Context, seen step.Seen) error
	// Execute executes one step. Its error is a *observed.Error.
	Execute(ctx context.Context, a step.Action) (step.Result, error)
	// UntilSpare returns the time until AWS's rate limits leave spare reads again. A pass that
	// nobody requested waits that long.
	UntilSpare() time.Duration
}

// Resolver answers lookups, one answer for each request.
type Resolver interface {
	Answer(ctx context.Context, requests []resolve.Request) ([]observed.Answer, error)
	// Renew makes later answers at least as recent as fresh, if they can change.
	Renew(fresh time.Time)
}

// Preflight reports what AWS would refuse in plans, one answer for each plan. It never fails: if
// AWS does not answer, that is one of the findings.
type Preflight interface {
	Ask(ctx context.Context, plans []preflight.Request) []preflight.Answer
}

// Workload is the Kubernetes cluster that a target's machines join. Its errors carry a
// workload.Kind.
type Workload interface {
	// Nodes lists all nodes, by name.
	Nodes(ctx context.Context) ([]workload.Node, error)
	// Version returns the Kubernetes version of the API server.
	Version(ctx context.Context) (string, error)
	// Cluster reads disruption budgets and their pods, if a rollout is due.
	disruption.Cluster
}

// Ancestry returns the relation of commits that AWS names to a followed commit.
type Ancestry interface {
	// Relations returns the relation of each commit. Commits may be short hashes.
	Relations(ctx context.Context, followed string, commits []string) (map[string]model.Relation, error)
}

// AttemptStore stores failed attempts for the next owner of a scope.
type AttemptStore interface {
	// Recall returns the stored attempts, by target.
	Recall() (map[string]refusals.Stored, error)
	// Keep replaces the stored attempts of a target. It fails if another member owns the scope by
	// now.
	Keep(target string, attempts refusals.Stored) error
}

// Reporter receives the report of each target after a pass.
type Reporter interface {
	Report(ctx context.Context, r *plan.Report)
}

// Desired contains the desired state of one target, from its source and its render.
type Desired struct {
	Policy model.Policy
	// Network is the target's configured network.
	Network resolve.Network
	Source  string
	Ref     string
	Commit  content.Commit
	// HideSubject omits the commit's subject from reports while other targets of its source are
	// still being rendered.
	HideSubject bool
	// Seq counts the commits at which the source arrived. It increases with each, even if an
	// earlier commit comes back. All members that follow the source use the same Seq.
	Seq int64
	// Workload is the cluster that the target's machines join, nil if weir has no access to it.
	Workload Workload
	// Tokens is the same cluster if weir stores join tokens in it, else nil.
	Tokens jointoken.Cluster
	// Drains is the same cluster if weir may move pods off its machines, else nil.
	Drains drain.Cluster
	// Ancestry compares commits of the target's source. If it is nil, no step is fenced.
	Ancestry Ancestry
	// Touched reports whether the commit changed the target's render.
	Touched bool
	// Reviewed maps content.SourceHash of versions to the images that people saw in plans of the
	// target. Reviews reports whether commits of the source are reviewed in this way before weir
	// follows them.
	Reviewed map[string]model.ReviewedImage
	Reviews  bool
	// Proposed is set if the commit is not followed yet. Base is then the followed state, nil for a
	// new target.
	Proposed bool
	Base     *intent.Set
	// Wanted identifies the desired state in Git and the configuration. It shows other members
	// whether a report is about the current desired state.
	Wanted string
	// Rendered identifies the render and its account, region and network. Commits with the same
	// desired state have the same value. It is empty if nobody records it.
	Rendered string
	// Begin records that the grant of the policy's gates is in use. The pass calls it before the
	// first step, if the grant is Exact and its plan has a step to run. So a recorded grant is in
	// use, and an unrecorded one allows only its exact plan, no matter when the process ends. If
	// Begin fails, no step runs. Nil records nothing.
	Begin func(approved *plan.Plan) error
	// Set is nil if there is no source or no render. Err or Diagnostics then give the reason. Nil
	// never counts as an empty desired state.
	Set *intent.Set
	// Unplanned lists the pools and launch configurations of the followed commit without an intent,
	// even if Set is nil or from an earlier commit.
	Unplanned   []intent.Unplanned
	Diagnostics diag.List
	// Whole reports whether the render has no error.
	Whole bool
	Err   error
	// Origins returns the positions at which fields of rendered objects were set, or an unknown
	// position. It may need a build. Nil means no positions.
	Origins func(ctx context.Context, asked []intent.Question) []diag.Position
}

// Mode selects whether a pass only plans or also applies.
type Mode int

// Modes.
const (
	PlanOnly Mode = iota
	Apply
)
