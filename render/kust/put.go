package kust

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/standin"
	"go.yaml.in/yaml/v3"
)

// Misuse is a secret in a place where secrets are not allowed.
type Misuse struct {
	Kind MisuseKind
	Ref  intent.ObjectRef
	Path intent.Path
	// Key is true if the secret is in the field's key, not in its value.
	Key bool
	// Of is the referenced name without its hash suffix. It is set for InHash.
	Of string
	// Secret is the secret's position in the source; zero if unknown.
	Secret diag.Position
}

// MisuseKind is the kind of a misuse.
type MisuseKind int

// The kinds of misuse.
const (
	// InPlainField is a value that anyone with read access to the account can read.
	InPlainField MisuseKind = iota
	// InName is an identifier: a name, a namespace, a label, an annotation, a reference or
	// a key.
	InName
	// InHash is a reference to an object by a name that ends in a hash of a secret.
	InHash
	// InPart is a value that contains a piece of a secret.
	InPart
)

// put replaces stand-ins with secret texts in places where secrets are allowed. These are values of objects
// from which user data is made, and values of objects that weir does not read. It records every other place
// as a Misuse. It returns the diagnostic too-large if the objects would grow by more than substitutionLimit
// bytes.
func (r *Result) put(public []kinds.Object) ([]kinds.Object, *diag.Diagnostic) {
	if r.texts.Len() == 0 {
		return public, nil
	}
	p := &putting{texts: r.texts, hashed: r.hashed(public), places: r.plan.view.decryption.places}
	r.Hashed = p.hashed
	out := public
	for i, o := range public {
		if !p.concerns(o.Node) {
			continue
		}
		if !r.Secretive {
			r.Secretive, out = true, slices.Clone(public)
		}
		p.ref, p.style, p.plain = o.Ref, r.find.styleOf(i), kinds.Plain(o.Ref)
		out[i].Node = copyNode(o.Node)
		p.node(out[i].Node, nil)
	}
	if p.grown > substitutionLimit {
		d := faultAt("too-large", diag.Position{File: r.path}, "the secrets would grow the objects by more than is allowed", "Use long values less often.")
		return nil, &d
	}
	r.Misuses, r.Mixes = p.misuses, p.mixed
	return out, nil
}

// putting replaces stand-ins in one object after the other.
type putting struct {
	texts   *standin.Set
	hashed  map[string]string
	misuses []Misuse
	grown   int64
	places  map[string]diag.Position
	mixed   bool

	ref   intent.ObjectRef
	plain bool
	style func(n *yaml.Node, p intent.Path) yaml.Style
}

// concerns reports whether a node contains a stand-in, or a name derived from one.
func (p *putting) concerns(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		_, hashed := p.hashed[n.Value]
		return hashed || p.texts.Touches(n.Value)
	}
	return slices.ContainsFunc(n.Content, p.concerns)
}

func (p *putting) misuse(kind MisuseKind, at intent.Path, key bool, text string) {
	m := Misuse{Kind: kind, Ref: p.ref, Path: slices.Clone(at), Key: key, Of: p.hashed[text]}
	for _, t := range p.texts.In(text) {
		m.Secret = p.places[t.ID]
	}
	p.misuses = append(p.misuses, m)
}

// node replaces the stand-ins in a node and everything below it. A key with a stand-in is a misuse, and
// stays as it is.
func (p *putting) node(n *yaml.Node, at intent.Path) {
	switch n.Kind {
	case yaml.ScalarNode:
		p.scalar(n, at)
	case yaml.SequenceNode:
		for i, c := range n.Content {
			p.node(c, at.Join(intent.Index(i)))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if p.texts.Touches(key) {
				p.misuse(InName, at.Join(key), true, key)
			}
			p.node(n.Content[i+1], at.Join(key))
		}
	}
}

// scalar replaces the stand-ins in a scalar with their secret texts, and sets the YAML type and style that
// fit the new text. It records a misuse instead if a secret must not be there, such as in a name or in a
// field that is not secret. After the limit on growth, it replaces nothing more.
func (p *putting) scalar(n *yaml.Node, at intent.Path) {
	if _, hashed := p.hashed[n.Value]; hashed && p.plain {
		p.misuse(InHash, at, false, n.Value)
		return
	}
	real, found := p.texts.Put(n.Value)
	switch {
	case found == standin.None:
		return
	case names(at):
		p.misuse(InName, at, false, n.Value)
		return
	case p.plain:
		p.misuse(InPlainField, at, false, n.Value)
		return
	case found == standin.Cut:
		p.misuse(InPart, at, false, n.Value)
		return
	}
	p.mixed = p.mixed || found == standin.Part
	if p.grown += int64(len(real) - len(n.Value)); p.grown > substitutionLimit {
		return
	}
	tag, plain := n.Tag, false
	for _, t := range p.texts.In(n.Value) {
		switch {
		case t.Tag == "":
			plain = true
		case found == standin.Whole:
			tag = t.Tag
		}
	}
	if plain {
		if tag = plainTag(real); tag != "!!str" && p.style(n, at)&quotedOrBlock != 0 {
			tag = "!!str"
		}
	}
	switch n.Value, n.Tag = real, tag; {
	case tag != "!!str":
		n.Style = 0
	case plainTag(real) != tag && n.Style&quotedOrBlock == 0:
		n.Style = yaml.DoubleQuotedStyle
	}
}

// names reports whether the value at a path identifies an object or refers to one.
func names(p intent.Path) bool {
	switch p[0] {
	case "apiVersion", "kind", "metadata":
		return true
	}
	last := len(p) - 1
	return last > 0 && (p[last] == "name" || p[last] == "key") && (p[last-1] == "secret" || p[last-1] == "configMap")
}

// hash matches the suffix that kustomize's generators add to a name: a hash of the content.
var hash = lazyregexp.New(`-[2-9bcdfghkmt]{10}$`)

// hashed returns the names of objects that end in a hash of a stand-in, each with the name
// without that suffix.
func (r *Result) hashed(objects []kinds.Object) map[string]string {
	generates := slices.ContainsFunc(r.plan.kusts, func(k *kust) bool {
		return len(k.spec.SecretGenerator)+len(k.spec.ConfigMapGenerator)+len(k.spec.Generators) > 0
	})
	out := map[string]string{}
	for _, o := range objects {
		if at := hash.FindStringIndex(o.Ref.Name); generates && at != nil && (o.Ref.Kind == "Secret" || o.Ref.Kind == "ConfigMap") && (&putting{texts: r.texts}).concerns(o.Node) {
			out[o.Ref.Name] = o.Ref.Name[:at[0]]
		}
	}
	return out
}

// Masked returns a text with a mask in place of stand-ins and of hashes derived from them.
func (r *Result) Masked(text string) string {
	for name, base := range r.Hashed {
		text = strings.ReplaceAll(text, name, fmt.Sprintf("%s-%s", base, mask))
	}
	return r.texts.Mask(text)
}

// Mixed reports whether a text contains a secret together with other text.
func (r *Result) Mixed(text string) bool {
	_, found := r.texts.Put(text)
	return found == standin.Part || found == standin.Cut
}

// Marked returns a text with the ID of each secret in place of the secret itself, and whether the text
// contains a secret. IDs are public.
func (r *Result) Marked(text string) (marked string, secretive bool) {
	if !r.texts.Touches(text) {
		return text, false
	}
	return r.texts.Marked(text), true
}

// Shaped returns the objects with stand-ins. If a value must have a certain form and is entirely secret, its
// stand-in is a valid value of that form. So the findings about the objects are the same for every valid
// secret.
func (r *Result) Shaped() []kinds.Object {
	out := slices.Clone(r.Public)
	for i, o := range out {
		if kinds.Plain(o.Ref) || o.Ref.Kind == "Secret" || !slices.ContainsFunc(o.Node.Content, (&putting{texts: r.texts}).concerns) {
			continue
		}
		out[i].Node = copyNode(o.Node)
		r.shape(out[i].Node, "")
	}
	return out
}

// shapes are valid values, by the key of the field.
var shapes = map[string]string{
	"token": "abcdef.0123456789abcdef", "tlsBootstrapToken": "abcdef.0123456789abcdef", "apiServerEndpoint": "192.0.2.1:6443", "server": "https://192.0.2.1:6443",
	"caCertHashes": "sha256:" + strings.Repeat("0", 64), "permissions": "0600", "format": "cloud-config", "encoding": "base64",
}

// shape replaces each scalar that is a single stand-in with a valid value: a constant for its YAML type, or
// for its key if shapes has one. Other stand-ins stay. key is the key of n, or of the list that contains
// it.
func (r *Result) shape(n *yaml.Node, key string) {
	for i, c := range n.Content {
		if n.Kind != yaml.MappingNode {
			r.shape(c, key)
		} else if i%2 == 1 {
			r.shape(c, n.Content[i-1].Value)
		}
	}
	texts := r.texts.In(n.Value)
	if n.Kind != yaml.ScalarNode || len(texts) != 1 || len(n.Value) != standin.Length {
		return
	}
	switch tag := texts[0].Tag; tag {
	case "!!int":
		n.Value, n.Tag, n.Style = "1", tag, 0
	case "!!float":
		n.Value, n.Tag, n.Style = "0.5", tag, 0
	case "!!bool":
		n.Value, n.Tag, n.Style = "true", tag, 0
	default:
		if shape, ok := shapes[key]; ok {
			n.Value = shape
		}
	}
}
