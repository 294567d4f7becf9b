package kust

import (
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// How is the kind of change that set a field.
type How string

// The kinds of changes.
const (
	// Base is a file of objects.
	Base How = "base"
	// Patch is a strategic merge patch. JSONPatch is an operation of a JSON6902 patch.
	Patch     How = "patch"
	JSONPatch How = "json-patch"
	// Replacement copies the value of another field.
	Replacement How = "replacement"
	// NamePrefix, NameSuffix, Namespace, Label, Annotation, Image and Replicas
	// are fields of a kustomization.
	NamePrefix How = "name-prefix"
	NameSuffix How = "name-suffix"
	Namespace  How = "namespace"
	Label      How = "label"
	Annotation How = "annotation"
	Image      How = "image"
	Replicas   How = "replicas"
	// Generator is an entry of a generator of ConfigMaps or Secrets.
	Generator How = "generator"
	// Variable is the substitution of ${VAR}.
	Variable How = "variable"
	// Unknown is a step that weir could not determine.
	Unknown How = "unknown"
)

// ValueChange is one change of a field's value during a build.
type ValueChange struct {
	How How `json:"how"`
	// Position is the place of the value. It is missing for Unknown.
	diag.Position
	// By is the entry of the kustomization that applies the value, if it is at another place: the entry for a
	// patch file or a replacement.
	By *diag.Position `json:"by,omitempty"`
	// Component is true if the kustomization is a component.
	Component bool `json:"component,omitempty"`
	// Value is the value of the field after the step, or nil if it is unknown.
	Value *string `json:"value"`
}

// maxChain bounds the steps of a chain.
const maxChain = 32

// Chain returns the steps that produced the scalar at p of an object, in order: the value in the base, every
// change, and finally the substitution of variables. The last step has the value of the field. A step is
// Unknown if weir cannot determine it; all steps after it are certain. ok is false if there is no scalar at p.
//
// Chain repeatedly removes the last change and builds again. Every step costs a few builds.
func (o *Origins) Chain(ref intent.ObjectRef, p intent.Path) ([]ValueChange, bool) {
	f, ok := o.locate(ref, p)
	if !ok || f.missing > 0 || f.node.Kind != yaml.ScalarNode {
		return nil, false
	}
	o.find.all()
	var steps []ValueChange
	cur, at := o.find, f
	for at.node != nil {
		s, ok := cur.setterOf(at)
		if !ok || len(steps) >= maxChain || len(steps) > 0 && s.at == steps[len(steps)-1].Position {
			// The build without the last change must have another one.
			steps = append(steps, ValueChange{How: Unknown, Value: &at.node.Value})
			break
		}
		if s.how == Base && s.value != at.node.Value {
			// An unknown change came in between.
			steps = append(steps, ValueChange{How: Unknown, Value: &at.node.Value}, o.plan.change(s, s.value))
			break
		}
		steps = append(steps, o.plan.change(s, at.node.Value))
		if s.how == Base || s.how == Generator {
			break
		}
		next := cur.without(s.cut)
		if next == nil {
			steps = append(steps, ValueChange{How: Unknown})
			break
		}
		below, ok := next.same(cur, at)
		if !ok {
			steps = append(steps, ValueChange{How: Unknown})
			break
		}
		cur, at = next, below
	}
	slices.Reverse(steps)
	if done := atNode(o.objects[f.object].Node, p); done != nil && done.Value != f.node.Value {
		steps = append(steps, ValueChange{How: Variable, Position: steps[len(steps)-1].Position, Value: &done.Value})
	}
	return steps, true
}

// change returns the change that a setter makes.
func (p *buildSpec) change(s setter, value string) ValueChange {
	out := ValueChange{How: s.how, Position: s.at, Value: &value}
	brings := s.at.File
	if s.by.Known() {
		out.By, brings = &s.by, s.by.File
	}
	for _, k := range p.kusts {
		out.Component = out.Component || k.file == brings && k.spec.Kind == "Component"
	}
	return out
}

// atNode returns the node at a path of the substituted object.
func atNode(n *yaml.Node, p intent.Path) *yaml.Node {
	for _, elem := range p {
		i := position(n, elem)
		if i < 0 {
			return nil
		}
		n = deref(n.Content[i])
	}
	return n
}
