package awscloud

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/weir-gitops/weir/reconciler/plan"
	"golang.org/x/sync/errgroup"
)

// remembered is a nodegroup as it was last described. EKS has no call that
// describes several, so a resting one is described once in a while only.
type remembered struct {
	nodegroup plan.Nodegroup
	// groups is how the groups behind it looked then, by name.
	groups map[string]groupMark
}

// groupMark is what of a group tells that its nodegroup may have changed.
type groupMark struct {
	minSize, maxSize, desired int32
	instances                 int
	template                  plan.TemplateRef
}

func mark(g plan.Group) groupMark {
	return groupMark{minSize: g.MinSize, maxSize: g.MaxSize, desired: g.DesiredCapacity, instances: len(g.Instances), template: g.Template}
}

// observeNodegroups lists the nodegroups of all clusters concerned and describes
// those that are due. A cluster that does not exist is noted as such: Git may
// name one that is yet to be made.
func (c *Cloud) observeNodegroups(ctx context.Context, q plan.Query, s *plan.State) error {
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
	for _, t := range s.Templates {
		if name := t.Tags[plan.TagCluster]; name != "" {
			names[name] = true
		}
	}
	var mu sync.Mutex
	var listed []plan.NodegroupName
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for name := range names {
		g.Go(func() error {
			found, exists, err := c.listNodegroups(gctx, name)
			mu.Lock()
			defer mu.Unlock()
			if e := refused(err); e != nil {
				s.Unread.Clusters = note(s.Unread.Clusters, name, e)
				return nil
			}
			s.Clusters[name] = exists
			listed = append(listed, found...)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return c.describeDue(ctx, q, listed, s)
}

func (c *Cloud) listNodegroups(ctx context.Context, cluster string) (found []plan.NodegroupName, exists bool, err error) {
	in := &eks.ListNodegroupsInput{ClusterName: aws.String(cluster), MaxResults: aws.Int32(100)}
	err = eachPage(ctx, "eks", "ListNodegroups", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := c.eks.ListNodegroups(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, n := range out.Nodegroups {
			found = append(found, plan.NodegroupName{Cluster: cluster, Name: n})
		}
		return out.NextToken, tooMany(len(found))
	})
	if e := classify("eks", "ListNodegroups", err); e != nil {
		if e.Kind == plan.NotFound {
			return nil, false, nil
		}
		return nil, false, e
	}
	return found, true, nil
}

// describeDue describes what is due and takes the rest from memory.
func (c *Cloud) describeDue(ctx context.Context, q plan.Query, listed []plan.NodegroupName, s *plan.State) error {
	var due []plan.NodegroupName
	c.mu.Lock()
	for _, n := range listed {
		known, ok := c.nodegroups[n]
		if !ok || c.due(q, known, s) {
			due = append(due, n)
			continue
		}
		known.nodegroup.DescribedAtPass = false
		s.Nodegroups[n] = known.nodegroup
	}
	kept := make(map[plan.NodegroupName]bool, len(listed))
	for _, n := range listed {
		kept[n] = true
	}
	maps.DeleteFunc(c.nodegroups, func(n plan.NodegroupName, _ remembered) bool {
		_, read := s.Clusters[n.Cluster]
		return read && !kept[n]
	})
	c.mu.Unlock()
	described, err := c.describeNodegroups(ctx, due, s)
	if err != nil {
		return err
	}
	for name, n := range described {
		if n == nil {
			continue // it went away between the list and the description
		}
		s.Nodegroups[name] = *n
		c.remember(*n, s)
	}
	return nil
}

// due decides whether a nodegroup that is known has to be described anew.
func (c *Cloud) due(q plan.Query, known remembered, s *plan.State) bool {
	n := known.nodegroup
	if n.Status != "ACTIVE" || q.Slices <= 1 || slices.Contains(q.Describe, n.NodegroupName) {
		return true
	}
	if sliceOf(n.NodegroupName, q.Slices) == q.Slice {
		return true
	}
	for _, name := range n.GroupNames {
		g, found := s.Groups[name]
		seen, marked := known.groups[name]
		if found != marked || (found && mark(g) != seen) {
			return true
		}
	}
	return false
}

// sliceOf spreads nodegroups evenly over slices, each always in the same one.
func sliceOf(n plan.NodegroupName, slices int) int {
	h := fnv.New32a()
	// A hash's Write returns no error.
	_, _ = h.Write([]byte(n.String()))
	return int(h.Sum32() % uint32(slices)) //nolint:gosec // slices is a small positive number
}

func (c *Cloud) remember(n plan.Nodegroup, s *plan.State) {
	r := remembered{nodegroup: n, groups: map[string]groupMark{}}
	for _, name := range n.GroupNames {
		if g, ok := s.Groups[name]; ok {
			r.groups[name] = mark(g)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodegroups[n.NodegroupName] = r
}

// forgetNodegroup has the next Observe describe a nodegroup that was changed.
func (c *Cloud) forgetNodegroup(n plan.NodegroupName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodegroups, n)
}

// describeNodegroups describes nodegroups beside each other. One that does not
// exist is nil in the result; one that may not be described is not in it, but
// among what s holds as unread.
func (c *Cloud) describeNodegroups(ctx context.Context, names []plan.NodegroupName, s *plan.State) (map[plan.NodegroupName]*plan.Nodegroup, error) {
	var mu sync.Mutex
	out := make(map[plan.NodegroupName]*plan.Nodegroup, len(names))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, name := range names {
		g.Go(func() error {
			n, err := c.describeNodegroup(gctx, name)
			mu.Lock()
			defer mu.Unlock()
			if e := refused(err); e != nil {
				s.Unread.Nodegroups = note(s.Unread.Nodegroups, name, e)
				return nil
			}
			out[name] = n
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// describeNodegroup returns nil where there is no such nodegroup.
func (c *Cloud) describeNodegroup(ctx context.Context, name plan.NodegroupName) (*plan.Nodegroup, error) {
	out, err := c.eks.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String(name.Cluster), NodegroupName: aws.String(name.Name)})
	if e := classify("eks", "DescribeNodegroup", err); e != nil {
		if e.Kind == plan.NotFound {
			return nil, nil //nolint:nilnil // documented: nil stands for absent
		}
		return nil, e
	}
	n := nodegroup(out.Nodegroup)
	return &n, nil
}
