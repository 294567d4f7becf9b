package app

import (
	"context"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/workload"
)

// alone is the fence of a single daemon: only users can forbid a write, and writes are not cut off.
type alone func() error

// MayBegin implements sdk.Fence.
func (may alone) MayBegin() error { return may() }

// Until implements sdk.Fence.
func (alone) Until() time.Time { return time.Now().Add(uncut) }

// uncut is longer than any call.
const uncut = time.Hour

// fences creates the guards of writes to accounts and regions. The cluster values of two passes are
// compared, so they contain a fences value and a key: unlike two fences, these can be equal.
type fences interface {
	fence(key reconciler.ScopeKey) sdk.Fence
}

// fencedTokens is a workload cluster whose Secrets are written under the same conditions as AWS: not while
// suspended, only by the owner of the account and region, and within its lease.
type fencedTokens struct {
	jointoken.Cluster
	fences fences
	key    reconciler.ScopeKey
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
	return guarded(ctx, t.fences.fence(t.key), do)
}

// fencedDrains is a workload cluster whose nodes and pods are changed under the same conditions.
type fencedDrains struct {
	drain.Cluster
	fences fences
	key    reconciler.ScopeKey
}

// Cordon implements drain.Cluster.
func (d fencedDrains) Cordon(ctx context.Context, node, uid, annotation, value string) error {
	return guarded(ctx, d.fences.fence(d.key), func(ctx context.Context) error { return d.Cluster.Cordon(ctx, node, uid, annotation, value) })
}

// Evict implements drain.Cluster.
func (d fencedDrains) Evict(ctx context.Context, p workload.Pod) error {
	return guarded(ctx, d.fences.fence(d.key), func(ctx context.Context) error { return d.Cluster.Evict(ctx, p) })
}

// guarded executes a write if the fence permits it, and cuts it off at the time that the fence sets.
func guarded(ctx context.Context, fence sdk.Fence, do func(context.Context) error) error {
	if err := fence.MayBegin(); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, fence.Until())
	defer cancel()
	return do(ctx)
}

func orAll(target string) string {
	if target == "" {
		return "everything"
	}
	return target
}

// newSuspensions returns the suspensions that are in now but not in before.
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
