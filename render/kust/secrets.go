package kust

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/standin"
	"go.yaml.in/yaml/v3"
)

const mask = secret.Mask

// A replacement with a delimiter splits a text and would use a part of a secret. A stand-in contains no
// delimiter, so the replacement uses the complete stand-in or fails. Therefore a build with delimiters and
// secrets runs a second time, with stand-ins that contain all these delimiters. If the results differ, a
// secret would be split. Neither run gets a secret.

// secretCut returns a finding about a replacement that splits a secret, or nil.
func (p *buildSpec) secretCut(ctx context.Context, nodes []*yaml.Node) *diag.Diagnostic {
	delimiters, at := p.delimiters()
	d := &p.view.decryption
	if len(delimiters) == 0 || len(d.files) == 0 || p.view.failure() != nil {
		return nil
	}
	others := map[string]string{} // the second stand-in, by the first one
	fed := map[string][]byte{}
	for name, f := range d.files {
		if p.files[name] == nil {
			continue
		}
		content, err := f.StandIns(func(s sops.Sealed) string {
			id := idOf(s)
			others[standin.StandIn(id)] = divided(id, delimiters)
			return others[standin.StandIn(id)]
		})
		if err == nil {
			fed[name] = content
		}
	}
	c := cutDiagnostic(at)
	cut, fault := p.run(ctx, fed)
	if cut == nil && p.view.failure() != nil {
		return nil
	}
	if fault != nil || len(cut) != len(nodes) {
		return &c
	}
	var list []string
	for standIn, other := range others {
		escaped, _ := json.Marshal(other)
		list = append(list, other, standIn, strings.ReplaceAll(other, "\n", `\n`), standIn, string(escaped[1:len(escaped)-1]), standIn)
	}
	same := comparison{strings.NewReplacer(list...)}
	for i := range nodes {
		if !same.node(nodes[i], cut[i]) {
			return &c
		}
	}
	return nil
}

// divided returns another stand-in that contains all delimiters. Its base64 form also contains all delimiters
// that are single characters of base64.
func divided(id string, delimiters []string) (out string) {
	for try := range 1000 {
		out = standin.Other(fmt.Sprint(id, " ", try))
		for i, delimiter := range delimiters {
			out += delimiter + standin.Other(fmt.Sprint(id, " ", try, " ", i))
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(out))
		if !slices.ContainsFunc(delimiters, func(d string) bool { return len(d) == 1 && inBase64.MatchString(d) && !strings.Contains(encoded, d) }) {
			break
		}
	}
	return out
}

var inBase64 = lazyregexp.New(`^[A-Za-z0-9]$`)

func cutDiagnostic(at diag.Position) diag.Diagnostic {
	return faultAt("secret-cut", at, "a replacement uses a part of a secret",
		"kustomize gets a placeholder instead of each secret, so it cannot split the secret. Encrypt the part as its own value, and use the whole value.")
}

// delimiters returns the delimiters of all replacements, and the position of the first one.
func (p *buildSpec) delimiters() (out []string, at diag.Position) {
	for _, k := range p.kusts {
		if !bytes.Contains(bytes.ToLower(k.content), []byte("delimiter")) && len(k.settings) < 2 {
			continue
		}
		for _, doc := range k.settings {
			eachField(doc, func(key, value *yaml.Node) {
				if strings.EqualFold(key.Value, "delimiter") && value.Kind == yaml.ScalarNode && value.Value != "" && !slices.Contains(out, value.Value) {
					if out = append(out, value.Value); !at.Known() {
						if at = (diag.Position{File: k.file}); doc == k.doc {
							at = k.at(value)
						}
					}
				}
			})
		}
	}
	return out, at
}

// eachField visits the fields below a node.
func eachField(n *yaml.Node, visit func(key, value *yaml.Node)) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			visit(deref(n.Content[i-1]), deref(c))
		}
		eachField(c, visit)
	}
}

// comparison compares the objects of both runs. back replaces the second stand-ins with the first ones.
type comparison struct{ back *strings.Replacer }

func (c comparison) node(a, b *yaml.Node) bool {
	a, b = deref(a), deref(b)
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind == yaml.ScalarNode && a.Value != b.Value {
		return c.text(a.Value, b.Value)
	}
	return slices.EqualFunc(a.Content, b.Content, c.node)
}

func (c comparison) text(a, b string) bool {
	back := c.back.Replace(b)
	if back == a || hash.MatchString(a) && hash.MatchString(back) && hash.ReplaceAllString(a, "") == hash.ReplaceAllString(back, "") {
		return true
	}
	was, err := kinds.DecodeBase64(a)
	is, fault := kinds.DecodeBase64(b)
	return err == nil && fault == nil && c.back.Replace(is) == was
}

// given returns the objects that may contain secrets as they are in the files, before kustomizations change
// them, and the values from which generators make Secrets. An object that a layer removes or changes may have
// been the source of a replacement before.
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
			add(stringData(w.generatorValues(k, deref(e))), "Secret")
		}
		for _, doc := range k.settings {
			if text(doc, "kind") == "SecretGenerator" {
				add(stringData(w.generatorValues(k, doc)), "Secret")
			}
		}
	}
	return out
}

// operands returns the strings that the operations of a patch set.
func operands(ops *yaml.Node) (out []string) {
	for _, op := range ops.Content {
		if _, v := field(deref(op), "value"); v != nil {
			eachValue(v, func(text string) {
				out = append(out, text)
				if plain, err := kinds.DecodeBase64(text); err == nil { // most likely a value in data
					out = append(out, plain)
				}
			})
		}
	}
	return out
}

// stringData returns a Secret with the given values.
func stringData(values []string) *yaml.Node {
	data := &yaml.Node{Kind: yaml.MappingNode}
	for _, v := range values {
		data.Content = append(data.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "value"}, &yaml.Node{Kind: yaml.ScalarNode, Value: v})
	}
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "stringData"}, data}}
}
