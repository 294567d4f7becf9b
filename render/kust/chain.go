package kust

import (
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// How says what kind of text set or changed a field.
type How string

// The things that set and change fields.
const (
	// Base is a file of objects.
	Base How = "base"
	// Patch is a strategic-merge patch, JSONPatch an operation of a JSON6902 patch.
	Patch     How = "patch"
	JSONPatch How = "json-patch"
	// Replacement puts the value of another field in.
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
	// Unknown stands for a step that weir could not find out.
	Unknown How = "unknown"
)

// Step is one of the places that together gave a field its value.
type Step struct {
	How How `json:"how"`
	// Position is the place of the value; it is missing for Unknown.
	diag.Position
	// By is the entry of the kustomization that brings the value in, where that
	// is at another place: the entry of a patch file or a replacement.
	By *diag.Position `json:"by,omitempty"`
	// Component says that the kustomization is a component.
	Component bool `json:"component,omitempty"`
	// Value is the field's after the step; nil if it is unknown.
	Value *string `json:"value"`
}

// maxChain bounds a chain.
const maxChain = 32

// Chain returns what gave the scalar at p of an object its value, in order: the base's value, the
// changes on the way, and finally the substitution of variables. The last step's Value is the
// field's. A step that weir could not find out is Unknown, and all steps after it are certain. ok
// is false if p has no scalar.
//
// It repeatedly leaves out the last thing that set the field and builds again, so a step costs a
// few builds.
func (o *Origins) Chain(ref intent.ObjectRef, p intent.Path) ([]Step, bool) {
	f, ok := o.locate(ref, p)
	if !ok || f.missing > 0 || f.node.Kind != yaml.ScalarNode {
		return nil, false
	}
	o.trace()
	var steps []Step
	cur, at := o, f
	for at.node != nil {
		s, ok := cur.setterOf(at)
		if !ok || len(steps) >= maxChain || len(steps) > 0 && s.at == steps[len(steps)-1].Position {
			// Leaving the last one out must have brought up another.
			steps = append(steps, Step{How: Unknown, Value: &at.node.Value})
			break
		}
		if s.how == Base && s.value != at.node.Value {
			// Something changed it on the way, and it cannot be said what.
			steps = append(steps, Step{How: Unknown, Value: &at.node.Value}, o.plan.step(s, s.value))
			break
		}
		steps = append(steps, o.plan.step(s, at.node.Value))
		if s.how == Base || s.how == Generator {
			break
		}
		next := cur.without(s.cut)
		if next == nil {
			steps = append(steps, Step{How: Unknown})
			break
		}
		below, ok := next.same(cur, at)
		if !ok {
			steps = append(steps, Step{How: Unknown})
			break
		}
		cur, at = next, below
	}
	slices.Reverse(steps)
	if done := atNode(o.objects[f.object].Node, p); done != nil && done.Value != f.node.Value {
		steps = append(steps, Step{How: Variable, Position: steps[len(steps)-1].Position, Value: &done.Value})
	}
	return steps, true
}

// step describes a setter.
func (p *plan) step(s setter, value string) Step {
	out := Step{How: s.how, Position: s.at, Value: &value}
	brings := s.at.File
	if s.by.Known() {
		out.By, brings = &s.by, s.by.File
	}
	for _, k := range p.kusts {
		out.Component = out.Component || k.file == brings && k.spec.Kind == "Component"
	}
	return out
}

// setterOf returns what last set a field, or last changed its value.
func (o *Origins) setterOf(f located) (setter, bool) {
	l, up, ok := o.leafOf(f)
	ok = ok && up == 0 && (l.from.how != Generator || !o.hasDocument(f.object))
	if ok && (l.own || l.node.Value == f.node.Value) {
		return l.setter(), true
	}
	// The written value is not the final one: something changed it on the way.
	if s, turned, _ := o.turn(f); turned {
		if m := o.markedScalar(f); s.how == Replacement && m != nil {
			if source := o.followed(f, m.leaves); source != nil {
				s.at, s.by = source.setter().at, s.at
			}
		}
		return s, true
	}
	if ok {
		return l.setter(), true
	}
	return o.probe(f)
}

// without is the build with some nodes left out as well; nil if it fails.
func (o *Origins) without(cut []*yaml.Node) *Origins {
	s := &Origins{vars: o.vars, tree: o.tree, path: o.path, limits: o.limits, plan: o.plan, cuts: slices.Concat(o.cuts, cut)}
	s.spent.Store(o.spent.Load())
	none := func(*yaml.Node, []step) bool { return false }
	s.raw = s.build(&marker{only: none})
	if s.raw == nil {
		return nil
	}
	return s
}

// same finds the field of another build in this one. The node is nil if the field is missing, and
// ok is false if the object is unknown.
func (o *Origins) same(other *Origins, f located) (located, bool) {
	was := other.raw[f.object]
	o.naming.Do(func() {
		o.byName = make(map[string]int, len(o.raw))
		for i := len(o.raw) - 1; i >= 0; i-- {
			o.byName[identity(o.raw[i])] = i
		}
	})
	i, found := o.byName[identity(was)]
	if !found {
		// Its name came from a part that is left out. Nothing else reorders objects.
		if len(o.raw) != len(other.raw) || text(o.raw[f.object], "kind") != text(was, "kind") {
			return located{}, false
		}
		i = f.object
	}
	out := located{object: i, path: f.path, node: at(o.raw[i], f.path)}
	if out.node != nil && out.node.Kind != yaml.ScalarNode {
		return located{}, false
	}
	return out, true
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
