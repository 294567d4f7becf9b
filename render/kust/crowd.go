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

// For each generated object, and each patch, kustomize visits every object, and it appends to an
// annotation of a patched object. The time therefore grows with the square of the number of patches
// or generators in one kustomization. weir bounds the sum of these squares. A patch of one object
// counts with those of the same name only: weir gives kustomize each object with the patches that
// name it.
const (
	maxMany = 2_000
	fewMany = 300
	// mostMany is the largest sum of squares.
	mostMany = 2 * maxMany * maxMany
)

// many counts patches and generators.
type many int

// manyIn reports a kustomization that has too many patches or generators.
func (w *walker) manyIn(k *kust) {
	generators := len(entries(k.doc, "configMapGenerator")) + len(entries(k.doc, "secretGenerator"))
	all, named := len(k.loose), map[string]int{}
	most := 0
	for _, p := range k.patches {
		name := text(p.target, "name")
		if p.target == nil && len(p.docs) == 1 {
			name = text(p.docs[0], "metadata", "name")
		}
		if len(p.docs) == 1 && literal.MatchString(name) {
			named[name]++
			most = max(most, named[name])
			continue
		}
		all += len(p.docs)
	}
	for _, of := range []struct {
		n    int
		what string
	}{{generators, "generators"}, {all + most, "patches that may be for the same object"}} {
		if of.n <= fewMany {
			continue
		}
		if w.many += many(of.n * of.n); of.n > maxMany || w.many > mostMany {
			w.report(faultAt("too-large", k.at(k.doc), fmt.Sprintf("the kustomization has %d %s; at most %d are allowed, and in kustomizations with more than %d fewer together", of.n, of.what, maxMany, fewMany),
				"Split the target, or write what they set into the objects."))
			return
		}
	}
}
