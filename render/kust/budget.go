package kust

import (
	"fmt"

	"github.com/weir-gitops/weir/render/diag"
	"go.yaml.in/yaml/v3"
)

// budget counts everything in the files of a build that takes time or memory, and compares it with the
// limits.
type budget struct {
	limits *Limits
	nodes  int   // YAML nodes that were parsed
	bytes  int   // of the files
	crowd  crowd // mappings with many keys
	many   many  // kustomizations with many patches or generators
	// full is true if there are too many nodes. Nothing more is parsed.
	full bool
	// small is true for a small build. If the build turns out to be large, grow is called. If it returns
	// true, the build continues as a large one. Otherwise the build ends and large is set.
	small, large bool
	grow         func() bool
}

// tooMany reports whether the build cannot have so many nodes. A small build tries to grow first.
func (b *budget) tooMany(nodes int) bool {
	return nodes > b.limits.Nodes && (!b.small || !b.grow() || nodes > b.limits.Nodes)
}

// takesBytes counts the bytes of a file, and reports whether the build can use it.
func (b *budget) takesBytes(n int) bool {
	if b.bytes += n; b.small && b.bytes > smallBytes && !b.grow() {
		b.large = true
		return false
	}
	return true
}

// overfull reports once that the files have more nodes than a build may have.
func (r *reader) overfull(file string) {
	r.large = r.large || r.small
	if r.full || r.large {
		return
	}
	r.full = true
	r.report(tooManyNodes(diag.Position{File: file}, fmt.Sprintf("the files up to this one have more than %d YAML nodes", r.limits.Nodes), r.limits.Nodes))
}

// The YAML library compares every key of a mapping with every other one when it decodes
// the mapping into a Go value, and kustomize looks up keys one after the other. The time
// therefore grows with the square of the number of keys in one mapping. weir bounds the sum
// of these squares. Mappings of usual size do not count.
const (
	maxKeys = 5_000
	fewKeys = 1_000
	// maxCrowd is the maximum sum of squares: two mappings of maxKeys.
	maxCrowd = 2 * maxKeys * maxKeys
)

// crowd counts mappings with many keys.
type crowd int

// adds counts a mapping with the given number of keys, and reports whether there are too many.
func (c *crowd) adds(keys int) bool {
	if keys <= fewKeys {
		return false
	}
	if keys <= maxKeys {
		*c += crowd(keys * keys)
	}
	return keys > maxKeys || *c > maxCrowd
}

func crowded(at diag.Position, keys int) diag.Diagnostic {
	return faultAt("too-large", at, fmt.Sprintf("a mapping has %d keys; at most %d are allowed, and fewer if several mappings have more than %d keys", keys, maxKeys, fewKeys),
		"Split the object, or put the data into one value.")
}

// crowdedIn returns the number of keys of the mapping that exceeds the limit in the objects of a build, or 0.
func crowdedIn(nodes []*yaml.Node) int {
	var c crowd
	var visit func(n *yaml.Node) int
	visit = func(n *yaml.Node) int {
		if n.Kind == yaml.MappingNode && c.adds(len(n.Content)/2) {
			return len(n.Content) / 2
		}
		for _, child := range n.Content {
			if keys := visit(child); keys > 0 {
				return keys
			}
		}
		return 0
	}
	for _, n := range nodes {
		if keys := visit(n); keys > 0 {
			return keys
		}
	}
	return 0
}

// For every generated object and every patch, kustomize visits all objects. For every patched object, it
// appends to an annotation. So the time grows with the square of the number of patches or generators in a
// kustomization. weir bounds the sum of these squares. A patch for one object counts only with other patches
// for the same name, because weir passes each object to kustomize only with its own patches.
const (
	maxMany = 2_000
	fewMany = 300
	// mostMany is the maximum sum of squares.
	mostMany = 2 * maxMany * maxMany
)

// many counts patches and generators.
type many int
