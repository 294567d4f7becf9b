package kust

import (
	"fmt"

	"github.com/weir-gitops/weir/render/diag"
	"go.yaml.in/yaml/v3"
)

// The YAML library compares every key of a mapping with every other one when it decodes
// the mapping into a Go value, and kustomize looks up keys one after the other. The time
// therefore grows with the square of the number of keys in one mapping. weir bounds the sum
// of these squares. Mappings of usual size do not count.
const (
	maxKeys = 5_000
	fewKeys = 1_000
	// maxCrowd is the largest sum of squares: two mappings of maxKeys.
	maxCrowd = 2 * maxKeys * maxKeys
)

// crowd counts mappings with many keys.
type crowd int

// adds counts a mapping with so many keys, and reports whether they are too many.
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
	return faultAt("too-large", at, fmt.Sprintf("a mapping has %d keys; at most %d are allowed, and in mappings with more than %d keys fewer together", keys, maxKeys, fewKeys),
		"Split the object, or put the data into one value.")
}

// crowdedIn returns the keys of the mapping that is too large among the objects of a build,
// or 0.
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
