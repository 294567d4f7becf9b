package resolve

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
	"golang.org/x/sync/errgroup"
)

// parallel is the number of concurrent calls of a kind that reads one thing each.
const parallel = 8

// read reads all wanted facts, in as few calls as AWS allows.
func (r *Resolver) read(ctx context.Context) error {
	for _, f := range []func(context.Context, time.Time) error{
		r.readParameters, r.readImages, r.readReviewed, r.readNamedImages, r.readArchitectures, r.readVPCs,
		r.readSubnets, r.readSubnetsIn, r.readSubnetsOf, r.readSubnetsWith, r.readGroups, r.readGroupsOf, r.readGroupsWith,
		r.readClusters, r.readRoles, r.readRolePolicies, r.readTemplatesByName, r.readTemplatesByID, r.readTemplateVersions,
	} {
		if err := f(ctx, r.now()); err != nil {
			return err
		}
	}
	return nil
}

// refusedBy returns AWS's error if a retry would not help, and fails otherwise.
func refusedBy(err error) (*observed.Error, error) {
	var e *observed.Error
	if errors.As(err, &e) && (e.Kind == observed.Denied || e.Kind == observed.Invalid || e.Kind == observed.NotFound) {
		return e, nil
	}
	return nil, err
}

// readBatch reads all wanted keys with one call.
func readBatch[V any](s *cache[string, V], now time.Time, call func(keys []string) (map[string]V, error)) error {
	keys := s.drain()
	if len(keys) == 0 {
		return nil
	}
	found, err := call(keys)
	if err != nil {
		refused, err := refusedBy(err)
		if err != nil {
			return err
		}
		for _, k := range keys {
			s.putRefused(k, refused, now)
		}
		return nil
	}
	for _, k := range keys {
		if v, ok := found[k]; ok {
			s.put(k, v, now)
		} else {
			s.putAbsent(k, now)
		}
	}
	return nil
}

// readEach reads the wanted keys with one call each, several concurrently.
func readEach[V any](ctx context.Context, s *cache[string, V], now time.Time, call func(ctx context.Context, key string) (v V, found bool, err error)) error {
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, k := range s.drain() {
		g.Go(func() error {
			v, found, err := call(gctx, k)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				refused, err := refusedBy(err)
				if err != nil {
					return err
				}
				s.putRefused(k, refused, now)
			case found:
				s.put(k, v, now)
			default:
				s.putAbsent(k, now)
			}
			return nil
		})
	}
	return g.Wait()
}

func (r *Resolver) readParameters(ctx context.Context, now time.Time) error {
	return readBatch(r.facts.parameters, now, func(names []string) (map[string]string, error) {
		return r.cloud.Parameters(ctx, names)
	})
}

func (r *Resolver) readImages(ctx context.Context, now time.Time) error {
	return r.readByID(ctx, r.facts.images, now)
}

func (r *Resolver) readReviewed(ctx context.Context, now time.Time) error {
	return r.readByID(ctx, r.facts.reviewed, now)
}

func (r *Resolver) readByID(ctx context.Context, s *cache[string, Image], now time.Time) error {
	return readBatch(s, now, func(ids []string) (map[string]Image, error) {
		images, err := r.cloud.Images(ctx, ImageQuery{IDs: ids})
		out := map[string]Image{}
		for _, im := range images {
			out[im.ID] = im
		}
		return out, err
	})
}

func (r *Resolver) readNamedImages(ctx context.Context, now time.Time) error {
	return readEach(ctx, r.facts.namedImages, now, func(ctx context.Context, key string) ([]Image, bool, error) {
		images, err := r.cloud.Images(ctx, splitImageKey(key))
		newestFirst(images)
		return slices.Clone(images[:min(len(images), namedKept)]), len(images) > 0, err
	})
}

// namedKept is the number of newest images of a name to cache. The first is the answer, and a person
// may have reviewed any of them.
const namedKept = 200

func (r *Resolver) readArchitectures(ctx context.Context, now time.Time) error {
	return readBatch(r.facts.architectures, now, func(types []string) (map[string]string, error) {
		all, err := r.cloud.Architectures(ctx, types)
		out := map[string]string{}
		for t, architectures := range all {
			if a, ok := supported(architectures); ok {
				out[t] = a
			}
		}
		return out, err
	})
}

func (r *Resolver) readVPCs(ctx context.Context, now time.Time) error {
	return readBatch(r.facts.vpcs, now, func([]string) (map[string][]VPC, error) {
		vpcs, err := r.cloud.VPCs(ctx)
		return map[string][]VPC{"": vpcs}, err
	})
}

func (r *Resolver) readSubnets(ctx context.Context, now time.Time) error {
	return readBatch(r.facts.subnets, now, func(ids []string) (map[string]Subnet, error) {
		out := map[string]Subnet{}
		err := r.subnetsBy(ctx, "subnet-id", ids, func(s Subnet) { out[s.ID] = s })
		return out, err
	})
}

func (r *Resolver) readSubnetsIn(ctx context.Context, now time.Time) error {
	return readBatch(r.facts.subnetsIn, now, func(vpcs []string) (map[string][]Subnet, error) {
		out := map[string][]Subnet{}
		err := r.subnetsBy(ctx, "vpc-id", vpcs, func(s Subnet) { out[s.VPCID] = append(out[s.VPCID], s) })
		return out, err
	})
}

// readSubnetsOf reads the subnets that are tagged with the names of clusters.
func (r *Resolver) readSubnetsOf(ctx context.Context, now time.Time) error {
	return readBatch(r.facts.subnetsOf, now, func(clusters []string) (map[string][]Subnet, error) {
		out := map[string][]Subnet{}
		err := r.subnetsBy(ctx, "tag-key", clusterTags(clusters), func(s Subnet) {
			for _, c := range clusters {
				if tagged(s.Tags, c) {
					out[c] = append(out[c], s)
				}
			}
		})
		return out, err
	})
}

// subnetsBy reads subnets by one filter, with as many values in a call as EC2 accepts.
func (r *Resolver) subnetsBy(ctx context.Context, filter string, values []string, each func(Subnet)) error {
	seen := map[string]bool{}
	for batch := range slices.Chunk(values, filterValues) {
		found, err := r.cloud.Subnets(ctx, []intent.Filter{{Name: filter, Values: batch}})
		if err != nil {
			return err
		}
		for _, s := range found {
			// Two batches may match tags of the same subnet.
			if !seen[s.ID] {
				seen[s.ID] = true
				each(s)
			}
		}
	}
	return nil
}

// filterValues is the number of values that EC2 accepts in one filter.
const filterValues = 200

func (r *Resolver) readSubnetsWith(ctx context.Context, now time.Time) error {
	return readEach(ctx, r.facts.subnetsWith, now, func(ctx context.Context, filters string) ([]Subnet, bool, error) {
		found, err := r.cloud.Subnets(ctx, intent.SplitFilters(filters))
		return found, len(found) > 0, err
	})
}

// readGroups reads groups by id, as many in a call as EC2 accepts.
func (r *Resolver) readGroups(ctx context.Context, now time.Time) error {
	return readBatch(r.facts.groups, now, func(ids []string) (map[string]SecurityGroup, error) {
		out := map[string]SecurityGroup{}
		for batch := range slices.Chunk(ids, filterValues) {
			found, err := r.cloud.SecurityGroups(ctx, []intent.Filter{{Name: "group-id", Values: batch}})
			if err != nil {
				return nil, err
			}
			for _, g := range found {
				out[g.ID] = g
			}
		}
		return out, nil
	})
}

// readGroupsOf reads the security groups that Cluster API made for clusters, by their tags.
func (r *Resolver) readGroupsOf(ctx context.Context, now time.Time) error {
	return readBatch(r.facts.groupsOf, now, func(clusters []string) (map[string][]SecurityGroup, error) {
		out := map[string][]SecurityGroup{}
		keys := make([]string, 0, len(clusters))
		for _, c := range clusters {
			keys = append(keys, tagCAPACluster+c)
		}
		for batch := range slices.Chunk(keys, filterValues) {
			found, err := r.cloud.SecurityGroups(ctx, []intent.Filter{{Name: "tag-key", Values: batch}})
			if err != nil {
				return nil, err
			}
			for _, g := range found {
				for _, c := range clusters {
					if _, ok := g.Tags[tagCAPACluster+c]; ok && slices.Contains(batch, tagCAPACluster+c) {
						out[c] = append(out[c], g)
					}
				}
			}
		}
		return out, nil
	})
}

func (r *Resolver) readGroupsWith(ctx context.Context, now time.Time) error {
	return readEach(ctx, r.facts.groupsWith, now, func(ctx context.Context, filters string) ([]SecurityGroup, bool, error) {
		found, err := r.cloud.SecurityGroups(ctx, intent.SplitFilters(filters))
		return found, len(found) > 0, err
	})
}

func (r *Resolver) readClusters(ctx context.Context, now time.Time) error {
	return readEach(ctx, r.facts.clusters, now, r.cloud.Cluster)
}

func (r *Resolver) readRoles(ctx context.Context, now time.Time) error {
	return readEach(ctx, r.facts.roles, now, r.cloud.Role)
}

func (r *Resolver) readRolePolicies(ctx context.Context, now time.Time) error {
	return readEach(ctx, r.facts.rolePolicies, now, r.cloud.RolePolicies)
}

// clusterTags returns the keys of tags that say that a resource belongs to one of the clusters.
func clusterTags(clusters []string) []string {
	var out []string
	for _, c := range clusters {
		out = append(out, tagCAPACluster+c, tagKubernetes+c)
	}
	return out
}

func tagged(tags map[string]string, cluster string) bool {
	_, capa := tags[tagCAPACluster+cluster]
	_, kubernetes := tags[tagKubernetes+cluster]
	return capa || kubernetes
}
