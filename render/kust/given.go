package kust

import (
	"bytes"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"go.yaml.in/yaml/v3"
)

// given are the objects of the files that may hold secrets as they are written, before any
// kustomization has changed them, and what generators make Secrets of. One that a layer takes
// out of the build, or gives other values, may have been the source of a replacement before.
func (w *walker) given() (out []kinds.Object) {
	add := func(n *yaml.Node, kind string) {
		out = append(out, kinds.Object{Ref: intent.ObjectRef{APIVersion: "v1", Kind: kind, Name: text(n, "metadata", "name")}, Node: n})
	}
	holds := func(n *yaml.Node) {
		if kind := text(n, "kind"); kind == "Secret" || kind == "KubeadmConfig" {
			add(n, kind)
		}
	}
	for _, k := range w.order {
		for _, f := range k.objects {
			for _, doc := range f.docs {
				holds(doc)
				for _, item := range entries(doc, "items") {
					holds(deref(item))
				}
			}
		}
		for _, p := range k.patches {
			for _, doc := range p.docs {
				if text(p.target, "kind") != "Secret" {
					holds(doc)
				} else if doc.Kind == yaml.SequenceNode {
					add(stringData(operands(doc)), "Secret")
				} else {
					add(doc, "Secret")
				}
			}
		}
		for _, e := range entries(k.doc, "secretGenerator") {
			add(stringData(w.sources(k, deref(e))), "Secret")
		}
		for _, doc := range k.growth {
			if text(doc, "kind") == "SecretGenerator" {
				add(stringData(w.sources(k, doc)), "Secret")
			}
		}
	}
	return out
}

// operands are the texts that the operations of a patch set.
func operands(ops *yaml.Node) (out []string) {
	for _, op := range ops.Content {
		if _, v := field(deref(op), "value"); v != nil {
			eachValue(v, func(text string) {
				out = append(out, text)
				if plain, err := kinds.DecodeBase64(text); err == nil { // of data, most likely
					out = append(out, plain)
				}
			})
		}
	}
	return out
}

// sources are the values of a generator's entry.
func (r *reader) sources(k *kust, entry *yaml.Node) (out []string) {
	for _, n := range entries(entry, "literals") {
		_, value, _ := strings.Cut(deref(n).Value, "=")
		out = append(out, strings.Trim(value, `"'`))
	}
	for _, n := range entries(entry, "files") {
		ref := deref(n).Value
		if _, file, named := strings.Cut(ref, "="); named {
			ref = file
		}
		if f := r.known(k, ref); f != nil {
			out = append(out, string(f.content))
		}
	}
	for _, f := range r.envFiles(k, entry) {
		for line := range bytes.Lines(f.content) {
			_, value, _ := bytes.Cut(line, []byte("="))
			out = append(out, strings.TrimRight(string(value), "\r\n"))
		}
	}
	return out
}

// stringData is a Secret with some values.
func stringData(values []string) *yaml.Node {
	data := &yaml.Node{Kind: yaml.MappingNode}
	for _, v := range values {
		data.Content = append(data.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "value"}, &yaml.Node{Kind: yaml.ScalarNode, Value: v})
	}
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "stringData"}, data}}
}
