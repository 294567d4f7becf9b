package observe

import (
	"context"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Tags that EKS puts on the group behind a nodegroup.
const (
	tagEKSCluster   = "eks:cluster-name"
	tagEKSNodegroup = "eks:nodegroup-name"
)

// observeNodegroups lists the nodegroups of all relevant clusters and describes those that are due. It notes
// a missing cluster, because Git may name a cluster that does not exist yet.
func (o *Observer) observeNodegroups(ctx context.Context, q observed.Query, s *observed.State) error {
	names := map[string]bool{}
	for _, n := range q.EKSClusters {
		names[n] = true
	}
	for _, g := range s.Groups {
		if _, behind := g.Tags[tagEKSNodegroup]; behind {
			if t := g.Tags[tagEKSCluster]; t.Value != "" {
				names[t.Value] = true
			}
		}
	}
	o.clustersOfTemplates(s, names)
	var mu sync.Mutex
	var listed []observed.NodegroupName
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(sdk.Parallel)
	for name := range names {
		g.Go(func() error {
			found, exists, err := o.reader.Nodegroups(gctx, name)
			mu.Lock()
			defer mu.Unlock()
			if e := read.Denied(err); e != nil {
				s.Unread.Clusters = read.Note(s.Unread.Clusters, name, e)
				return nil
			}
			s.Clusters[name] = exists
			listed = append(listed, found...)
			if err == nil && !exists {
				o.memory.Clusters.Add(name, o.client.Now())
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return o.describeDue(ctx, q, listed, s)
}

// clustersOfTemplates adds the clusters that only launch templates name, because a nodegroup there may use
// them. A cluster that was recently missing is not read in each pass, because such templates may stay for
// years. It is not reported as missing, so the templates stay.
func (o *Observer) clustersOfTemplates(s *observed.State, names map[string]bool) {
	only := map[string]bool{}
	for _, t := range s.Templates {
		if name := t.Tags[observed.TagCluster]; name != "" && !names[name] {
			only[name] = true
		}
	}
	recent := o.memory.Clusters.Recent(only, o.client.Now())
	maps.DeleteFunc(only, func(name string, _ bool) bool { return recent[name] })
	maps.Copy(names, only)
}

// describeDue describes the due nodegroups as far as spare calls allow, and takes the other nodegroups from
// memory. It always describes a nodegroup that is not in memory.
func (o *Observer) describeDue(ctx context.Context, q observed.Query, listed []observed.NodegroupName, s *observed.State) error {
	now := o.client.Now()
	unknown, waiting := o.memory.Nodegroups.Recall(q, listed, s, now)
	if len(waiting) > 0 && now.Sub(waiting[0].Since) >= sdk.PollLate {
		unknown, waiting = append(unknown, waiting[0].Name), waiting[1:]
	}
	due := make([]observed.NodegroupName, len(waiting))
	for i, d := range waiting {
		due[i] = d.Name
	}
	described, err := o.Describe(ctx, unknown, s)
	if err != nil {
		return err
	}
	err = sdk.PollSpare(ctx, o.client, "eks", "DescribeNodegroup", due, read.Noting(&s.Unread.Nodegroups, o.reader.Nodegroup, func(name observed.NodegroupName, n *observed.Nodegroup) { described[name] = n }))
	for _, name := range due {
		if s.Unread.Nodegroups[name] != nil {
			delete(s.Nodegroups, name)
		}
	}
	for name, n := range described {
		if n == nil {
			delete(s.Nodegroups, name) // deleted between the list and the description
			continue
		}
		s.Nodegroups[name] = *n
		o.memory.Nodegroups.Put(*n, s.Groups, o.client.Now())
	}
	return err
}

// Describe describes nodegroups in parallel. A missing nodegroup is nil in the result. A nodegroup that weir
// may not describe is not in the result, but in the Unread of s.
func (o *Observer) Describe(ctx context.Context, names []observed.NodegroupName, s *observed.State) (map[observed.NodegroupName]*observed.Nodegroup, error) {
	out := make(map[observed.NodegroupName]*observed.Nodegroup, len(names))
	err := read.Each(ctx, names, read.Noting(&s.Unread.Nodegroups, o.reader.Nodegroup, func(name observed.NodegroupName, n *observed.Nodegroup) { out[name] = n }))
	if err != nil {
		return nil, err
	}
	return out, nil
}
