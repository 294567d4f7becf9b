package kust_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// FuzzSubstitution puts an arbitrary value into an arbitrary scalar. The scalar
// stays one scalar, its neighbours stay as they are, and a text without ${ is not
// touched.
func FuzzSubstitution(f *testing.F) {
	for _, text := range []string{"${A}", "a ${A} b", "$${A}", "${A:-d}", "${B:=d}", "${B}", "$A $(A) {{ A }}", "${", "${A", "${A:-${B}}", "$$${A}", "${A}${A}", "x\n${A}\ny"} {
		for _, value := range []string{"3", "true", "null", "~", "a: b", "- x", "\"", "'", "#", "x\ny: z", "${A}", "*a", "&a b", "!!str x", "1e3", "010", "0x1F", "", "\u2028", "{a: b}"} {
			f.Add(text, value)
		}
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		if !utf8.ValidString(text) || !utf8.ValidString(value) {
			return // YAML holds such a text as binary; a file with one is refused
		}
		object := yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
			word("apiVersion"), word("v1"), word("kind"), word("ConfigMap"), word("metadata"),
			{Kind: yaml.MappingNode, Content: []*yaml.Node{word("name"), word("a")}},
			word("x"), word(text), word("last"), word("same"),
		}}
		file, err := yaml.Marshal(&object)
		if err != nil {
			return // not a text that YAML can hold
		}
		r, err := kust.Build(context.Background(), tree.Map{"a.yaml": string(file)}, "a.yaml", kust.Options{Vars: map[string]string{"A": value}})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Objects) != 1 {
			if len(r.Diags) == 0 {
				t.Fatalf("neither an object nor a finding for %q", file)
			}
			return
		}
		n := r.Objects[0].Node
		if len(n.Content) != 10 || find(n, "last").Value != "same" || find(n, "kind").Value != "ConfigMap" {
			t.Fatalf("%q in %q changed the object: %s", value, text, r.YAML())
		}
		if got := find(n, "x"); got.Kind != yaml.ScalarNode {
			t.Fatalf("%q in %q is no scalar any more", value, text)
		} else if !strings.Contains(text, "${") && got.Value != text {
			t.Fatalf("%q became %q though it has no variable", text, got.Value)
		}
	})
}

func word(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}
