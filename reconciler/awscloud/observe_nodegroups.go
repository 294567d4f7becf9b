package awscloud

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/weir-gitops/weir/reconciler/observed"
	"golang.org/x/sync/errgroup"
)

// remembered is a nodegroup as it was last described. EKS has no call that
// describes several, so a resting one is described once in a while only.
type remembered struct {
	nodegroup observed.Nodegroup
	// groups is how the groups behind it looked then, by name.
	groups map[string]groupMark
	// at is when it was described, and since when it has been found in its status.
	at, since time.Time
}

// groupMark is what of a group tells that its nodegroup may have changed.
type groupMark struct {
	minSize, maxSize, desired int32
	instances                 int
	template                  observed.TemplateRef
}

func mark(g observed.Group) groupMark {
	return groupMark{minSize: g.MinSize, maxSize: g.MaxSize, desired: g.DesiredCapacity, instances: len(g.Instances), template: g.Template}
}

// observeNodegroups lists the nodegroups of all clusters concerned and describes
// those that are due. A cluster that does not exist is noted as such: Git may
// name one that is yet to be made.
func (c *Cloud) observeNodegroups(ctx context.Context, q observed.Query, s *observed.State) error {
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
	c.clustersOfTemplates(s, names)
	var mu sync.Mutex
	var listed []observed.NodegroupName
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
			if err == nil && !exists {
				c.gone.add(name, c.now())
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return c.describeDue(ctx, q, listed, s)
}

// clustersOfTemplates adds the clusters that launch templates name alone: a nodegroup
// there may use them. One that did not exist a short while ago is not asked for in each
// pass, for the templates may stay for years; nor is it said to be gone: they stay.
func (c *Cloud) clustersOfTemplates(s *observed.State, names map[string]bool) {
	only := map[string]bool{}
	for _, t := range s.Templates {
		if name := t.Tags[observed.TagCluster]; name != "" && !names[name] {
			only[name] = true
		}
	}
	recent := c.gone.recent(only, c.now())
	maps.DeleteFunc(only, func(name string, _ bool) bool { return recent[name] })
	maps.Copy(names, only)
}

// goneFor is how long a cluster that only templates name is not asked for once it was
// found to be gone.
const goneFor = time.Minute

// goneClusters remembers which clusters did not exist, and when that was found.
type goneClusters struct {
	mu    sync.Mutex
	found map[string]time.Time
}

func (g *goneClusters) add(name string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.found == nil {
		g.found = map[string]time.Time{}
	}
	g.found[name] = now
}

// recent are those of the names that were found to be gone a short while ago. All else
// is forgotten.
func (g *goneClusters) recent(names map[string]bool, now time.Time) map[string]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.found, func(name string, at time.Time) bool { return !names[name] || now.Sub(at) >= goneFor })
	out := make(map[string]bool, len(g.found))
	for name := range g.found {
		out[name] = true
	}
	return out
}

func (c *Cloud) listNodegroups(ctx context.Context, cluster string) (found []observed.NodegroupName, exists bool, err error) {
	in := &eks.ListNodegroupsInput{ClusterName: aws.String(cluster), MaxResults: aws.Int32(100)}
	err = eachPage(ctx, "eks", "ListNodegroups", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := c.eks.ListNodegroups(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, n := range out.Nodegroups {
			found = append(found, observed.NodegroupName{Cluster: cluster, Name: n})
		}
		return out.NextToken, tooMany(len(found))
	})
	if e := classify("eks", "ListNodegroups", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil, false, nil
		}
		return nil, false, e
	}
	return found, true, nil
}

// describeDue describes what is due, as far as there are calls to spare, and takes
// the rest from memory. What nothing is known of it always describes.
func (c *Cloud) describeDue(ctx context.Context, q observed.Query, listed []observed.NodegroupName, s *observed.State) error {
	var unknown, due []observed.NodegroupName
	last, now := map[observed.NodegroupName]time.Time{}, c.now()
	c.mu.Lock()
	for _, n := range listed {
		known, ok := c.nodegroups[n]
		if !ok || q.Round == 0 {
			unknown = append(unknown, n)
			continue
		}
		known.nodegroup.DescribedAtPass = false
		s.Nodegroups[n] = known.nodegroup
		if known.due(q, s, now) {
			due = append(due, n)
			last[n] = known.at
			if known.nodegroup.Status == "ACTIVE" {
				last[n] = known.at.Add(q.Round) // what is on its way comes first
			}
		}
	}
	kept := make(map[observed.NodegroupName]bool, len(listed))
	for _, n := range listed {
		kept[n] = true
	}
	gone := func(n observed.NodegroupName) bool { return !kept[n] && s.Unread.Clusters[n.Cluster] == nil }
	maps.DeleteFunc(c.nodegroups, func(n observed.NodegroupName, _ remembered) bool { return gone(n) })
	maps.DeleteFunc(c.updates, func(u updateOf, _ observed.NodegroupUpdate) bool { return gone(u.NodegroupName) })
	c.mu.Unlock()
	slices.SortFunc(due, func(a, b observed.NodegroupName) int { return last[a].Compare(last[b]) })
	if len(due) > 0 && now.Sub(last[due[0]]) >= pollLate {
		unknown, due = append(unknown, due[0]), due[1:]
	}
	described, err := c.describeNodegroups(ctx, unknown, s)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	err = poll(ctx, c, "eks", "DescribeNodegroup", due, func(ctx context.Context, name observed.NodegroupName) error {
		n, err := c.describeNodegroup(ctx, name)
		mu.Lock()
		defer mu.Unlock()
		if e := refused(err); e != nil {
			s.Unread.Nodegroups = note(s.Unread.Nodegroups, name, e)
			delete(s.Nodegroups, name)
			return nil
		}
		if err == nil {
			described[name] = n
		}
		return err
	})
	for name, n := range described {
		if n == nil {
			delete(s.Nodegroups, name) // it went away between the list and the description
			continue
		}
		s.Nodegroups[name] = *n
		c.remember(*n, s)
	}
	return err
}

// due decides whether a nodegroup that is known is to be described anew.
func (r remembered) due(q observed.Query, s *observed.State, now time.Time) bool {
	n := r.nodegroup
	if n.Status != "ACTIVE" {
		every := q.AskEvery
		if every == 0 {
			every = observed.DefaultAskEvery
		}
		return now.Sub(r.at) >= min(every, r.at.Sub(r.since))
	}
	if now.Sub(r.at) > sinceTurn(n.NodegroupName, q.Round, now) {
		return true
	}
	for _, name := range n.GroupNames {
		g, found := s.Groups[name]
		seen, marked := r.groups[name]
		if found != marked || (found && mark(g) != seen) {
			return true
		}
	}
	return false
}

// sinceTurn is how long ago a nodegroup was to be described last: each has its own
// moment of a round, so that a round's calls are spread evenly over it, however many
// passes there are in one.
func sinceTurn(n observed.NodegroupName, round time.Duration, now time.Time) time.Duration {
	h := fnv.New64a()
	// A hash's Write returns no error.
	_, _ = h.Write([]byte(n.String()))
	moment := time.Duration(h.Sum64() % uint64(round)) //nolint:gosec // less than round, which is positive
	return now.Sub(now.Add(-moment).Truncate(round).Add(moment))
}

func (c *Cloud) remember(n observed.Nodegroup, s *observed.State) {
	now := c.now()
	r := remembered{nodegroup: n, groups: map[string]groupMark{}, at: now, since: now}
	for _, name := range n.GroupNames {
		if g, ok := s.Groups[name]; ok {
			r.groups[name] = mark(g)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, known := c.nodegroups[n.NodegroupName]; known && before.nodegroup.Status == n.Status {
		r.since = before.since
	}
	c.nodegroups[n.NodegroupName] = r
}

// forgetNodegroup has the next Observe describe a nodegroup that was changed.
func (c *Cloud) forgetNodegroup(n observed.NodegroupName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodegroups, n)
}

// describeNodegroups describes nodegroups beside each other. One that does not
// exist is nil in the result; one that may not be described is not in it, but
// among what s holds as unread.
func (c *Cloud) describeNodegroups(ctx context.Context, names []observed.NodegroupName, s *observed.State) (map[observed.NodegroupName]*observed.Nodegroup, error) {
	out := make(map[observed.NodegroupName]*observed.Nodegroup, len(names))
	err := each(ctx, names, noting(&s.Unread.Nodegroups, c.describeNodegroup, func(name observed.NodegroupName, n *observed.Nodegroup) { out[name] = n }))
	if err != nil {
		return nil, err
	}
	return out, nil
}

// describeNodegroup returns nil where there is no such nodegroup.
func (c *Cloud) describeNodegroup(ctx context.Context, name observed.NodegroupName) (*observed.Nodegroup, error) {
	out, err := c.eks.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String(name.Cluster), NodegroupName: aws.String(name.Name)})
	if e := classify("eks", "DescribeNodegroup", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil, nil //nolint:nilnil // documented: nil stands for absent
		}
		return nil, e
	}
	n := nodegroup(out.Nodegroup)
	return &n, nil
}
