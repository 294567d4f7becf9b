package kust

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust/output"
	"github.com/weir-gitops/weir/render/kust/variables"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// substitute sets r.Objects from the raw build.
func (r *Result) substitute(o Options, found *findings) {
	objects, faults, large := substituteAll(r.find.raw, o, r.find.styleOf)
	if large != nil {
		found.report(*large)
		return
	}
	r.Public, r.locator = objects, locator{objects: objects, raw: r.find.raw}
	if r.Objects, large = r.put(objects); large != nil {
		found.report(*large)
		return
	}
	var unset diag.List
	unsets, others := 0, 0
	for _, f := range faults {
		kind, most := &others, maxFaults+1
		if f.Name != "" {
			kind, most = &unsets, maxUnset
		}
		if *kind++; *kind > most {
			continue // report would drop it, and finding its place takes time
		}
		d := f.diagnostic(o.GiveValue)
		switch {
		case f.twice:
			d.Position, _ = r.Near(f.ref, intent.Path{"metadata", "name"})
		default:
			d.Position = r.within(f.ref, f.path, f.Offset)
		}
		if f.inKey {
			if at, ok := r.KeyOrigin(f.ref, f.path); ok {
				d.Position = at
			}
		}
		if d.Code != "unset-variable" {
			found.report(d)
		} else {
			unset = append(unset, d)
		}
	}
	found.diags = append(found.diags, unset...)
}

// maxUnset bounds the reported uses of variables without a value. Every use is a finding. The findings about
// a variable are merged later.
const maxUnset = 5_000

// substitutionFault is a finding of the substitution of variables.
type substitutionFault struct {
	ref  intent.ObjectRef
	path intent.Path
	// twice is true if the object exists twice, key if two keys have become equal, and inKey if the variable
	// is in a key.
	twice, key, inKey bool
	variables.Misuse
}

// diagnostic returns the finding without its position.
func (f substitutionFault) diagnostic(giveValue string) diag.Diagnostic {
	d := misuseDiagnostic(f.Misuse, giveValue)
	switch {
	case f.twice:
		d = faultAt("duplicate-object", diag.Position{}, fmt.Sprintf("%s is given twice", f.ref), "Give the two different names, or remove one.")
		d.Object = f.ref.String()
		return d
	case f.key:
		d = faultAt("duplicate-key", diag.Position{}, "two keys of this mapping are equal after the variables are substituted", "Change the value of a variable, or one of the keys.")
	}
	d.Object, d.Field = f.ref.String(), f.path.String()
	return d
}

// substituteAll substitutes variables in objects. style returns the original style of a scalar in the object
// at an index. If the values are too large, it returns a finding instead of objects.
func substituteAll(raw []*yaml.Node, o Options, style func(i int) func(*yaml.Node, intent.Path) yaml.Style) (objects []kinds.Object, faults []substitutionFault, large *diag.Diagnostic) {
	if grown := grownBy(raw, o.Vars); grown > substitutionLimit {
		d := faultAt("too-large", diag.Position{}, fmt.Sprintf("the variables would grow the objects by up to %d bytes, the limit is %d", grown, substitutionLimit),
			"Use long values less often, or put them into files.")
		return nil, nil, &d
	}
	objects = make([]kinds.Object, 0, len(raw))
	first := make(map[intent.ObjectRef]bool, len(raw))
	var twice []substitutionFault
	for i := range raw {
		s := &substitution{vars: o.Vars, style: style(i)}
		n := s.object(raw[i])
		if n == nil {
			n = raw[i]
		}
		ref := refOf(n)
		objects = append(objects, kinds.Object{Ref: ref, Node: n})
		if first[ref] {
			twice = append(twice, substitutionFault{ref: ref, twice: true})
		}
		first[ref] = true
		for _, p := range s.twice {
			faults = append(faults, substitutionFault{ref: ref, path: p, key: true})
		}
		if o.Strict != nil && len(s.bad) > 0 && o.Strict(ref) {
			for _, b := range s.bad {
				faults = append(faults, substitutionFault{ref: ref, path: b.path, inKey: b.inKey, Misuse: b.Misuse})
			}
		}
	}
	return objects, append(faults, twice...), nil
}

// substitutionLimit bounds the bytes that variables add to the objects of a build. The length of a value is
// limited, but a repository can use the value any number of times.
const substitutionLimit = 64 << 20

// grownBy returns an upper bound of the bytes that substitution adds. It assumes the longest value for every
// use of a variable.
func grownBy(objects []*yaml.Node, vars map[string]string) int64 {
	longest := 0
	for _, v := range vars {
		longest = max(longest, len(v))
	}
	uses := 0
	var count func(n *yaml.Node)
	count = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			uses += strings.Count(n.Value, "${")
		}
		for _, c := range n.Content {
			count(c)
		}
	}
	for _, n := range objects {
		count(n)
	}
	return int64(uses) * int64(longest)
}

func misuseDiagnostic(m variables.Misuse, giveValue string) diag.Diagnostic {
	if m.Name != "" {
		return faultAt("unset-variable", diag.Position{}, fmt.Sprintf("variable %s has no value and no default", m.Name),
			fmt.Sprintf("Give it a value %s, write ${%s:-default}, or $${%s} for the text itself.", cmp.Or(giveValue, "in the target's configuration or with --var"), m.Name, m.Name))
	}
	return faultAt("bad-variable", diag.Position{}, fmt.Sprintf("%s is not a form of variable that is substituted", m.Form),
		"The forms are ${VAR}, ${VAR:-default} and ${VAR:=default}, not nested. Write $${ for a literal ${.")
}

// substitution is the substitution of the variables of one object.
type substitution struct {
	vars  map[string]string
	style func(n *yaml.Node, p intent.Path) yaml.Style
	bad   []badScalar
	twice []intent.Path
}

type badScalar struct {
	path  intent.Path
	inKey bool
	variables.Misuse
}

// object returns a copy of an object with its variables substituted, or nil if it has no variable.
func (s *substitution) object(n *yaml.Node) *yaml.Node {
	if !anyVariable(n) {
		return nil
	}
	c := copyNode(n)
	s.node(c, nil)
	return c
}

func anyVariable(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode && variables.In(n.Value) {
		return true
	}
	for _, c := range n.Content {
		if anyVariable(c) {
			return true
		}
	}
	return false
}

// node substitutes the variables in the keys and values of a node. It records keys that are equal after the
// substitution.
func (s *substitution) node(n *yaml.Node, p intent.Path) {
	switch n.Kind {
	case yaml.ScalarNode:
		s.scalar(n, p)
	case yaml.SequenceNode:
		for i, c := range n.Content {
			s.node(c, p.Join(intent.Index(i)))
		}
	case yaml.MappingNode:
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			s.key(key, p)
			if seen[key.Value] {
				s.twice = append(s.twice, p.Join(key.Value))
			}
			seen[key.Value] = true
			s.node(n.Content[i+1], p.Join(key.Value))
		}
	}
}

func (s *substitution) key(n *yaml.Node, p intent.Path) {
	if !variables.In(n.Value) {
		return
	}
	value, bad := variables.Substitute(n.Value, s.vars)
	for _, b := range bad {
		s.bad = append(s.bad, badScalar{path: p.Join(value), inKey: true, Misuse: b})
	}
	n.Value, n.Tag = value, "!!str"
}

// scalar substitutes a value. A plain scalar gets the YAML type of its new text if that is a number, a
// boolean or null. Quoted scalars and blocks stay strings. A value stays one scalar, even if it
// contains YAML.
func (s *substitution) scalar(n *yaml.Node, p intent.Path) {
	if !variables.In(n.Value) {
		return
	}
	value, bad := variables.Substitute(n.Value, s.vars)
	for _, b := range bad {
		s.bad = append(s.bad, badScalar{path: p, Misuse: b})
	}
	if value == n.Value {
		return
	}
	tag := plainTag(value)
	if tag != "!!str" && s.style(n, p)&quotedOrBlock != 0 {
		tag = "!!str"
	}
	n.Value, n.Tag = value, tag
}

const quotedOrBlock = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// plainTag returns the type of a plain scalar: number, boolean or null. Everything else, such as dates, is a
// string.
func plainTag(value string) string {
	switch tag := (&yaml.Node{Kind: yaml.ScalarNode, Value: value}).ShortTag(); tag {
	case "!!int", "!!float", "!!bool", "!!null":
		return tag
	default:
		return "!!str"
	}
}

// refOf returns the identity of an object.
func refOf(n *yaml.Node) intent.ObjectRef {
	ref := intent.ObjectRef{
		APIVersion: text(n, "apiVersion"), Kind: text(n, "kind"),
		Namespace: text(n, "metadata", "namespace"), Name: text(n, "metadata", "name"),
	}
	switch {
	case clusterScoped(ref):
		ref.Namespace = ""
	case ref.Namespace == "":
		ref.Namespace = "default"
	}
	return ref
}

// clusterScoped reports whether a kind has no namespace: AWS identities, and kinds that are
// cluster-scoped in Kubernetes' own schema.
func clusterScoped(ref intent.ObjectRef) bool {
	if ref.Group() == "infrastructure.cluster.x-k8s.io" {
		switch ref.Kind {
		case "AWSClusterControllerIdentity", "AWSClusterRoleIdentity", "AWSClusterStaticIdentity":
			return true
		}
		return false
	}
	if strings.HasSuffix(ref.Group(), "cluster.x-k8s.io") {
		return false // not in any schema
	}
	return worker.ClusterScoped(kyaml.TypeMeta{APIVersion: ref.APIVersion, Kind: ref.Kind})
}

// YAML returns the build with variables substituted, in the form of "kubectl kustomize".
func (r *Result) YAML() []byte {
	nodes := make([]*yaml.Node, len(r.Objects))
	for i, o := range r.Objects {
		nodes[i] = o.Node
	}
	return output.YAML(nodes)
}
