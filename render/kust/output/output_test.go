package output

import (
	"errors"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// The usual goes the short way, and a text of several lines does not.
func TestWhatIsPrintedTheShortWay(t *testing.T) {
	for text, want := range map[string]bool{"a: b\nc: [1, {d: e}]\n": true, "a: |\n  b\n  c\n": false} {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if _, short := (printer{}).value(doc.Content[0], false); short != want {
			t.Errorf("%q: %v", text, short)
		}
	}
}

// What is printed the short way is what kustomize's own code prints.
func TestPrintIsKustomizes(t *testing.T) {
	values := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "1", "0x1f", "0o7", "010", "1e3", "1.0", "1.10", "-0", "+1", "1_000", "18446744073709551615", "99999999999999999999", ".5", "1.", ".inf", ".NaN", "~", "null", "Null", "true", "True", "yes", "NO", "on", "y",
			"2020-01-01", "2020-01-01T10:00:00Z", "12:30:45", "<<", "=", "- a", "a: b", "a #b", "#b", "&a", "*a", "!a", "%a", "@a", "`a", "[a", "{a", "a]", ",", "?", "? a", "|", ">", "'", "\"", "\\n", "\u2028", "\u0085", "\u00a0", "\ufeff", "\x7f", "\x01", "\U0001F600", "é", "<a>&b", "${VAR:-x}", "a ", " a", "a\nb", "\n", "a\n", "\ta", "0b11", "1:30", "0.1e-7", "123456789012345678", "1e400", "!!str", "null "}),
		rapid.StringOf(rapid.RuneFrom([]rune("ab 01:#-\"'\n\t{}[],&*!|>%@~.+_é\u2028"))),
	)
	var node func(depth int) *rapid.Generator[*yaml.Node]
	node = func(depth int) *rapid.Generator[*yaml.Node] {
		return rapid.Custom(func(t *rapid.T) *yaml.Node {
			n := &yaml.Node{Kind: yaml.ScalarNode}
			if depth > 0 {
				n.Kind = rapid.SampledFrom([]yaml.Kind{yaml.ScalarNode, yaml.MappingNode, yaml.MappingNode, yaml.SequenceNode}).Draw(t, "kind")
			}
			if rapid.IntRange(0, 9).Draw(t, "comment") == 0 {
				n.LineComment = "# why"
			}
			switch n.Kind {
			case yaml.ScalarNode:
				n.Value = values.Draw(t, "value")
				n.Tag = rapid.SampledFrom([]string{"", "!!str", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!binary", "!own"}).Draw(t, "tag")
				n.Style = rapid.SampledFrom([]yaml.Style{0, 0, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle, yaml.TaggedStyle}).Draw(t, "style")
			case yaml.SequenceNode:
				n.Content = rapid.SliceOfN(node(depth-1), 0, 3).Draw(t, "items")
			default:
				for range rapid.IntRange(0, 3).Draw(t, "members") {
					n.Content = append(n.Content, node(0).Draw(t, "key"), node(depth-1).Draw(t, "member"))
				}
			}
			if n.Kind != yaml.ScalarNode {
				n.Style = rapid.SampledFrom([]yaml.Style{0, yaml.FlowStyle}).Draw(t, "style")
				n.Tag = rapid.SampledFrom([]string{"", map[yaml.Kind]string{yaml.MappingNode: "!!map", yaml.SequenceNode: "!!seq"}[n.Kind]}).Draw(t, "tag")
			}
			return n
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for range rapid.IntRange(1, 3).Draw(t, "members") {
			n.Content = append(n.Content, node(0).Draw(t, "key"), node(3).Draw(t, "member"))
		}
		var want []byte
		err := errors.New("kustomize panicked")
		func() {
			defer func() { _ = recover() }()
			want, err = convert(clone(n))
		}()
		if err != nil {
			return
		}
		if got := YAML([]*yaml.Node{n}); string(got) != string(want) {
			t.Fatalf("printed\n%s\nkustomize prints\n%s", got, want)
		}
	})
}

// clone returns a copy of a node, because kustomize's code changes it.
func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = clone(child)
	}
	return &c
}
