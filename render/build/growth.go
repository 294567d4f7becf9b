package build

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"go.yaml.in/yaml/v3"
)

// maxCopied is how many bytes the copy operations of one JSON patch may copy.
const maxCopied = 1 << 20

// replacement is what of a replacement decides what it can copy where.
type replacement struct {
	source  selector
	path    string // of the field that is read
	targets []replacementTarget
}

type replacementTarget struct {
	sel   selector
	paths []string
}

type selector struct{ kind, name string }

// maxReplacements is how many fields the replacements of one build may write:
// each is compared with all that are read.
const maxReplacements = 2000

// boundReplacements refuses replacements that could double a field again and
// again: those that read from where some replacement writes. A few are allowed,
// as far as the largest file could be doubled that often.
func (w *walker) boundReplacements(top *kust) {
	times := map[*kust]int{top: 1}
	of := map[*kust][]replacement{}
	var all []replacement
	written := 0
	for i := len(w.order) - 1; i >= 0; i-- {
		k := w.order[i]
		for _, c := range k.children {
			times[c] = min(times[c]+times[k], sizeCap)
		}
		for _, doc := range k.growth {
			of[k] = append(of[k], replacementsIn(doc)...)
		}
		all = append(all, of[k]...)
		for _, r := range of[k] {
			for _, t := range r.targets {
				written += len(t.paths)
			}
		}
	}
	if written > maxReplacements || len(all) > maxReplacements {
		w.report(tooLarge(diag.Position{File: top.file}, fmt.Sprintf("the replacements write more than %d fields", maxReplacements)))
		return
	}
	feeding := 0
	for _, k := range w.order {
		for _, r := range of[k] {
			feeding = min(feeding+times[k]*feeds(r, all), sizeCap)
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
		r := replacement{source: selectorOf(source), path: folded(source, "fieldPath")}
		for _, t := range targets.Content {
			_, sel := foldedField(t, "select")
			target := replacementTarget{sel: selectorOf(sel)}
			for _, p := range entries(t, "fieldPaths") {
				target.paths = append(target.paths, deref(p).Value)
			}
			r.targets = append(r.targets, target)
		}
		out = append(out, r)
	}
	for _, c := range n.Content {
		out = append(out, replacementsIn(c)...)
	}
	return out
}

func selectorOf(n *yaml.Node) selector {
	return selector{kind: folded(n, "kind"), name: folded(n, "name")}
}

// feeds counts the target fields of r that some replacement may read.
func feeds(r replacement, all []replacement) int {
	count := 0
	for _, target := range r.targets {
		for _, p := range target.paths {
			for _, other := range all {
				if mayBeSame(other.source, target.sel) && overlap(other.path, p) {
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
func mayBeSame(a, b selector) bool {
	same := func(x, y string) bool {
		return x == "" || y == "" || x == y || strings.ContainsAny(x+y, `.*+?[]()|^$\`)
	}
	return same(a.kind, b.kind) && same(a.name, b.name)
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

// copied is the size of what a replacement may copy: of the largest field with
// the name of the one that is read or, if no file has such a one, of the largest
// object or generated value.
func (w *walker) copied(r replacement) load {
	if w.sizes == nil {
		w.sizes = map[string]load{}
		for _, k := range w.order {
			for _, f := range k.objects {
				w.fieldSizes("", f.docs...)
			}
			for _, p := range append(k.patches[:len(k.patches):len(k.patches)], k.loose...) {
				w.fieldSizes("", p.docs...)
			}
			w.fieldSizes("", entries(k.doc, "configMapGenerator")...)
			w.fieldSizes("", entries(k.doc, "secretGenerator")...)
		}
		for _, f := range w.files {
			if f.data {
				w.sizes[""] = w.sizes[""].atLeast(1, len(f.content))
			}
		}
	}
	steps := strings.FieldsFunc(r.path, func(c rune) bool { return c == '.' || c == '/' })
	if len(steps) > 0 {
		if size, ok := w.sizes[steps[len(steps)-1]]; ok {
			return size
		}
	}
	return w.sizes[""]
}

func (l load) atLeast(nodes, bytes int) load {
	return load{nodes: max(l.nodes, nodes), bytes: max(l.bytes, bytes)}
}

// fieldSizes notes the sizes of fields by their name, "" being that of all.
func (w *walker) fieldSizes(name string, values ...*yaml.Node) {
	for _, n := range values {
		nodes, bytes := expanded(n)
		w.sizes[name] = w.sizes[name].atLeast(nodes, bytes)
		for i, c := range n.Content {
			switch {
			case n.Kind == yaml.MappingNode && i%2 == 0:
			case n.Kind == yaml.MappingNode:
				w.fieldSizes(deref(n.Content[i-1]).Value, c)
			default:
				w.fieldSizes("", c)
			}
		}
	}
}
