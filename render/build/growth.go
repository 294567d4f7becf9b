package build

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"go.yaml.in/yaml/v3"
)

// maxNodes is how many YAML nodes a build may hold by a rough count: bases as
// often as they are included, and patches as often as they may apply. It keeps a
// build below some hundred megabytes.
const maxNodes = 5_000_000

// maxCopied is how many bytes the copy operations of one JSON patch may copy.
const maxCopied = 1 << 20

// bound refuses trees that are small on disk and large when built: kustomize
// builds a base once for each time that it is named, applies a patch to every
// object that its target selects, and lets a replacement copy a field into
// itself.
func (w *walker) bound(top *kust) {
	for _, k := range w.order {
		w.measure(k)
	}
	lim := w.view.lim
	at := diag.Position{File: top.file}
	if top.visits > lim.Files {
		w.report(tooLarge(at, fmt.Sprintf("the build reads more than %d files, bases counted as often as they are included", lim.Files)))
	}
	if top.count > lim.Objects {
		w.report(tooLarge(at, fmt.Sprintf("the build holds more than %d objects", lim.Objects)))
	}
	if top.nodes > maxNodes {
		w.report(tooLarge(at, fmt.Sprintf("the build holds more than %d YAML nodes, patches counted as often as they may apply", maxNodes)))
	}
	w.boundReplacements(top)
}

// measure sums up what a build of k takes; its children are measured already.
func (w *walker) measure(k *kust) {
	k.visits, k.count, k.nodes = 1+len(k.objects)+len(k.patches), 0, 0
	for _, f := range k.objects {
		k.count += len(f.docs)
		k.nodes += f.nodes
	}
	for _, c := range k.children {
		k.visits = min(k.visits+c.visits, sizeCap)
		k.count = min(k.count+c.count, sizeCap)
		k.nodes = min(k.nodes+c.nodes, sizeCap)
	}
	perObject := 0
	for _, p := range k.patches {
		size := 0
		for _, doc := range p.docs {
			size += expandedSize(doc, map[*yaml.Node]int{})
		}
		if p.target != nil {
			perObject = min(perObject+size, sizeCap)
		} else {
			k.nodes = min(k.nodes+size, sizeCap)
		}
	}
	for _, set := range pairSets(k.doc) {
		perObject += len(set.Content)
	}
	if k.count > 0 {
		k.nodes = min(k.nodes+perObject*min(k.count, maxNodes), sizeCap)
	}
}

// expandedSize counts nodes with aliases expanded. The vetting has made sure
// that it ends.
func expandedSize(n *yaml.Node, known map[*yaml.Node]int) int {
	if size, ok := known[n]; ok {
		return size
	}
	size := 1
	if n.Kind == yaml.AliasNode {
		size += expandedSize(n.Alias, known)
	}
	for _, c := range n.Content {
		size = min(size+expandedSize(c, known), sizeCap)
	}
	known[n] = size
	return size
}

// replacement is what of a replacement decides whether it can feed itself.
type replacement struct {
	source  *yaml.Node
	targets []*yaml.Node
}

// boundReplacements refuses replacements that could double a field again and
// again: those that read from where some replacement writes. A few are allowed,
// as far as the largest file could be doubled that often.
func (w *walker) boundReplacements(top *kust) {
	times := map[*kust]int{top: 1}
	var all []replacement
	feeding := 0
	for i := len(w.order) - 1; i >= 0; i-- {
		for _, c := range w.order[i].children {
			times[c] = min(times[c]+times[w.order[i]], sizeCap)
		}
		for _, doc := range w.order[i].growth {
			all = append(all, replacementsIn(doc)...)
		}
	}
	for _, k := range w.order {
		for _, doc := range k.growth {
			for _, r := range replacementsIn(doc) {
				feeding = min(feeding+times[k]*feeds(r, all), sizeCap)
			}
		}
	}
	largest := int64(1)
	for _, f := range w.files {
		largest = max(largest, int64(len(f.content)))
	}
	if feeding > 40 || largest<<feeding > w.view.lim.TotalBytes {
		w.report(tooLarge(diag.Position{File: top.file}, "replacements copy fields into themselves too often"))
	}
}

// replacementsIn returns every mapping below n with a source and targets.
func replacementsIn(n *yaml.Node) []replacement {
	var out []replacement
	_, source := foldedField(n, "source")
	if _, targets := foldedField(n, "targets"); source != nil && targets != nil && targets.Kind == yaml.SequenceNode {
		out = append(out, replacement{source, targets.Content})
	}
	for _, c := range n.Content {
		out = append(out, replacementsIn(c)...)
	}
	return out
}

// feeds counts the target fields of r that some replacement may read.
func feeds(r replacement, all []replacement) int {
	count := 0
	for _, target := range r.targets {
		_, sel := foldedField(target, "select")
		_, list := foldedField(target, "fieldPaths")
		for _, p := range append([]*yaml.Node{}, contentOf(list)...) {
			for _, other := range all {
				if mayBeSame(other.source, sel) && overlap(folded(other.source, "fieldPath"), deref(p).Value) {
					count++
					break
				}
			}
		}
	}
	return count
}

func contentOf(n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	return n.Content
}

func folded(n *yaml.Node, name string) string {
	if _, v := foldedField(n, name); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// mayBeSame reports whether two selectors could select one object.
func mayBeSame(a, b *yaml.Node) bool {
	for _, name := range []string{"kind", "name"} {
		x, y := folded(a, name), folded(b, name)
		if x != "" && y != "" && x != y && !strings.ContainsAny(x+y, `.*+?[]()|^$\`) {
			return false
		}
	}
	return true
}

// overlap reports whether one of two field paths could be, or contain, the other.
func overlap(a, b string) bool {
	if a == "" || b == "" {
		return true
	}
	split := func(r rune) bool { return r == '.' || r == '/' }
	x, y := strings.FieldsFunc(a, split), strings.FieldsFunc(b, split)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] && !strings.ContainsAny(x[i]+y[i], "*[]\\\"'") && !isDigits(x[i]) && !isDigits(y[i]) {
			return false
		}
	}
	return true
}
