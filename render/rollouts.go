package render

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// RolloutFields returns the fields of a FleetRollout, in the order of printed intents. It omits fields that
// Git does not set.
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

// SelectRollout returns the fields of a FleetRollout that match a name, and all fields below it. The name is
// a field as in printed intents, or a field of the manifest with or without spec.
func SelectRollout(fields []Field, name intent.Path) (out []Field) {
	for _, f := range fields {
		if below(f.Path, name) || below(f.Manifest, name) || below(f.Spec(), name) {
			out = append(out, f)
		}
	}
	return out
}

// rolloutField returns the field of the manifest for a field of the intent.
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

// rolloutNode returns the printed form of a FleetRollout, with readable durations.
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

// printedRollouts returns the printed form of all FleetRollouts.
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

// rolloutOrigins visits the fields of a printed FleetRollout that have a known origin.
func (r *Result) rolloutOrigins(f *intent.FleetRollout, n *yaml.Node, visit func(intent.Path, *yaml.Node, diag.Position)) {
	eachScalar(n, nil, func(path intent.Path, n *yaml.Node) {
		if at, ok := r.Origin(f.Object, rolloutField(path)); ok {
			visit(path, n, at)
		}
	})
}
