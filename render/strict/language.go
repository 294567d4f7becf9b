package strict

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// Language says how documents of one sort are written.
type Language struct {
	// Tag is the struct tag that holds a field's key, such as json.
	Tag string
	// Whole names a whole document in messages, such as "the object".
	Whole string
	// Code is the code of a key that there is not, such as unknown-field: its words
	// begin the message too.
	Code string
	// Kubernetes reads as its API server does: see the package comment. Without it any
	// single value is text, as it is written, and anchors are refused.
	Kubernetes bool
	// Refine adds properties of a field that are not in its tags; false leaves the field out.
	Refine func(owner reflect.Type, sf reflect.StructField, f *Field) bool
	// Hint says what to write in place of an unknown key; "" where it knows nothing.
	Hint func(of reflect.Type, key string) string

	fields sync.Map // of []Field, by reflect.Type
}

// Fault is one finding.
type Fault struct {
	// Code is stable: duplicate-key, wrong-type and the like.
	Code, Summary, Detail string
	// Path is the place of the value, or of the missing value.
	Path intent.Path
	// Key says that the fault is about the key in a mapping and not about its value.
	Key bool
	// Node is the node to show: the value, the key, or the node that misses a key. It is nil if the
	// faulty text is not YAML.
	Node *yaml.Node
}

// In is the fault as a diagnostic about a file.
func (f Fault) In(file string) diag.Diagnostic {
	pos := diag.Position{File: file}
	if f.Node != nil {
		pos.Line, pos.Column = f.Node.Line, f.Node.Column
	}
	return diag.Diagnostic{Severity: diag.Error, Code: f.Code, Summary: f.Summary, Detail: f.Detail, Position: pos}
}

// Value is a type that reads a node in its own way. The node is no alias. It is null only if it is
// the whole document.
type Value interface {
	DecodeYAML(d *Decoder, n *yaml.Node, p intent.Path)
}

// Decoder reads one document.
type Decoder struct {
	*Language
	// Version is the version of the document: fields of other versions are unknown in it.
	Version string
	// Limits holds the limits of the schema, in addition to the limits of the fields; nil for none.
	Limits *Limits
	// Secret keeps every value out of the messages.
	Secret bool
	// Report takes each fault.
	Report func(Fault)
	// Visit, if any, sees where each path stands: at its value, or at its key where a
	// mapping has any keys.
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

// report passes a fault on, unless the document is too large. A fault costs more than a
// node: an alias may stand for very many of them.
func (d *Decoder) report(f Fault) {
	d.faults++
	if d.spend(f.Node, 20) {
		d.Report(f)
	}
}

// spend takes from the bound on nodes, and reports whether there is room left.
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

// quoted is a value for a message, with a space before it; "" where it may be a secret.
func quoted(isSecret bool, before string, value any) string {
	if isSecret {
		return ""
	}
	return fmt.Sprintf(before, value)
}

// named is a path for the start of a sentence.
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
