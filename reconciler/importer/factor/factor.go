// Package factor writes the manifests of pools as a kustomize repository in which pools
// that are alike share a base.
//
// A base (bases/NAME) holds one pool as most of those have it that use it. A pool
// (overlays/CLUSTER/pools/NAME) says which base it is of, what it is called, and what
// differs. What the pools of a cluster have in common, and those of other clusters have
// otherwise, stands once in the cluster's kustomization. A pool that is like no other is a
// file of its own. A base is made where it saves lines.
//
// The package is pure, and the same pools give the same files in whatever order they come.
// It takes for granted what kustomize makes of its files; who writes them builds them
// first, and compares the objects.
package factor

import (
	"cmp"
	"path"
	"slices"
)

// Object is a Kubernetes object: maps, lists, texts, numbers and booleans.
type Object = map[string]any

// Most is the number of pools that an overlay may have whose pools use bases. For each reference,
// kustomize searches all objects that had that name, which takes seconds from here on. Pools of
// larger clusters are files of their own, which weir builds in batches.
const Most = 128

// Pool is a pool as it would be written by itself.
type Pool struct {
	// Cluster is the name of its cluster among Clusters.
	Cluster string
	// Name is that of its MachinePool, and of no other pool's.
	Name string
	// Notes are lines of a comment, without "#".
	Notes []string
	// Objects are those that the pool consists of.
	Objects []Object
	// Secret is a file that is written as it is, such as an encrypted Secret; nil for none.
	Secret []byte
}

// Cluster holds the objects of a cluster. Its name is valid in Kubernetes.
type Cluster struct {
	Name    string
	Objects []Object
}

// Repository is the written form of the pools.
type Repository struct {
	// Files have paths below the repository, with slashes.
	Files map[string][]byte
	// Overlays are the directories that stand for clusters, in the order of their names.
	Overlays []string
	Bases    []Base
	// Pools are the paths of the pools' directories or files, and Secrets those of what
	// they have beside them, by name.
	Pools, Secrets map[string]string
}

// Base is a base and the names of the pools that use it.
type Base struct {
	Name  string
	Pools []string
}

// Files makes the repository. Clusters without a pool are left out.
func Files(clusters []Cluster, pools []Pool) Repository {
	w := writer{out: Repository{Files: map[string][]byte{}, Pools: map[string]string{}, Secrets: map[string]string{}}}
	in := map[string]int{}
	for i := range pools {
		in[pools[i].Cluster]++
	}
	for i := range pools {
		p := newPart(&pools[i])
		if in[p.pool.Cluster] > Most {
			p = &part{pool: p.pool}
		}
		w.parts = append(w.parts, p)
	}
	slices.SortFunc(w.parts, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.pool.Cluster, b.pool.Cluster), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	w.refer(clusters)
	w.shapes = shapes(w.parts)
	w.name()
	w.findPatches()
	w.references()
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
