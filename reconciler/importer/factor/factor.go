// Package factor writes the manifests of pools as a kustomize repository in which similar pools share a
// base.
//
// A base (bases/NAME) contains the values that most of its pools have. A pool (overlays/CLUSTER/pools/NAME)
// names its base and contains its name and its differences. Values that all pools of a cluster share, and
// that differ from other clusters, are in the cluster's kustomization only once. A pool without similar
// pools has a file of its own. A base is made if it saves lines.
//
// The package is pure, and the result does not depend on the order of the pools. It assumes how kustomize
// builds its files, so the caller must build them and compare the objects before writing.
package factor

import (
	"cmp"
	"path"
	"slices"
)

// Object is a Kubernetes object: maps, lists, texts, numbers and booleans.
type Object = map[string]any

// MaxOverlayPools is the maximum number of pools in an overlay whose pools use bases. For each reference,
// kustomize searches all objects that had that name, which takes seconds from here on. Pools of larger clusters
// get files of their own, which weir builds in batches.
const MaxOverlayPools = 128

// Pool is a pool, with the objects that would describe it without a base.
type Pool struct {
	// Cluster is the name of its cluster among Clusters.
	Cluster string
	// Name is the unique name of its MachinePool.
	Name string
	// Notes are lines of a comment, without "#".
	Notes []string
	// Objects are the objects of the pool.
	Objects []Object
	// Secret is a file that is written unchanged, such as an encrypted Secret. It may be nil.
	Secret []byte
}

// Cluster contains the objects of a cluster. Its name is valid in Kubernetes.
type Cluster struct {
	Name    string
	Objects []Object
}

// Repository is the written form of the pools.
type Repository struct {
	// Files has the files by path below the repository, with slashes.
	Files map[string][]byte
	// Overlays lists the directories of clusters, in the order of their names.
	Overlays []string
	Bases    []Base
	// Pools has the paths of the pools' directories or files, and Secrets the paths of their Secrets, by
	// name.
	Pools, Secrets map[string]string
}

// Base is a base and the names of the pools that use it.
type Base struct {
	Name  string
	Pools []string
}

// NewRepository writes the pools as a kustomize repository. Similar pools share a base, except in clusters
// with more than MaxOverlayPools pools, whose pools get files of their own. Clusters without a pool are left out.
func NewRepository(clusters []Cluster, pools []Pool) Repository {
	w := writer{out: Repository{Files: map[string][]byte{}, Pools: map[string]string{}, Secrets: map[string]string{}}}
	poolsIn := map[string]int{}
	for i := range pools {
		poolsIn[pools[i].Cluster]++
	}
	for i := range pools {
		p := newPart(&pools[i])
		if poolsIn[p.pool.Cluster] > MaxOverlayPools {
			p = &part{pool: p.pool}
		}
		w.parts = append(w.parts, p)
	}
	slices.SortFunc(w.parts, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.pool.Cluster, b.pool.Cluster), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	w.collectReferences(clusters)
	w.shapes = shapes(w.parts)
	w.nameBases()
	w.findPatches()
	w.writeReferences()
	for _, s := range w.shapes {
		w.base(s)
	}
	clusters = slices.SortedFunc(slices.Values(clusters), func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	taken := map[string]bool{}
	for i := range clusters {
		own := slices.DeleteFunc(slices.Clone(w.parts), func(p *part) bool { return p.pool.Cluster != clusters[i].Name })
		if len(own) > 0 {
			w.overlay(path.Join("overlays", unique(fileName(clusters[i].Name), taken)), &clusters[i], own)
		}
	}
	return w.out
}
