package main

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
)

// cache keeps typed objects, as the cache of a controller's manager does, and copies them
// for who reads. Without it each read would go through JSON in the fake client, and that
// would be counted as CAPA's work.
type cache struct {
	mu      sync.Mutex
	objects map[cacheKey]client.Object
}

type cacheKey struct {
	kind schema.GroupVersionKind
	name client.ObjectKey
}

// newClient is a client of an API server that holds the objects, and nothing else.
func newClient(objects []client.Object) client.Client {
	c := &cache{objects: map[cacheKey]client.Object{}}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&expinfrav1.AWSMachinePool{}, &expinfrav1.AWSManagedMachinePool{}).Build()
	return interceptor.NewClient(server, interceptor.Funcs{
		Get: c.get,
		Update: func(ctx context.Context, next client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			defer c.forget(obj)
			return next.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, next client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			defer c.forget(obj)
			return next.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, next client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			defer c.forget(obj)
			return next.SubResource(name).Patch(ctx, obj, patch, opts...)
		},
	})
}

func (c *cache) get(ctx context.Context, next client.WithWatch, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return err
	}
	key := cacheKey{kind, name}
	c.mu.Lock()
	held := c.objects[key]
	c.mu.Unlock()
	if held == nil {
		if err := next.Get(ctx, name, obj, opts...); err != nil {
			return err
		}
		obj.GetObjectKind().SetGroupVersionKind(kind) // as a manager's cache does; CAPA looks at it
		c.mu.Lock()
		c.objects[key] = obj.DeepCopyObject().(client.Object)
		c.mu.Unlock()
		return nil
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(held.DeepCopyObject()).Elem())
	return nil
}

// forget has the next reader ask the server.
func (c *cache) forget(obj client.Object) {
	kind, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return // the write has failed for that too, and says so
	}
	c.mu.Lock()
	delete(c.objects, cacheKey{kind, client.ObjectKeyFromObject(obj)})
	c.mu.Unlock()
}
