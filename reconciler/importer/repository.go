package importer

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/importer/factor"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Repository returns the manifests of pools as a kustomize repository. Similar pools share a base, and each
// cluster has an overlay. Its objects are the same as in Files. secrets contains the files of Secrets, by
// their paths in Files.
func Repository(s observed.State, pools []Pool, secrets map[string][]byte) factor.Repository {
	var in []factor.Pool
	clusters := map[string]string{}
	for i := range pools {
		p := &pools[i]
		if p.State == Refused {
			continue
		}
		clusters[clusterName(s, p.Cluster)] = p.Cluster
		one := factor.Pool{Cluster: clusterName(s, p.Cluster), Name: p.Key, Secret: secrets[p.SecretFile]}
		for _, o := range p.objects {
			one.Objects = append(one.Objects, escaped(plain(o)).(map[string]any))
		}
		// The origin is only noted if the name does not show it.
		for line := range strings.Lines(comment(p)) {
			if strings.HasPrefix(line, "# Not said") || p.Key != p.Name && strings.HasPrefix(line, "# Imported") {
				one.Notes = append(one.Notes, strings.TrimSpace(strings.TrimPrefix(line, "#")))
			}
		}
		in = append(in, one)
	}
	nodes := commonGroups(pools)
	var of []factor.Cluster
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		c := factor.Cluster{Name: name}
		for _, o := range clusterObjects(s, name, clusters[name], nodes[clusters[name]]) {
			c.Objects = append(c.Objects, escaped(plain(o)).(map[string]any))
		}
		of = append(of, c)
	}
	return factor.NewRepository(of, in)
}

// Place sets the paths of the pools in a repository.
func Place(pools []Pool, r factor.Repository) {
	for i := range pools {
		if p := &pools[i]; p.State != Refused {
			p.File = r.Pools[p.Key]
			if p.SecretFile != "" {
				p.SecretFile = r.Secrets[p.Key]
			}
		}
	}
}
