package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/crew"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/workload"
)

// fence guards each write to an account and region.
func (a peers) fence(key reconciler.ScopeKey) sdk.Fence {
	may := func() error { return a.passes.may(key) }
	if a.crew == nil {
		return alone(may)
	}
	return crew.Fence{Crew: a.crew, Key: func() string { place, _ := a.passes.place(key); return place }, May: may}
}

// alone is the fence of a daemon without others: only people forbid a write, and nothing cuts one.
type alone func() error

// MayBegin implements sdk.Fence.
func (may alone) MayBegin() error { return may() }

// Until implements sdk.Fence.
func (alone) Until() time.Time { return time.Now().Add(uncut) }

// uncut is longer than any call lasts.
const uncut = time.Hour

// fencedTokens is a workload cluster to which a Secret is written only as a call to AWS may be: while people let it, by the owner of the account and region, within its lease.
type fencedTokens struct {
	jointoken.Cluster
	app *App
	key reconciler.ScopeKey
}

// CreateSecret implements jointoken.Cluster.
func (t fencedTokens) CreateSecret(ctx context.Context, s workload.Secret) (out workload.Secret, err error) {
	err = t.write(ctx, func(ctx context.Context) error { out, err = t.Cluster.CreateSecret(ctx, s); return err })
	return out, err
}

// DeleteSecret implements jointoken.Cluster.
func (t fencedTokens) DeleteSecret(ctx context.Context, namespace, name, uid string) error {
	return t.write(ctx, func(ctx context.Context) error { return t.Cluster.DeleteSecret(ctx, namespace, name, uid) })
}

func (t fencedTokens) write(ctx context.Context, do func(context.Context) error) error {
	return peers{t.app}.within(ctx, t.key, do)
}

// fencedDrains is a workload cluster whose nodes and pods are moved only likewise.
type fencedDrains struct {
	drain.Cluster
	app *App
	key reconciler.ScopeKey
}

// Cordon implements drain.Cluster.
func (d fencedDrains) Cordon(ctx context.Context, node, uid, annotation, value string) error {
	return peers{d.app}.within(ctx, d.key, func(ctx context.Context) error { return d.Cluster.Cordon(ctx, node, uid, annotation, value) })
}

// Evict implements drain.Cluster.
func (d fencedDrains) Evict(ctx context.Context, p workload.Pod) error {
	return peers{d.app}.within(ctx, d.key, func(ctx context.Context) error { return d.Cluster.Evict(ctx, p) })
}

// within does a write to a workload cluster that belongs to an account and region.
func (a peers) within(ctx context.Context, key reconciler.ScopeKey, do func(context.Context) error) error {
	return guarded(ctx, a.fence(key), do)
}

// guarded does a write once the fence lets it begin, and cuts it when the fence would.
func guarded(ctx context.Context, fence sdk.Fence, do func(context.Context) error) error {
	if err := fence.MayBegin(); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, fence.Until())
	defer cancel()
	return do(ctx)
}

// may fails if people have suspended targets of the pass, or taken back an approval that it acts under, since it began.
func (p *passes) may(key reconciler.ScopeKey) error {
	now := p.app.book.Read()
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.of[key]
	if l == nil {
		return errors.New("no pass is made over the account and region")
	}
	if now.Lost != nil {
		return errors.New(gates.LossText(*now.Lost))
	}
	for _, s := range newSuspensions(l.records, now) {
		if s.Target == "" || slices.Contains(l.in, s.Target) {
			return fmt.Errorf("%s is suspended since this pass began: %s", orAll(s.Target), s.Text())
		}
	}
	if g := l.withdrawn(now); g != nil {
		return fmt.Errorf("the approval by %s of the plan of %s has ended since this pass began", g.By, g.Target)
	}
	return p.app.rollouts.withdrawn(l.permits)
}

func orAll(target string) string {
	if target == "" {
		return "everything"
	}
	return target
}

// newSuspensions returns those that were not there before.
func newSuspensions(before, now gates.Records) (out []gates.Suspension) {
	for _, s := range now.Suspensions {
		if !slices.ContainsFunc(before.Suspensions, func(o gates.Suspension) bool {
			return o.Target == s.Target && o.Pool == s.Pool && o.Since.Equal(s.Since)
		}) {
			out = append(out, s)
		}
	}
	return out
}
