package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/visible"
)

// YAML writes a JSON text as YAML with the same members in the same order, so that both formats always
// agree.
func YAML(text []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	root, err := yamlNode(dec)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("print YAML: %w", err)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("print YAML: %w", err)
	}
	return []byte(visible.YAML(b.String())), nil
}

// taken lists texts that the encoder does not quote, but that YAML 1.1 reads as booleans or as the merge
// key.
var taken = []string{"y", "n", "yes", "no", "on", "off", "<<", "="}

// yamlNode reads the next JSON value.
func yamlNode(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if v == '[' {
			n.Kind = yaml.SequenceNode
		}
		for dec.More() {
			// The name of a member is a token, too.
			child, err := yamlNode(dec)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := dec.Token()
		return n, err
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(v.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}, nil
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		// Write the text on one line, as in JSON. Quote it if it contains invisible characters, or if YAML
		// 1.1 would read it as another type.
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || visible.Hidden(r) }) || slices.Contains(taken, strings.ToLower(v)) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}
