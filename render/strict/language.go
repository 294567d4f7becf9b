package strict

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// Language defines how documents are written.
type Language struct {
	// Tag is the struct tag with a field's key, such as json.
	Tag string
	// Whole names a whole document in messages, such as "the object".
	Whole string
	// Code is the code for unknown keys, such as unknown-field. The message starts with its words.
	Code string
	// Kubernetes reads documents like the Kubernetes API server; see the package comment. If it is false,
	// every scalar is valid as a string, and anchors are refused.
	Kubernetes bool
	// Refine adds properties of a field that are not in its tags. If it returns false, the field is ignored.
	Refine func(owner reflect.Type, sf reflect.StructField, f *Field) bool
	// Hint returns the text to write in place of an unknown key, or "".
	Hint func(of reflect.Type, key string) string

	fields sync.Map // of []Field, by reflect.Type
}

// Fault is a finding.
type Fault struct {
	// Code is stable, for example duplicate-key or wrong-type.
	Code, Summary, Detail string
	// Path is the path of the value, which may be missing.
	Path intent.Path
	// Key is true if the fault is about the key in a mapping, not about its value.
	Key bool
	// Node is the node to show: the value, the key, or the mapping that misses a key. It is nil if the text
	// is not YAML.
	Node *yaml.Node
}

// In returns the fault as a diagnostic about a file.
func (f Fault) In(file string) diag.Diagnostic {
	pos := diag.Position{File: file}
	if f.Node != nil {
		pos.Line, pos.Column = f.Node.Line, f.Node.Column
	}
	return diag.Diagnostic{Severity: diag.Error, Code: f.Code, Summary: f.Summary, Detail: f.Detail, Position: pos}
}

// Value is a type with its own decoding. The node is never an alias. It is null only if it is the whole
// document.
type Value interface {
	DecodeYAML(d *Decoder, n *yaml.Node, p intent.Path)
}

// Decoder decodes a document.
type Decoder struct {
	*Language
	// Version is the version of the document. Fields of other versions are unknown.
	Version string
	// Limits are the limits of the schema, in addition to the limits of the fields. It may be nil.
	Limits *Limits
	// Secret keeps all values out of messages.
	Secret bool
	// Report is called with each fault.
	Report func(Fault)
	// Visit, if not nil, is called with the node of every path: the value or, for an entry of a map, its
	// key.
	Visit func(p intent.Path, n *yaml.Node)

	faults, depth, nodes int
}

// Error reports a fault of a value.
func (d *Decoder) Error(n *yaml.Node, p intent.Path, code, summary, detail string) {
	d.report(Fault{Code: code, Summary: summary, Detail: detail, Path: p, Node: n})
}

func (d *Decoder) keyError(n *yaml.Node, p intent.Path, code, summary, detail string) {
	d.report(Fault{Code: code, Summary: summary, Detail: detail, Path: p, Node: n, Key: true})
}

// report reports a fault unless the document is too large. A fault costs more than a node, because aliases
// can repeat a node very often.
func (d *Decoder) report(f Fault) {
	d.faults++
	if d.spend(f.Node, 20) {
		d.Report(f)
	}
}

// spend subtracts from the limit of nodes, and reports whether any are left.
func (d *Decoder) spend(n *yaml.Node, nodes int) bool {
	if d.spent() {
		return false
	}
	if d.nodes += nodes; d.spent() {
		d.Report(Fault{Code: "too-large", Summary: d.Whole + " is too large", Node: n})
	}
	return !d.spent()
}

func (d *Decoder) spent() bool { return d.nodes > maxNodes }

// quoted returns a value for a message, with text before it. It returns "" if the value may be secret.
func quoted(isSecret bool, before string, value any) string {
	if isSecret {
		return ""
	}
	return fmt.Sprintf(before, value)
}

// named returns a path for the start of a sentence.
func named(whole string, p intent.Path) string {
	if len(p) == 0 {
		return whole
	}
	return p.String()
}

func (d *Decoder) visit(p intent.Path, n *yaml.Node) {
	if d.Visit != nil {
		d.Visit(p, n)
	}
}
