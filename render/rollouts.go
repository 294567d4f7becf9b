package render

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// RolloutFields returns the fields of a FleetRollout, in the order in which intents are
// printed. What Git does not say of one, it has no field for.
func (r *Result) RolloutFields(f *intent.FleetRollout) ([]Field, error) {
	doc, err := rolloutNode(f)
	if err != nil {
		return nil, err
	}
	var out []Field
	eachScalar(doc, nil, func(path intent.Path, n *yaml.Node) {
		m := manifestField{f.Object, rolloutField(path)}
		field := Field{Path: path, Value: r.hide(n.Value), Source: Unknown, Object: m.ref, Manifest: m.path, candidates: []manifestField{m}}
		if at, ok := r.Origin(m.ref, m.path); ok {
			field.Origin, field.Source = at, Written
		} else if r.manifests().node(m.ref, m.path) == nil {
			field.Source, field.Note = Default, "Kubernetes's default"
		}
		out = append(out, field)
	})
	return out, nil
}

// SelectRollout returns the fields of a FleetRollout that a name stands for: one as intents
// are printed, one of the manifest with spec before it or without, and all below one.
func SelectRollout(fields []Field, name intent.Path) (out []Field) {
	for _, f := range fields {
		if below(f.Path, name) || below(f.Manifest, name) || below(f.Spec(), name) {
			out = append(out, f)
		}
	}
	return out
}

// rolloutField is the field of the manifest that a field of the intent is of.
func rolloutField(path intent.Path) intent.Path {
	switch path[0] {
	case "key":
		return intent.Path{"metadata", path[1]}
	case "object":
		if path[1] == "namespace" || path[1] == "name" {
			return intent.Path{"metadata", path[1]}
		}
		return path[1:]
	case "rollback":
		return intent.Path{"spec", "onFailure"}
	}
	return intent.Path{"spec"}.Join(path...)
}

// rolloutNode is a FleetRollout as it is printed: with times as people write them.
func rolloutNode(f *intent.FleetRollout) (*yaml.Node, error) {
	doc, err := nodeOf(f)
	if err != nil {
		return nil, err
	}
	eachScalar(doc, nil, func(path intent.Path, n *yaml.Node) {
		if last := path[len(path)-1]; last != "bakeTime" && last != "within" {
			return
		}
		if ns, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			n.Value, n.Tag = time.Duration(ns).String(), "!!str"
		}
	})
	return doc, nil
}

// printedRollouts are the FleetRollouts as they are printed.
func (r *Result) printedRollouts() (out []map[string]any, err error) {
	for i := range r.Set.Rollouts {
		doc, err := rolloutNode(&r.Set.Rollouts[i])
		if err != nil {
			return nil, err
		}
		one := map[string]any{}
		if err := doc.Decode(&one); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// rolloutOrigins visits the fields of a printed FleetRollout whose origin is known.
func (r *Result) rolloutOrigins(f *intent.FleetRollout, n *yaml.Node, visit func(intent.Path, *yaml.Node, diag.Position)) {
	eachScalar(n, nil, func(path intent.Path, n *yaml.Node) {
		if at, ok := r.Origin(f.Object, rolloutField(path)); ok {
			visit(path, n, at)
		}
	})
}
