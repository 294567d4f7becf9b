package render

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/secret"
)

// ValueKind distinguishes written values, defaults and unknown values.
type ValueKind string

// The kinds of values.
const (
	// Written is a value in a file.
	Written ValueKind = "written"
	// Default is a value that is in no file. The field's Note names the origin of the default.
	Default ValueKind = "default"
	// Unknown is a value from a file that weir could not determine.
	Unknown ValueKind = "unknown"
)

// Field is a scalar of a pool, with the kind and the origin of its value.
type Field struct {
	// Path is the path inside the pool, as in printed intents. It is empty for a field of a manifest that
	// sets no field of the pool.
	Path intent.Path
	// Value is the value as YAML, without secrets.
	Value  string
	Source ValueKind
	// Object and Manifest identify the field of a manifest that has the value, or that would have it if it
	// were written. They are zero if no manifest has such a field.
	Object   intent.ObjectRef
	Manifest intent.Path
	// Origin is the position of a written value.
	Origin diag.Position
	// Note explains a default.
	Note string

	candidates []manifestField
}

// Spec returns the field of the manifest as plans name it: without spec.
func (f Field) Spec() intent.Path {
	if len(f.Manifest) > 1 && f.Manifest[0] == "spec" {
		return f.Manifest[1:]
	}
	return f.Manifest
}

// Fields returns all fields of a pool, in the order of printed intents. For user data it returns the number
// of bytes, unless that would reveal the length of a secret.
func (r *Result) Fields(p *intent.Pool) ([]Field, error) {
	doc, err := nodeOf(*p)
	if err != nil {
		return nil, err
	}
	var out []Field
	eachScalar(doc, nil, func(path intent.Path, n *yaml.Node) {
		if path[0] != "blocked" {
			out = append(out, r.field(p, path, n.Value))
		}
	})
	if t := p.LaunchTemplate; t != nil && t.UserData.Text != "" {
		path := intent.Path{"launchTemplate", "userData", "text"}
		f := r.field(p, path, "")
		if f.Value = bytesOf(t.UserData.Text); t.UserData.Mark != "" {
			f.Value = secret.Mask
		}
		out = append(out, f)
	}
	return out, nil
}

// field explains one field of a pool for reports. A written field has its place in Git. If the rendered
// objects have the field, but its place is unknown, the source is Unknown. Otherwise the value is derived
// or a default. For a default, the place is where the field would be written.
func (r *Result) field(p *intent.Pool, path intent.Path, value string) Field {
	f := Field{Path: path, Value: r.hide(value), Source: Default, candidates: r.manifests().manifestFields(p, path)}
	for _, c := range f.candidates {
		if at, ok := r.Origin(c.ref, c.path); ok {
			f.Object, f.Manifest, f.Origin, f.Source = c.ref, c.path, at, Written
			return f
		}
	}
	for _, c := range f.candidates {
		if r.manifests().node(c.ref, c.path) != nil {
			f.Object, f.Manifest, f.Source = c.ref, c.path, Unknown
			return f
		}
	}
	if f.Source, f.Note = noteOf(path); f.Source == Default && len(f.candidates) > 0 {
		f.Object, f.Manifest = f.candidates[0].ref, f.candidates[0].path
	}
	return f
}

// Select returns the fields that match a name, and all fields below it. The name is a field of the pool as in
// printed intents, or a field of its manifests, with or without spec. The result is nil if no field matches.
func (r *Result) Select(p *intent.Pool, fields []Field, name intent.Path) []Field {
	var out []Field
	for _, f := range fields {
		if below(f.Path, name) {
			out = append(out, f)
		}
	}
	full := name
	if len(name) > 0 && name[0] != "spec" && name[0] != "metadata" {
		full = intent.Path{"spec"}.Join(name...)
	}
	refs := []intent.ObjectRef{p.Infrastructure, p.MachinePool, p.Options}
	if p.LaunchConfig != nil {
		refs = append(refs, p.LaunchConfig.Source, p.LaunchConfig.Options)
		if at, ok := p.LaunchConfig.Field(full); ok && len(out) == 0 {
			return r.ofManifest(fields, p.LaunchConfig.Source, at)
		}
	}
	for _, ref := range refs {
		if len(out) > 0 {
			return out
		}
		out = r.ofManifest(fields, ref, full)
	}
	return out
}

// ofManifest returns the fields that a field of a manifest sets or would set.
func (r *Result) ofManifest(fields []Field, ref intent.ObjectRef, name intent.Path) []Field {
	var out []Field
	taken := map[string]bool{}
	for _, f := range fields {
		if f.Source == Written || f.Source == Unknown {
			if f.Object == ref && below(f.Manifest, name) {
				out = append(out, f)
				taken[f.Manifest.String()] = true
			}
			continue
		}
		if f.Source == Default && slices.ContainsFunc(f.candidates, func(c manifestField) bool { return c.ref == ref && below(c.path, name) }) {
			out = append(out, f)
		}
	}
	n := r.manifests().node(ref, name)
	if n == nil {
		return out
	}
	eachScalar(n, name, func(path intent.Path, n *yaml.Node) {
		if taken[path.String()] {
			return
		}
		f := Field{Value: r.hide(n.Value), Source: Unknown, Object: ref, Manifest: path}
		if at, ok := r.Origin(ref, path); ok {
			f.Origin, f.Source = at, Written
		}
		out = append(out, f)
	})
	return out
}

// Chain returns the steps that produced the value of a field, in order, without secrets. It is empty for a
// field that is not written. For user data and Secrets, the steps have no values. See kust.Origins.Chain.
func (r *Result) Chain(f Field) []kust.ValueChange {
	if f.Source != Written {
		return nil
	}
	steps, _ := r.built.Chain(f.Object, f.Manifest)
	hidden := f.Object.Kind == "Secret" || f.Object.Group() == "bootstrap.cluster.x-k8s.io"
	for i := range steps {
		switch v := steps[i].Value; {
		case v == nil:
		case hidden:
			steps[i].Value = nil
		default:
			text := r.hide(*v)
			steps[i].Value = &text
		}
	}
	return steps
}

// hide removes secrets from a text.
func (r *Result) hide(text string) string {
	return r.masked.Redact(r.built.Masked(text))
}

// Names returns the names that Select accepts: fields of manifests as plans name them, and fields of the
// pool.
func Names(fields []Field) []string {
	var out []string
	for _, f := range fields {
		if m := f.Spec(); len(m) > 0 && (f.Source == Written || len(f.candidates) == 1) && !slices.Contains(out, m.String()) {
			out = append(out, m.String())
		}
	}
	for _, f := range fields {
		if name := f.Path.String(); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// node returns a field of a rendered object, or nil.
func (m manifests) node(ref intent.ObjectRef, path intent.Path) *yaml.Node {
	n := m.nodes[ref]
	if n == nil {
		return nil
	}
	for _, e := range path {
		if n = child(n, e); n == nil {
			return nil
		}
	}
	return n
}

// child returns the value of a key in a mapping, or the item at an index in a list. It returns nil if the
// node has no such child.
func child(n *yaml.Node, elem string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == elem {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			if intent.Index(i) == elem {
				return c
			}
		}
	case yaml.AliasNode:
		return child(n.Alias, elem)
	}
	return nil
}

// below reports whether path is name or a path below it. It ignores case.
func below(path, name intent.Path) bool {
	if len(path) < len(name) || len(name) == 0 {
		return false
	}
	for i := range name {
		if !strings.EqualFold(path[i], name[i]) {
			return false
		}
	}
	return true
}

// eachScalar visits the scalars at and below a node.
func eachScalar(n *yaml.Node, path intent.Path, visit func(intent.Path, *yaml.Node)) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			eachScalar(n.Content[i+1], path.Join(n.Content[i].Value), visit)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			eachScalar(c, path.Join(intent.Index(i)), visit)
		}
	case yaml.AliasNode:
		eachScalar(n.Alias, path, visit)
	default:
		visit(path, n)
	}
}
