package awscloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Survey reads groups with their hooks, and nodegroups, of any owner, in as few calls as AWS allows: a page
// for every 100 groups and every 100 nodegroups of a cluster, a call for each nodegroup, and a call for the
// hooks of each group that choose keeps. It never writes. The state contains only existing clusters.
// clusters names the clusters to read, nil for all. Survey reports its progress to told, which may be called
// at any moment.
func (c *Cloud) Survey(ctx context.Context, clusters []string, choose func(*observed.State), told func(done, all int)) (observed.State, error) {
	s := observed.State{
		Account: c.Account(), Region: c.Region(), Nodegroups: map[observed.NodegroupName]observed.Nodegroup{},
		Hooks: map[string]observed.GroupHooks{}, Clusters: map[string]bool{},
	}
	var err error
	if s.Groups, err = c.reader.AllGroups(ctx); err != nil {
		return s, err
	}
	if clusters == nil {
		if clusters, err = c.reader.Clusters(ctx); err != nil {
			return s, err
		}
	}
	var mu sync.Mutex
	var listed []observed.NodegroupName
	if err := read.Each(ctx, clusters, func(ctx context.Context, cluster string) error {
		found, exists, err := c.reader.Nodegroups(ctx, cluster)
		mu.Lock()
		defer mu.Unlock()
		s.Clusters[cluster] = exists
		listed = append(listed, found...)
		return err
	}); err != nil {
		return s, err
	}
	done := 0
	count := func(all int) { // the caller holds mu
		done++
		told(done, all)
	}
	if err := read.Each(ctx, listed, func(ctx context.Context, name observed.NodegroupName) error {
		n, err := c.reader.Nodegroup(ctx, name)
		mu.Lock()
		defer mu.Unlock()
		if n != nil {
			s.Nodegroups[name] = *n
		}
		count(len(listed))
		return err
	}); err != nil {
		return s, err
	}
	choose(&s)
	done = 0
	names := slices.Sorted(maps.Keys(s.Groups))
	err = read.Each(ctx, names, func(ctx context.Context, name string) error {
		var hooks []intent.LifecycleHook
		hooks, err := c.reader.Hooks(ctx, name)
		if err != nil {
			return fmt.Errorf("hooks of the group %s: %w", name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		s.Hooks[name] = observed.GroupHooks{Hooks: hooks, ReadAtPass: true}
		count(len(names))
		return nil
	})
	return s, err
}
