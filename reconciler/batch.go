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

// ScopeKey distinguishes the accounts and regions, together with how they are reached.
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

// Batch is the targets of one scope.
type Batch struct {
	Key     ScopeKey
	Scope   *Scope
	Targets []Desired
	// Fresh is the earliest time of AWS's answers to lookups: weir asks again for older ones.
	Fresh time.Time
	// Within bounds the time until the next pass, even if nothing is changing. Zero means the
	// loop's own interval.
	Within time.Duration
	// AllTargets says that these are all targets of the account and region, so that weir reports a
	// resource of any other target.
	AllTargets bool
	// BeforeWrite runs before the first write of a pass. It receives whether AWS holds something of the
	// instance. If it returns an error, the pass writes nothing. BeforeWrite may be nil.
	BeforeWrite func(holds bool) error
	// Inputs receives the inputs of the pass. It may be nil.
	Inputs *PassInputs
	// Attempts keeps the failed attempts of the account's and region's owners. It is nil if a process
	// runs alone, and then forgets them as it ends.
	Attempts AttemptStore
	// Marks keep the last good revisions of targets; nil for nobody.
	Marks Marks
	// Partial allows a partial read: Git wants nothing new since the last pass, and AWS is changing
	// something. Of many groups and templates the pass then reads only those that may have changed.
	Partial bool
	// Overtaken is closed once the scope wants something else: the pass then begins with
	// no further pool. nil never is.
	Overtaken <-chan struct{}
}

// PassInputs holds the inputs of a pass. It is read only.
type PassInputs struct {
	State observed.State
	// Requests holds the requests to the Resolver, and Answers its answers.
	Requests []resolve.Request
	Answers  []observed.Answer
	// Nodes holds the nodes of the workload clusters, by target; nil if none was read.
	Nodes map[string]*model.Nodes
}

// RunBatch makes one pass over one scope. A failure of the scope as a whole is
// in each report.
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
