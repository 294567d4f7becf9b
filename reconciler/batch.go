package reconciler

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/span"
)

// ScopeKey identifies an account and region, together with the way to reach them.
type ScopeKey struct {
	// Account may be empty until the credentials give it.
	Account  string
	Region   string
	RoleARN  string
	Endpoint string
}

// Compare orders keys by account, region, role and endpoint.
func (k ScopeKey) Compare(o ScopeKey) int {
	return cmp.Or(cmp.Compare(k.Account, o.Account), cmp.Compare(k.Region, o.Region), cmp.Compare(k.RoleARN, o.RoleARN), cmp.Compare(k.Endpoint, o.Endpoint))
}

// Batch contains the targets of one scope and the options of a pass over them.
type Batch struct {
	Key     ScopeKey
	Scope   *Scope
	Targets []Desired
	// Fresh is the minimum time of AWS's answers to lookups. weir requests older ones again.
	Fresh time.Time
	// Within limits the time until the next pass, even if nothing is changing. Zero means the
	// loop's own interval.
	Within time.Duration
	// AllTargets is set if these are all targets of the account and region. weir then reports
	// resources of any other target.
	AllTargets bool
	// BeforeWrite runs before the first write of a pass. holds reports whether AWS has resources of
	// the instance. If it returns an error, the pass writes nothing. BeforeWrite may be nil.
	BeforeWrite func(holds bool) error
	// Inputs receives the inputs of the pass. It may be nil.
	Inputs *PassInputs
	// Attempts stores the failed attempts for the next owner of the account and region. It is nil
	// if a process runs alone. Such a process forgets them when it ends.
	Attempts AttemptStore
	// Marks stores the last good revisions of targets. Nil stores none.
	Marks Marks
	// Partial allows a partial read: the desired state is the same as in the last pass, and AWS is
	// changing something. If there are many groups and templates, the pass then reads only those
	// that may have changed.
	Partial bool
	// Overtaken is closed once the desired state of the scope has changed. The pass then starts no
	// further pool. Nil is never closed.
	Overtaken <-chan struct{}
}

// PassInputs contains the inputs of a pass. It is read-only.
type PassInputs struct {
	State observed.State
	// Requests lists the requests to the Resolver, and Answers its answers.
	Requests []resolve.Request
	Answers  []observed.Answer
	// Nodes contains the nodes of the workload clusters, by target. It is nil if none were read.
	Nodes map[string]*model.Nodes
}

// RunBatch makes one pass over one scope. If the scope as a whole fails, each report contains the
// error.
func RunBatch(ctx context.Context, b Batch, mode Mode) []*plan.Report {
	if b.Scope == nil {
		reports := make([]*plan.Report, len(b.Targets))
		for i, t := range b.Targets {
			reports[i] = newReport(t, time.Now())
			if reports[i].Err == nil && !reports[i].Diagnostics.HasErrors() {
				reports[i].Err = errors.New("open account: no access to AWS")
			}
		}
		return reports
	}
	ctx, sp := span.Start(ctx, "scope", "account", b.Key.Account, "region", b.Key.Region)
	reports, err := b.Scope.pass(ctx, b, mode)
	span.End(sp, err)
	if err != nil {
		for _, r := range reports {
			if r.Err == nil {
				r.Err = err
			}
		}
	}
	return reports
}
