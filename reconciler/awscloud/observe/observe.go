// Package observe reads the resources of an instance in one account and region, in as few calls as AWS
// allows. If nothing is changing, these are a page for each 100 groups, one for each 200 templates, one for
// each 100 nodegroups of a cluster, and a call for each nodegroup that is due. Facts that a pass need not
// read again come from memory.
package observe

import (
	"context"
	"sync"

	"github.com/weir-gitops/weir/reconciler/awscloud/memory"
	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Observer observes one account and region.
type Observer struct {
	client *sdk.Client
	reader *read.Reader
	memory *memory.Memory

	mu    sync.Mutex
	ahead *ahead
	began bool // Observe was called
}

// New returns an Observer.
func New(c *sdk.Client, r *read.Reader, m *memory.Memory) *Observer {
	return &Observer{client: c, reader: r, memory: m}
}

// Observe reads the owner's resources: its groups with their instances, its templates with the cached
// versions, and the nodegroups of the clusters that Git or those groups name.
func (o *Observer) Observe(ctx context.Context, q observed.Query) (observed.State, error) {
	s := observed.State{
		Account: o.client.Account(), Region: o.client.Region(),
		Templates: map[string]observed.Template{}, Groups: map[string]observed.Group{}, Nodegroups: map[observed.NodegroupName]observed.Nodegroup{},
		Clusters: map[string]bool{},
	}
	if err := o.owned(ctx, q, &s); err != nil {
		return observed.State{}, err
	}
	now := o.client.Now()
	o.memory.Made.Sweep()
	o.memory.Activities.Sweep(now)
	o.memory.Versions.Recall(s.Templates, now)
	if err := o.recallHooks(ctx, &s); err != nil {
		return observed.State{}, err
	}
	if err := o.observeNodegroups(ctx, q, &s); err != nil {
		return observed.State{}, err
	}
	return s, nil
}

// recallHooks takes hooks from memory, and reads due ones as far as spare calls allow, because many may be
// due at the same time.
func (o *Observer) recallHooks(ctx context.Context, s *observed.State) error {
	hooks, due, since := o.memory.Hooks.Of(s.Groups, o.client.Now())
	s.Hooks = hooks
	if len(due) > 0 && o.client.Now().Sub(since) >= memory.HooksFor+sdk.PollLate {
		if err := read.Each(ctx, due[:1], o.Hooks(s)); err != nil {
			return err
		}
		due = due[1:]
	}
	return sdk.PollSpare(ctx, o.client, "autoscaling", "DescribeLifecycleHooks", due, o.Hooks(s))
}

// Hooks reads the lifecycle hooks of groups into s, in parallel, and remembers them.
func (o *Observer) Hooks(s *observed.State) func(context.Context, string) error {
	return read.Noting(&s.Unread.Hooks, o.reader.Hooks, func(name string, hooks []intent.LifecycleHook) {
		s.Hooks[name] = observed.GroupHooks{Hooks: hooks, ReadAtPass: true}
		o.memory.Hooks.Put(name, s.Groups[name].ARN, hooks, o.client.Now())
	})
}
