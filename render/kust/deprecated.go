package kust

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/weir-gitops/weir/render/diag"
	"go.yaml.in/yaml/v3"
)

// deprecations lists the deprecated fields. kustomize prints warnings about them to the standard error of the
// process. weir reports notes instead, and rewrites the fields for kustomize (modernize).
var deprecations = []struct{ name, instead string }{
	{"bases", "resources"}, {"imageTags", "images"}, {"commonLabels", "labels"},
	{"patchesStrategicMerge", "patches"}, {"patchesJson6902", "patches"},
}

// deprecated reports deprecated fields.
func (c checker) deprecated() {
	k := c.k
	for _, f := range deprecations {
		key, v := foldedField(k.doc, f.name)
		if key == nil || isNull(v) {
			continue
		}
		k.legacy = true
		d := faultAt("deprecated-field", k.at(key), fmt.Sprintf("%s is deprecated", f.name),
			fmt.Sprintf("Write %s instead; \"kustomize edit fix\" does so.", f.instead))
		d.Severity = diag.Info
		if f.name == "patchesJson6902" && k.has(beforeJSONPatches...) && k.has(afterJSONPatches...) {
			d.Severity = diag.Error
			d.Summary = "patchesJson6902 together with names, labels or a namespace and with images, replicas or replacements is not supported"
			d.Detail = "kustomize applies such patches between the two. Write patches instead, which come before both."
		}
		c.report(d)
	}
	c.foldedKeys(k.doc, location{file: k.file})
}

// kustomize applies the first list of fields between patches and patchesJson6902, and the second list after
// both.
var (
	beforeJSONPatches = []string{"namespace", "namePrefix", "nameSuffix", "labels", "commonLabels", "commonAnnotations"}
	afterJSONPatches  = []string{"replicas", "images", "imageTags", "replacements"}
)

func (k *kust) has(names ...string) bool {
	for _, name := range names {
		if key, v := foldedField(k.doc, name); key != nil && !isNull(v) {
			return true
		}
	}
	return false
}

// foldedKeys refuses keys that differ only in case, because kustomize's decoder merges their contents.
func (c checker) foldedKeys(n *yaml.Node, p location) {
	if n.Kind == yaml.MappingNode {
		kept := make(map[string]string, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := deref(n.Content[i]).Value
			kept[folded(key)] = max(kept[folded(key)], key)
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := deref(n.Content[i]).Value; kept[folded(key)] != key {
				c.add("duplicate-key", p.node(n.Content[i]), fmt.Sprintf("%q and %q are the same field", key, kept[folded(key)]), "Keep one of the two.")
			}
		}
	}
	for _, child := range n.Content {
		c.foldedKeys(child, p)
	}
}

// folded returns the same text for all texts that are equal for strings.EqualFold.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, s)
}

// modernize replaces the deprecated fields of a kustomization, in place. The build stays the same.
func modernize(doc *yaml.Node) {
	move := func(from, to string, front bool, change func(*yaml.Node) *yaml.Node) {
		list := removeField(doc, from)
		if list == nil || list.Kind != yaml.SequenceNode {
			return
		}
		var entries []*yaml.Node
		for _, c := range list.Content {
			entries = append(entries, change(deref(c)))
		}
		into := listField(doc, to)
		if front {
			into.Content = append(entries, into.Content...)
		} else {
			into.Content = append(into.Content, entries...)
		}
	}
	same := func(n *yaml.Node) *yaml.Node { return n }
	move("bases", "resources", false, same)
	move("imageTags", "images", false, same)
	// patchesStrategicMerge come before patches.
	move("patchesStrategicMerge", "patches", true, func(n *yaml.Node) *yaml.Node {
		if isInline(n.Value) {
			return mapping("patch", n)
		}
		return mapping("path", n)
	})
	k := &kust{doc: doc}
	if !k.has(beforeJSONPatches...) {
		move("patchesJson6902", "patches", false, same)
	} else {
		// Transformers come after everything else. Fields that would come between were refused.
		i := 0
		move("patchesJson6902", "transformers", true, func(n *yaml.Node) *yaml.Node {
			i++
			return jsonPatchTransformer(n, i)
		})
	}
	if labels := removeField(doc, "commonLabels"); labels != nil && labels.Kind == yaml.MappingNode {
		entry := mapping("pairs", labels)
		entry.Content = append(entry.Content, scalar("includeSelectors"), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
		into := listField(doc, "labels")
		into.Content = append(into.Content, entry)
	}
}

// jsonPatchTransformer returns an entry of patchesJson6902 as an inline transformer.
func jsonPatchTransformer(entry *yaml.Node, i int) *yaml.Node {
	c := mapping("apiVersion", scalar("builtin"))
	c.Content = append(c.Content, scalar("kind"), scalar("PatchJson6902Transformer"),
		scalar("metadata"), mapping("name", scalar(fmt.Sprintf("patches-json6902-%d", i))))
	for _, name := range []string{"target", "path"} {
		if _, v := foldedField(entry, name); v != nil {
			c.Content = append(c.Content, scalar(name), v)
		}
	}
	if _, v := foldedField(entry, "patch"); v != nil {
		c.Content = append(c.Content, scalar("jsonOp"), v)
	}
	out, err := yaml.Marshal(c)
	if err != nil {
		return scalar("")
	}
	return scalar(string(out))
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

func mapping(key string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{scalar(key), value}}
}

// removeField removes a field, in any case, from a mapping and returns its value.
func removeField(m *yaml.Node, name string) *yaml.Node {
	key, value := foldedField(m, name)
	for i := 0; key != nil && i+1 < len(m.Content); i += 2 {
		if m.Content[i] == key {
			m.Content = append(m.Content[:i:i], m.Content[i+2:]...)
			return value
		}
	}
	return nil
}

// listField returns the sequence at a field of a mapping, and adds one if it is missing.
func listField(m *yaml.Node, name string) *yaml.Node {
	if _, v := foldedField(m, name); v != nil && v.Kind == yaml.SequenceNode {
		return v
	}
	removeField(m, name)
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	m.Content = append(m.Content, scalar(name), list)
	return list
}
