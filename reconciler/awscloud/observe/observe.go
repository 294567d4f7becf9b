// Package observe reads what an instance of weir owns in one account and region, in as few
// calls as AWS allows. With nothing moving these are a page for each 100 groups, one for
// each 200 templates, one for each 100 nodegroups of a cluster, and a call for each
// nodegroup that is due. Facts that a pass need not read again come from memory.
package observe

import (
	"context"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

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

	mu   sync.Mutex
	last owned
}

// owned is what an owner was last seen to have: the maps of the last state, which fills
// copy before they change them.
type owned struct {
	owner     string
	groups    map[string]observed.Group
	templates map[string]observed.Template
}

// New returns an Observer.
func New(c *sdk.Client, r *read.Reader, m *memory.Memory) *Observer {
	return &Observer{client: c, reader: r, memory: m}
}

// Observe reads what the owner has: its groups with their instances, its
// templates with the versions that are known already, and the nodegroups of the
// clusters that Git or those groups name.
func (o *Observer) Observe(ctx context.Context, q observed.Query) (observed.State, error) {
	s := observed.State{
		Account: o.client.Account(), Region: o.client.Region(),
		Templates: map[string]observed.Template{}, Groups: map[string]observed.Group{}, Nodegroups: map[observed.NodegroupName]observed.Nodegroup{},
		Clusters: map[string]bool{},
	}
	if err := o.observeOwned(ctx, q, &s); err != nil {
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

// observeOwned lists the owner's groups and templates, or takes the last list and reads again
// what is near.
func (o *Observer) observeOwned(ctx context.Context, q observed.Query, s *observed.State) error {
	o.mu.Lock()
	last := o.last
	o.mu.Unlock()
	all := q.Near == nil || last.owner != q.Owner || last.groups == nil || last.templates == nil
	g, gctx := errgroup.WithContext(ctx)
	if q.Groups {
		g.Go(func() (err error) {
			if all {
				s.Groups, err = o.reader.OwnedGroups(gctx, q.Owner)
			} else {
				s.Groups, err = again(gctx, last.groups, q.Near.Groups, o.reader.Groups)
			}
			return err
		})
	}
	if q.Templates {
		g.Go(func() (err error) {
			if all {
				s.Templates, err = o.reader.OwnedTemplates(gctx, q.Owner)
			} else {
				s.Templates, err = again(gctx, last.templates, q.Near.Templates, o.reader.Templates)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if q.Groups && q.Templates {
		o.mu.Lock()
		o.last = owned{owner: q.Owner, groups: s.Groups, templates: s.Templates}
		o.mu.Unlock()
	}
	return nil
}

// again is what is known, with what is read anew of some names: what is gone is in it no more.
func again[T any](ctx context.Context, known map[string]T, names []string, read func(context.Context, ...string) (map[string]T, error)) (map[string]T, error) {
	out := maps.Clone(known)
	for _, name := range names {
		delete(out, name)
	}
	found, err := read(ctx, names...)
	maps.Copy(out, found)
	return out, err
}

// recallHooks takes hooks from memory, and reads what is due of them as far as spare
// calls allow: those of many groups are due at one time.
func (o *Observer) recallHooks(ctx context.Context, s *observed.State) error {
	hooks, due, since := o.memory.Hooks.Of(s.Groups, o.client.Now())
	s.Hooks = hooks
	if len(due) > 0 && o.client.Now().Sub(since) >= memory.HooksFor+sdk.PollLate {
		if err := read.Each(ctx, due[:1], o.Hooks(s)); err != nil {
			return err
		}
		due = due[1:]
	}
	return sdk.Poll(ctx, o.client, "autoscaling", "DescribeLifecycleHooks", due, o.Hooks(s))
}

// Hooks reads the lifecycle hooks of groups into s, beside each other, and remembers
// them.
func (o *Observer) Hooks(s *observed.State) func(context.Context, string) error {
	return read.Noting(&s.Unread.Hooks, o.reader.Hooks, func(name string, hooks []intent.LifecycleHook) {
		s.Hooks[name] = observed.GroupHooks{Hooks: hooks, ReadAtPass: true}
		o.memory.Hooks.Put(name, s.Groups[name].ARN, hooks, o.client.Now())
	})
}
