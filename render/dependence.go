package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/secret"
	"go.yaml.in/yaml/v3"
)

// dependence lists the parts of a build that depend on a secret. weir finds them by a
// second build with other texts in the place of all secret ones: a part that differs
// depends on a secret. Nil stands for a build without secrets, in which nothing does.
type dependence struct {
	// again are the objects of the other build; if it is nil there are no such objects,
	// and nothing is known about what depends on a secret.
	again []kinds.Object
	// faults are about plain fields that depend on a secret.
	faults []kinds.Fault
	// pieces are the values of these fields, and what of them is a secret's.
	pieces []string
	// nodes are the keys and values that depend on a secret.
	nodes map[*yaml.Node]bool
	// refs are the objects whose kind, namespace or name does, as they may be shown,
	// and keys the fields, by object and path, whose key does.
	refs map[intent.ObjectRef]intent.ObjectRef
	keys map[string]bool
	// hashed are the names of objects that end in a hash over their content, without
	// it.
	hashed map[string]string
	// at is where the other build fails, if that is known.
	at diag.Position
}

// maxDependent is how many fields of one render are named: a reader has no use for
// more.
const maxDependent = 100

// compared finds what of a build's objects is another one in the build once more.
func compared(objects, again []kinds.Object) *dependence {
	d := &dependence{again: again, nodes: map[*yaml.Node]bool{}, refs: map[intent.ObjectRef]intent.ObjectRef{}, keys: map[string]bool{}, hashed: map[string]string{}}
	if again == nil {
		return d
	}
	partner := counterparts(objects, again)
	for i, o := range objects {
		if partner[i] < 0 {
			d.refs[o.Ref] = masked(o.Ref, intent.ObjectRef{})
			continue
		}
		other := again[partner[i]].Ref
		if o.Ref == other {
			continue
		}
		d.refs[o.Ref] = masked(o.Ref, other)
		if base, ok := hashAlone(o.Ref, other); ok {
			d.hashed[o.Ref.Name] = base
			d.refs[o.Ref] = intent.ObjectRef{APIVersion: o.Ref.APIVersion, Kind: o.Ref.Kind, Namespace: o.Ref.Namespace, Name: base + "-" + secret.Mask}
		}
	}
	for i, o := range objects {
		c := &comparison{dependence: d, ref: o.Ref, plain: kinds.Plain(o.Ref)}
		if partner[i] < 0 {
			c.below(o.Node)
			c.fault(intent.Path{"metadata", "name"}, "whether %s exists depends on a secret value", o.Ref.Kind)
			continue
		}
		c.node(o.Node, again[partner[i]].Node, nil)
	}
	for i, o := range again {
		if kinds.Plain(o.Ref) && !slices.Contains(partner, i) {
			d.faults = append(d.faults, kinds.Fault{Severity: diag.Error, Code: plainField, Summary: "which objects there are depends on a secret value", Detail: outOfField})
			break
		}
	}
	return d
}

// failed notes a build that does not go as the first one did.
func (d *dependence) failed(again *kust.Again, first diag.List) {
	known, why := map[string]bool{}, ""
	for _, f := range first {
		known[wording(f)] = true
	}
	for _, f := range again.Diags {
		if f.Severity == diag.Error && !known[wording(f)] {
			d.at, why = f.Position, " ("+f.Code+")"
			break
		}
	}
	if why == "" && again.Objects != nil {
		return
	}
	d.faults = append(d.faults, kinds.Fault{Severity: diag.Error, Code: plainField,
		Summary: "the build fails with other values in the place of its secrets" + why + ", so it cannot be told what depends on them",
		Detail:  "Something takes a secret value apart in a way that not every value allows, or looks for a text in it: a replacement with a delimiter, or a patch with a test. Have it work on values that are not secret.",
	})
}

// counterparts are the objects of the other build by those of the first, or -1: those of
// the same name or, where both builds have as many others of a kind, in their order.
func counterparts(objects, again []kinds.Object) []int {
	byRef := make(map[intent.ObjectRef]int, len(again))
	for i, o := range again {
		byRef[o.Ref] = i
	}
	type kind struct{ apiVersion, kind string }
	kindOf := func(ref intent.ObjectRef) kind { return kind{ref.APIVersion, ref.Kind} }
	out := make([]int, len(objects))
	taken := map[int]bool{}
	left, others := map[kind][]int{}, map[kind][]int{}
	for i, o := range objects {
		if j, ok := byRef[o.Ref]; ok && !taken[j] {
			out[i], taken[j] = j, true
			continue
		}
		out[i] = -1
		left[kindOf(o.Ref)] = append(left[kindOf(o.Ref)], i)
	}
	for j, o := range again {
		if !taken[j] {
			others[kindOf(o.Ref)] = append(others[kindOf(o.Ref)], j)
		}
	}
	for k, list := range left {
		if len(others[k]) == len(list) {
			for n, i := range list {
				out[i] = others[k][n]
			}
		}
	}
	return out
}

// masked is a reference to an object without what is not the same in another one.
func masked(ref, other intent.ObjectRef) intent.ObjectRef {
	if ref.Namespace != other.Namespace {
		ref.Namespace = secret.Mask
	}
	if ref.Name != other.Name {
		ref.Name = secret.Mask
	}
	return ref
}

// hashAlone reports whether the names of two objects differ by the hash alone that
// kustomize has made of their content, and returns the name without it.
func hashAlone(a, b intent.ObjectRef) (base string, ok bool) {
	const hash = 10
	cut := func(name string) string { return name[:max(0, len(name)-hash)] }
	base, ok = strings.CutSuffix(cut(a.Name), "-")
	return base, ok && base != "" && cut(a.Name) == cut(b.Name) && a.Namespace == b.Namespace && (a.Kind == "Secret" || a.Kind == "ConfigMap")
}

const (
	plainField = "secret-in-plain-field"
	outOfField = "Everybody who may read the account would see it. Take it out of the field, or do not mark it as secret."
)

// comparison of two objects.
type comparison struct {
	*dependence
	ref   intent.ObjectRef
	plain bool
}

func (c *comparison) fault(p intent.Path, format string, args ...any) *kinds.Fault {
	if !c.plain || len(c.faults) > maxDependent {
		return nil
	}
	f := kinds.Fault{Severity: diag.Error, Code: plainField, Ref: c.ref, Path: slices.Clone(p), Summary: fmt.Sprintf(format, args...), Detail: outOfField}
	if len(c.faults) == maxDependent {
		f = kinds.Fault{Severity: diag.Error, Code: plainField, Summary: fmt.Sprintf("more than %d fields depend on secret values; the others are left out", maxDependent), Detail: outOfField}
	}
	c.faults = append(c.faults, f)
	return &c.faults[len(c.faults)-1]
}

func (c *comparison) node(a, b *yaml.Node, p intent.Path) {
	a, b = resolved(a), resolved(b)
	switch {
	case a.Kind != b.Kind, a.Kind == yaml.SequenceNode && len(a.Content) != len(b.Content):
		c.below(a)
		c.fault(p, "%s depends on a secret value, and it is no part of the user data", c.shownPath(c.ref, p))
	case a.Kind == yaml.ScalarNode:
		if a.Value != b.Value {
			c.scalar(a, b, p)
		}
	case a.Kind == yaml.SequenceNode:
		for i := range a.Content {
			c.node(a.Content[i], b.Content[i], p.Join(intent.Index(i)))
		}
	case a.Kind == yaml.MappingNode:
		c.mapping(a, b, p)
	}
}

func (c *comparison) scalar(a, b *yaml.Node, p intent.Path) {
	c.nodes[a] = true
	if base, ok := c.hashed[a.Value]; ok {
		if f := c.fault(p, "%s refers to %q by a name that ends in a hash over a secret value", p, base); f != nil {
			f.Detail = "The hash is shown wherever the field is, and tells who guesses the value that the guess is right. Write options: {disableNameSuffixHash: true} at the generator."
		}
	} else {
		c.fault(p, "%s depends on a secret value, and it is no part of the user data", c.shownPath(c.ref, p))
	}
	c.piece(a.Value, b.Value)
}

func (c *comparison) mapping(a, b *yaml.Node, p intent.Path) {
	values := make(map[string]*yaml.Node, len(b.Content)/2)
	for i := 0; i+1 < len(b.Content); i += 2 {
		values[b.Content[i].Value] = b.Content[i+1]
	}
	gone := false
	for i := 0; i+1 < len(a.Content); i += 2 {
		key, at := a.Content[i], p.Join(a.Content[i].Value)
		other, ok := values[key.Value]
		if ok {
			delete(values, key.Value)
			c.node(a.Content[i+1], other, at)
			continue
		}
		gone = true
		c.nodes[key], c.keys[fieldID(c.ref, at)] = true, true
		c.below(a.Content[i+1])
		if f := c.fault(at, "a key of %s depends on a secret value, and it is no part of the user data", c.shownPath(c.ref, p)); f != nil {
			f.Key = true
		}
		c.piece(key.Value, "")
	}
	if len(values) > 0 && !gone {
		c.fault(p, "the keys of %s depend on a secret value", c.shownPath(c.ref, p))
	}
}

// below notes all of a node as dependent.
func (c *comparison) below(n *yaml.Node) {
	n = resolved(n)
	c.nodes[n] = true
	for _, child := range n.Content {
		c.below(child)
	}
}

// piece notes a value of a plain field, and what of it is not in the other value.
func (c *comparison) piece(value, other string) {
	if !c.plain || len(c.pieces) > 2*maxDependent {
		return
	}
	from, to := 0, 0
	for from < min(len(value), len(other)) && value[from] == other[from] {
		from++
	}
	for to < min(len(value), len(other))-from && value[len(value)-1-to] == other[len(other)-1-to] {
		to++
	}
	c.pieces = append(c.pieces, value, value[from:len(value)-to])
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func fieldID(ref intent.ObjectRef, p intent.Path) string {
	return ref.APIVersion + " " + ref.String() + "\x00" + strings.Join(p, "\x00")
}

// shownRef is a reference to an object as it may be shown.
func (d *dependence) shownRef(ref intent.ObjectRef) intent.ObjectRef {
	if d != nil {
		if shown, ok := d.refs[ref]; ok {
			return shown
		}
	}
	return ref
}

// shownPath is a path as it may be shown: without the keys that depend on a secret.
func (d *dependence) shownPath(ref intent.ObjectRef, p intent.Path) intent.Path {
	if d == nil || len(d.keys) == 0 {
		return p
	}
	for n := range p {
		if d.keys[fieldID(ref, p[:n+1])] {
			return p[:n].Join(secret.Mask)
		}
	}
	return p
}
