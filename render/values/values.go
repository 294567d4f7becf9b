// Package values reads files with values for variables: a YAML mapping of strings, or lines KEY=VALUE with
// blank lines and lines that start with #.
package values

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Name matches the names of variables.
var Name = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Value is a value and the position of its name.
type Value struct {
	Text         string
	Line, Column int
}

// Fault is an error in a file. Its line is 0 if it is unknown.
type Fault struct {
	Line, Column int
	Message      string
}

// Error returns the message with its line.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return f.Message
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.Message)
}

// Parse parses a file. The first line that is neither blank nor a comment determines its form. The error is a
// *Fault.
func Parse(content []byte) (map[string]Value, error) {
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if ok && Name.MatchString(name) {
			return parseLines(string(content))
		}
		break
	}
	return parseYAML(content)
}

// parseLines parses lines of KEY=VALUE, with an optional "export ". The last value of a key counts.
func parseLines(content string) (map[string]Value, error) {
	out := map[string]Value{}
	n := 0
	for line := range strings.Lines(content) {
		n++
		column := len(line) - len(strings.TrimLeft(line, " \t")) + 1
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok || !Name.MatchString(name) {
			return nil, &Fault{n, column, "want KEY=VALUE"}
		}
		out[name] = Value{unquote(value), n, column}
	}
	return out, nil
}

// unquote removes one pair of quotes around a value.
func unquote(v string) string {
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		return v[1 : len(v)-1]
	}
	return v
}

// parseYAML parses a mapping of names to scalars. Null means the empty text, and an empty file has no
// values.
func parseYAML(content []byte) (map[string]Value, error) {
	var doc yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(content)).Decode(&doc)
	if errors.Is(err, io.EOF) {
		return map[string]Value{}, nil
	}
	if err != nil {
		return nil, &Fault{Message: "no valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	root := doc.Content[0]
	if root.Tag == "!!null" {
		return map[string]Value{}, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, &Fault{root.Line, root.Column, "want a mapping of names to texts, or lines KEY=VALUE"}
	}
	out := map[string]Value{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		_, twice := out[key.Value]
		switch {
		case !Name.MatchString(key.Value):
			return nil, &Fault{key.Line, key.Column, fmt.Sprintf("%q is not a valid name for a variable", key.Value)}
		case twice:
			return nil, &Fault{key.Line, key.Column, key.Value + " is given twice"}
		case value.Kind != yaml.ScalarNode:
			return nil, &Fault{value.Line, value.Column, "the value of " + key.Value + " is not a single text"}
		}
		text := value.Value
		if value.Tag == "!!null" {
			text = ""
		}
		out[key.Value] = Value{text, key.Line, key.Column}
	}
	return out, nil
}
