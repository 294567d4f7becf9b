package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/diag"
)

// maxBytes is the size of the largest configuration that is read.
const maxBytes = 4 << 20

// decoder fills a Config from YAML nodes, goes on after a fault, and remembers
// where each value stands so that later checks can say so too.
type decoder struct {
	file   string
	faults diag.List
	at     map[string]diag.Position // by path, such as targets[0].region
	// broken says that the document as a whole could not be read.
	broken bool
}

var (
	scalarType = reflect.TypeFor[encoding.TextUnmarshaler]()
	syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
)

func (d *decoder) fault(pos diag.Position, code, detail, format string, args ...any) {
	d.faults = append(d.faults, diag.Diagnostic{
		Severity: diag.Error, Code: code, Summary: fmt.Sprintf(format, args...), Detail: detail, Position: pos,
	})
}

func (d *decoder) document(content []byte, into *Config) {
	if len(content) > maxBytes {
		d.broken = true
		d.fault(diag.Position{File: d.file}, "too-large", "", "the configuration has %d bytes, more than %d", len(content), maxBytes)
		return
	}
	dec := yaml.NewDecoder(bytes.NewReader(content))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && doc.Content[0].Tag == "!!null":
		d.broken = true
		d.fault(diag.Position{File: d.file}, "empty", "start with apiVersion: "+APIVersion+" and kind: "+Kind, "the configuration is empty")
		return
	case err != nil:
		d.syntax(err)
		return
	}
	if err := dec.Decode(&second); err == nil {
		d.fault(d.position(&second), "several-documents", "", "the file holds more than one YAML document")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
		return
	}
	d.broken = doc.Content[0].Kind != yaml.MappingNode
	d.value("", doc.Content[0], reflect.ValueOf(into).Elem())
}

func (d *decoder) syntax(err error) {
	d.broken = true
	pos := diag.Position{File: d.file}
	text := err.Error()
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		pos.Line, _ = strconv.Atoi(m[1]) // empty where the parser knows no line
		text = text[len(m[0]):]
	}
	d.fault(pos, "yaml-syntax", "", "no valid YAML: %s", text)
}

func (d *decoder) position(n *yaml.Node) diag.Position {
	return diag.Position{File: d.file, Line: n.Line, Column: n.Column}
}

// value decodes n into v, which lies at path.
func (d *decoder) value(path string, n *yaml.Node, v reflect.Value) {
	pos := d.position(n)
	d.at[path] = pos
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.fault(pos, "yaml-alias", "", "anchors and aliases are not allowed in the configuration")
		return
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return // as if it were absent
	case v.CanAddr() && v.Addr().Type().Implements(scalarType):
		d.scalar(path, n, v.Addr().Interface().(encoding.TextUnmarshaler))
		return
	case v.Type() == reflect.TypeFor[time.Duration]():
		d.scalar(path, n, duration{v})
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(path, n, v)
	case reflect.Slice:
		d.sequence(path, n, v)
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Struct {
			d.rows(path, n, v)
		} else {
			d.texts(path, n, v)
		}
	case reflect.String:
		if d.kind(path, n, yaml.ScalarNode, "a text") {
			v.SetString(n.Value)
		}
	case reflect.Bool:
		if d.kind(path, n, yaml.ScalarNode, "true or false") {
			if n.Tag != "!!bool" || n.Decode(v.Addr().Interface()) != nil {
				d.fault(pos, "wrong-type", "", "%s: %q is neither true nor false", path, n.Value)
			}
		}
	default:
		panic("config: no decoding for " + v.Type().String())
	}
}

func (d *decoder) kind(path string, n *yaml.Node, want yaml.Kind, wanted string) bool {
	if n.Kind == want {
		return true
	}
	if path == "" {
		path = "the configuration"
	}
	got := map[yaml.Kind]string{yaml.ScalarNode: "a single value", yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}[n.Kind]
	d.fault(d.position(n), "wrong-type", "", "%s: want %s, got %s", path, wanted, got)
	return false
}

func (d *decoder) scalar(path string, n *yaml.Node, into encoding.TextUnmarshaler) {
	if !d.kind(path, n, yaml.ScalarNode, "a single value") {
		return
	}
	if err := into.UnmarshalText([]byte(n.Value)); err != nil {
		d.fault(d.position(n), "bad-value", "", "%s: %v", path, err)
	}
}

func (d *decoder) mapping(path string, n *yaml.Node, v reflect.Value) {
	if !d.kind(path, n, yaml.MappingNode, "a mapping") {
		return
	}
	fields := map[string]int{}
	var names []string
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("yaml"); name != "-" {
			fields[name] = i
			names = append(names, name)
		}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := join(path, key.Value)
		field, known := fields[key.Value]
		switch {
		case seen[key.Value]:
			d.fault(d.position(key), "duplicate-key", "", "%s is given twice", at)
		case !known:
			d.fault(d.position(key), "unknown-key", "known here: "+strings.Join(names, ", "), "%s: unknown key", at)
		default:
			d.value(at, n.Content[i+1], v.Field(field))
		}
		seen[key.Value] = true
	}
}

func (d *decoder) sequence(path string, n *yaml.Node, v reflect.Value) {
	if !d.kind(path, n, yaml.SequenceNode, "a list") {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.value(fmt.Sprintf("%s[%d]", path, i), item, v.Index(i))
	}
}

// texts decodes a mapping of texts. A number or a boolean is taken as it is
// written: it ends in a manifest, where YAML's own rules type it.
func (d *decoder) texts(path string, n *yaml.Node, v reflect.Value) {
	if !d.kind(path, n, yaml.MappingNode, "a mapping") {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, item := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		d.at[at] = d.position(key)
		switch {
		case item.Kind != yaml.ScalarNode || item.Anchor != "":
			d.kind(at, item, yaml.ScalarNode, "a text")
		case v.MapIndex(reflect.ValueOf(key.Value)).IsValid():
			d.fault(d.position(key), "duplicate-key", "", "%s is given twice", at)
		default:
			text := item.Value
			if item.Tag == "!!null" {
				text = ""
			}
			v.SetMapIndex(reflect.ValueOf(key.Value), reflect.ValueOf(text))
		}
	}
}

// rows decodes a mapping of structures.
func (d *decoder) rows(path string, n *yaml.Node, v reflect.Value) {
	if !d.kind(path, n, yaml.MappingNode, "a mapping") {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, row := n.Content[i], reflect.New(v.Type().Elem()).Elem()
		at := join(path, key.Value)
		if v.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			d.fault(d.position(key), "duplicate-key", "", "%s is given twice", at)
			continue
		}
		d.value(at, n.Content[i+1], row)
		d.at[at] = d.position(key)
		v.SetMapIndex(reflect.ValueOf(key.Value), row)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// duration takes a time span in Go's form, such as 30s or 5m.
type duration struct{ of reflect.Value }

func (d duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration; write it like 30s or 5m", text)
	}
	d.of.SetInt(int64(v))
	return nil
}

// Versions is a number of launch template versions.
type Versions int32

// maxVersions leaves room for the newest version and the next below EC2's quota
// of 10,000 versions for a launch template.
const maxVersions = 9998

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *Versions) UnmarshalText(b []byte) error {
	text := string(b)
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || n > maxVersions || strings.HasPrefix(text, "+") {
		return fmt.Errorf("%q is no number of versions; write one from 1 to %d", text, maxVersions)
	}
	*v = Versions(n)
	return nil
}
