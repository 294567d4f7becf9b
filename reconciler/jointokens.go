package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"golang.org/x/sync/errgroup"
)

// tokenKeepers contains the keepers of the targets' join tokens.
type tokenKeepers struct {
	mu      sync.Mutex
	keepers map[string]tokenKeeper // by target
}

// tokenKeeper renews the tokens of a target in one cluster.
type tokenKeeper struct {
	cluster jointoken.Cluster
	keeper  *jointoken.Keeper
}

// of returns the keeper of a target. It makes one if the target's cluster has none.
func (k *tokenKeepers) of(t *Desired, o *Options) *jointoken.Keeper {
	k.mu.Lock()
	defer k.mu.Unlock()
	have, known := k.keepers[t.Policy.Target]
	if !known || have.cluster != t.Tokens {
		if k.keepers == nil {
			k.keepers = map[string]tokenKeeper{}
		}
		have = tokenKeeper{t.Tokens, &jointoken.Keeper{Parameters: o.Parameters, Cluster: t.Tokens, Now: o.clock}}
		k.keepers[t.Policy.Target] = have
	}
	return have.keeper
}

// forget drops the keepers of all targets that are not in except.
func (k *tokenKeepers) forget(except map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.keepers, func(target string, _ tokenKeeper) bool { return !except[target] })
}

// tokensTimeout limits the renewal of one target's tokens in a pass: a cluster that does not answer
// must not delay pools that need no token.
const tokensTimeout = 20 * time.Second

// parallelTokens is the number of targets whose tokens are renewed in parallel.
const parallelTokens = 4

// joinTokens renews the join tokens of the targets before their steps run, so that no machine
// starts without one. A pool without a valid token gets no step that could start a machine.
// Failures are in the report.
func (ps *passState) joinTokens(ctx context.Context) error {
	if ps.Parameters == nil {
		return nil
	}
	var g errgroup.Group
	g.SetLimit(parallelTokens)
	for i := range ps.targets {
		t := &ps.targets[i]
		if t.Tokens == nil || t.Set == nil || ps.reports[i].Plan == nil || t.Policy.Suspended || t.Policy.ReportOnly || t.Policy.Adoption.Asked || t.Policy.JoinTokens.Prefix == "" {
			continue
		}
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, tokensTimeout)
			defer cancel()
			ps.memory.keepers.renewTokens(ctx, ps.Options, t, ps.inputs[i], ps.reports[i])
			return nil
		})
	}
	_ = g.Wait() // failures are in the reports
	return nil
}

// renewTokens renews the tokens of a target, and reports failures.
func (k *tokenKeepers) renewTokens(ctx context.Context, o *Options, t *Desired, in model.Input, r *plan.Report) {
	converged := map[string]bool{}
	for _, p := range r.Pools {
		converged[p.Namespace+"/"+p.Name] = p.Converged
	}
	needs := model.JoinNeedsOf(in, converged)
	req := jointoken.Request{
		Owner: t.Policy.Instance, Source: t.Policy.Source, Target: t.Policy.Target, Standing: needs.Standing, Left: needs.Left,
		Prune: t.Policy.Prune.Enabled && in.Fleet.Whole,
	}
	for _, key := range slices.Sorted(maps.Keys(needs.Wanted)) {
		req.Wanted = append(req.Wanted, jointoken.Pool{Key: key, Parameter: needs.Wanted[key]})
	}
	kept := k.of(t, o).Keep(ctx, req)
	if kept.Writes > 0 {
		o.logger().Info("join tokens kept", "target", t.Policy.Target, "tokens", len(kept.Until), "writes", kept.Writes)
		r.Milestones = append(r.Milestones, step.Milestone{
			Kind: "join-tokens-renewed", Text: fmt.Sprintf("%d join tokens are valid", len(kept.Until)), Facts: map[string]string{"writes": strconv.Itoa(kept.Writes)},
		})
	}
	// The keeper's own list is not changed.
	r.Plan.Diagnostics = append(slices.Clone(r.Plan.Diagnostics), kept.Diagnostics...).Sorted()
	r.Diagnostics = r.Plan.Diagnostics
	awaitTokens(t, needs, kept, r, o.clock())
}

// awaitTokens leaves the steps of pools without a valid token to a later pass.
func awaitTokens(t *Desired, needs model.JoinNeeds, kept jointoken.Result, r *plan.Report, now time.Time) {
	missing := map[string]bool{}
	for i := range t.Set.Pools {
		pool := &t.Set.Pools[i]
		key := model.JoinKey(pool)
		if _, wanted := needs.Wanted[key]; wanted && !kept.Until[key].After(now) {
			missing[pool.Key.String()] = true
		}
	}
	for i := range r.Plan.Steps {
		st := &r.Plan.Steps[i]
		st.Later = st.Later || missing[st.Pool] && st.Verb != step.Delete
	}
	for i := range r.Pools {
		if p := &r.Pools[i]; missing[p.Namespace+"/"+p.Name] {
			p.BootstrapReady = false
		}
	}
}
