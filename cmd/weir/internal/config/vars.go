package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ReadVars reads a file with values for variables: a YAML mapping of texts, or
// lines KEY=VALUE with blank lines and lines that start with # between them.
func ReadVars(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read variables: %w", err)
	}
	if len(content) > maxBytes {
		return nil, fmt.Errorf("read variables from %s: the file has %d bytes, more than %d", file, len(content), maxBytes)
	}
	vars, err := parseVars(content)
	if err != nil {
		return nil, fmt.Errorf("read variables from %s: %w", file, err)
	}
	return vars, nil
}

// parseVars tells the two forms apart by the first line that says something.
func parseVars(content []byte) (map[string]string, error) {
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if ok && ValidVar(name) {
			return parseEnvLines(string(content))
		}
		break
	}
	return parseYAMLVars(content)
}

func parseEnvLines(content string) (map[string]string, error) {
	out := map[string]string{}
	n := 0
	for line := range strings.Lines(content) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok || !ValidVar(name) {
			return nil, fmt.Errorf("line %d: want KEY=VALUE", n)
		}
		out[name] = unquote(value)
	}
	return out, nil
}

// unquote drops one pair of quotes around a value.
func unquote(v string) string {
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		return v[1 : len(v)-1]
	}
	return v
}

func parseYAMLVars(content []byte) (map[string]string, error) {
	var doc yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(content)).Decode(&doc)
	if errors.Is(err, io.EOF) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("no valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	root := doc.Content[0]
	if root.Tag == "!!null" {
		return map[string]string{}, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("want a mapping of names to texts, or lines KEY=VALUE")
	}
	out := map[string]string{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		_, twice := out[key.Value]
		switch {
		case !ValidVar(key.Value):
			return nil, fmt.Errorf("line %d: %q is no name of a variable", key.Line, key.Value)
		case twice:
			return nil, fmt.Errorf("line %d: %s is given twice", key.Line, key.Value)
		case value.Kind != yaml.ScalarNode:
			return nil, fmt.Errorf("line %d: the value of %s is not a single text", value.Line, key.Value)
		}
		out[key.Value] = value.Value
		if value.Tag == "!!null" {
			out[key.Value] = ""
		}
	}
	return out, nil
}

// ReadOnce is ReadVars that reads no file twice.
func ReadOnce() func(file string) (map[string]string, error) {
	type answer struct {
		vars map[string]string
		err  error
	}
	have := map[string]answer{}
	return func(file string) (map[string]string, error) {
		a, known := have[file]
		if !known {
			a.vars, a.err = ReadVars(file)
			have[file] = a
		}
		return a.vars, a.err
	}
}

// Values are a target's values for variables.
type Values struct {
	Vars map[string]string
	// Secret are the names, sorted, of those that are secret.
	Secret []string
}

// Values are the target's values for variables: those of its files, the later
// over the earlier, and over them those of the configuration itself. A file whose name
// still holds a placeholder is passed over.
func (t *Target) Values(read func(file string) (map[string]string, error)) (Values, error) {
	v := Values{Vars: map[string]string{}}
	secret := map[string]bool{}
	for _, from := range t.VarsFrom {
		if placeholder.MatchString(from.File) {
			continue
		}
		vars, err := read(from.File)
		if err != nil {
			return Values{}, fmt.Errorf("%s: %w; mend the file, or correct its name in varsFrom", from.At, err)
		}
		for name, value := range vars {
			v.Vars[name], secret[name] = value, from.Secret
		}
	}
	for name, value := range t.Vars {
		v.Vars[name], secret[name] = value, false
	}
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		if secret[name] {
			v.Secret = append(v.Secret, name)
		}
	}
	return v, nil
}

// Hidden are all values of the files that are marked as secret, of whichever directory.
func (t *Target) Hidden(read func(file string) (map[string]string, error)) []string {
	var out []string
	for _, from := range t.VarsFrom {
		for _, file := range from.ValueFiles() {
			if !from.Secret {
				break
			}
			if vars, err := read(file); err == nil { // else who uses it says so
				out = append(out, slices.Collect(maps.Values(vars))...)
			}
		}
	}
	return out
}
