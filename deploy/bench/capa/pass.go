package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/tools/record"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	"sigs.k8s.io/cluster-api-provider-aws/v2/exp/controllers"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// maxRounds is how often a pool is reconciled before it counts as one that never rests.
const maxRounds = 20

// fleet is pools with CAPA's reconcilers.
type fleet struct {
	options
	client   client.Client
	pools    []pool
	groups   reconcile.Reconciler
	nodes    reconcile.Reconciler
	recorder record.EventRecorder
}

// pool is an infrastructure pool.
type pool struct {
	managed bool // AWSManagedMachinePool
	name    string
}

func newFleet(ctx context.Context, o options) (*fleet, error) {
	objects, err := objects(ctx, o)
	if err != nil {
		return nil, err
	}
	f := &fleet{options: o, client: newClient(objects), recorder: &record.FakeRecorder{}}
	for _, obj := range objects {
		switch obj.(type) {
		case *expinfrav1.AWSMachinePool:
			f.pools = append(f.pools, pool{name: obj.GetName()})
		case *expinfrav1.AWSManagedMachinePool:
			f.pools = append(f.pools, pool{managed: true, name: obj.GetName()})
		}
	}
	f.groups = &controllers.AWSMachinePoolReconciler{Client: f.client, Recorder: f.recorder}
	f.nodes = &controllers.AWSManagedMachinePoolReconciler{Client: f.client, Recorder: f.recorder, MaxWaitActiveUpdateDelete: 30 * time.Minute}
	return f, nil
}

// converge reconciles the pools until none asks for another reconcile.
func (f *fleet) converge(ctx context.Context) (total phase, err error) {
	next := f.pools
	for range maxRounds {
		var round phase
		var requeued bool
		if round, next, requeued, err = f.round(ctx, next); err != nil {
			return total, err
		}
		total = total.and(round)
		if len(next) == 0 {
			return total, f.ready(ctx)
		}
		if requeued {
			select {
			case <-ctx.Done():
				return total, ctx.Err()
			case <-time.After(f.settle):
			}
		}
	}
	return total, fmt.Errorf("%d pools do not come to rest in %d reconciles", len(next), maxRounds)
}

// pass reconciles each pool once, as the manager's resync does.
func (f *fleet) pass(ctx context.Context) (phase, error) {
	p, again, _, err := f.round(ctx, f.pools)
	if err == nil && len(again) > 0 {
		err = fmt.Errorf("%d pools are not at rest, such as %s", len(again), again[0].name)
	}
	return p, err
}

// round reconciles pools once and says which are reconciled again: those whose object
// has changed, which the watch reports, and those that CAPA wants to look at later.
func (f *fleet) round(ctx context.Context, pools []pool) (_ phase, again []pool, requeued bool, err error) {
	before := take()
	queue := make(chan pool)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range f.workers {
		wg.Go(func() {
			for p := range queue {
				result, changed, failed := f.reconcile(ctx, p)
				mu.Lock()
				if failed != nil {
					err = errors.Join(err, fmt.Errorf("%s: %w", p.name, failed))
				}
				if changed || result.RequeueAfter > 0 {
					again = append(again, p)
				}
				requeued = requeued || result.RequeueAfter > 0
				mu.Unlock()
			}
		})
	}
	for _, p := range pools {
		queue <- p
	}
	close(queue)
	wg.Wait()
	if err != nil {
		return phase{}, nil, false, err
	}
	return take().since(before), again, requeued, nil
}

func (f *fleet) reconcile(ctx context.Context, p pool) (result ctrl.Result, changed bool, err error) {
	before, err := f.object(ctx, p)
	if err != nil {
		return result, false, err
	}
	by := f.groups
	if p.managed {
		by = f.nodes
	}
	if result, err = by.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: p.name}}); err != nil {
		return result, false, err
	}
	after, err := f.object(ctx, p)
	return result, err == nil && wakes(before, after), err
}

func (f *fleet) object(ctx context.Context, p pool) (client.Object, error) {
	var obj client.Object = &expinfrav1.AWSMachinePool{}
	if p.managed {
		obj = &expinfrav1.AWSManagedMachinePool{}
	}
	return obj, f.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: p.name}, obj)
}

// wakes reports whether the watch of an object leads to a reconcile: any change does for
// an AWSManagedMachinePool, and one beside the status for an AWSMachinePool.
func wakes(before, after client.Object) bool {
	a, ok := before.(*expinfrav1.AWSMachinePool)
	if !ok {
		return before.GetResourceVersion() != after.GetResourceVersion()
	}
	b, ok := after.(*expinfrav1.AWSMachinePool)
	if !ok {
		return true
	}
	a.Status, b.Status = expinfrav1.AWSMachinePoolStatus{}, expinfrav1.AWSMachinePoolStatus{}
	a.ResourceVersion, b.ResourceVersion = "", ""
	return !reflect.DeepEqual(a, b)
}

// ready fails unless CAPA itself says that all pools are ready. A pool that CAPA cannot
// reconcile, as its cluster is not, comes to rest too.
func (f *fleet) ready(ctx context.Context) error {
	for _, p := range f.pools {
		obj, err := f.object(ctx, p)
		if err != nil {
			return err
		}
		ready := false
		switch obj := obj.(type) {
		case *expinfrav1.AWSMachinePool:
			ready = obj.Status.Ready
		case *expinfrav1.AWSManagedMachinePool:
			ready = obj.Status.Ready
		}
		if !ready {
			return fmt.Errorf("CAPA does not say that %s is ready", p.name)
		}
	}
	return nil
}
