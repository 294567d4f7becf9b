package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/slot"
	"go.yaml.in/yaml/v3"
)

// guard returns findings about objects whose pools must be left out. These pools would show a secret, or give
// encrypted text to their nodes.
func (dec *decoding) guard() []kinds.Fault {
	sealed := rules.Ciphertext(&dec.of.Set)
	for _, f := range sealed {
		dec.refused = append(dec.refused, f.Ref)
	}
	return append(dec.misused(), sealed...)
}

// refuses returns whether the pools of an object are left out, and whether all pools are.
func (dec *decoding) refuses() (one func(intent.ObjectRef) bool, all bool) {
	for _, ref := range dec.refused {
		// An object of another kind may affect every pool.
		all = all || !slices.Contains([]string{"MachinePool", "AWSMachinePool", "AWSManagedMachinePool", "KubeadmConfig", "EKSConfig", "NodeadmConfig"}, ref.Kind)
	}
	return func(ref intent.ObjectRef) bool { return all || slices.Contains(dec.refused, ref) }, all
}

// secretIn returns the position of the secret in a field that must not contain one.
func (s secrecy) secretIn(ref intent.ObjectRef, p intent.Path) diag.Position {
	for _, m := range s.built.Misuses {
		if m.Ref == ref && slices.Equal(m.Path, p) {
			return m.Secret
		}
	}
	return diag.Position{}
}

// mark records how user data with secrets was made: the objects that it is derived from, with the identity of
// each secret in place of its text.
func (dec *decoding) mark() {
	for i := range dec.of.Set.Pools {
		p := &dec.of.Set.Pools[i]
		if p.LaunchTemplate == nil || p.LaunchTemplate.UserData.Text == "" {
			continue
		}
		if mark := dec.secrets.markOf(p.Bootstrap); mark != "" {
			t := *p.LaunchTemplate
			t.UserData.Mark, t.UserData.AnySize = mark, dec.secrets.class == slot.Proposed
			p.LaunchTemplate = &t
		}
	}
}

// markOf returns the mark of user data that is derived from a bootstrap object. It is empty if the user data
// has no secret.
func (s secrecy) markOf(bootstrap intent.ObjectRef) string {
	sum, secretive := sha256.New(), false
	var add func(ref intent.ObjectRef)
	add = func(ref intent.ObjectRef) {
		for _, o := range s.built.Public {
			if o.Ref != ref {
				continue
			}
			for i := 0; i+1 < len(o.Node.Content); i += 2 {
				if key := o.Node.Content[i].Value; key != "metadata" { // no user data contains the metadata
					fmt.Fprintf(sum, "%q\n", key)
					secretive = s.marked(sum, o.Node.Content[i+1]) || secretive
				}
			}
			for _, name := range secretNames(o.Node) {
				if ref.Kind != "Secret" {
					add(intent.ObjectRef{APIVersion: "v1", Kind: "Secret", Namespace: ref.Namespace, Name: name})
				}
			}
		}
	}
	add(bootstrap)
	if !secretive {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// marked writes a node with the identities of its secrets, and reports whether it has any. It does not write
// names that end in a hash of a secret.
func (s secrecy) marked(to hash.Hash, n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		return s.marked(to, n.Alias)
	}
	text := n.Value
	if base, ok := s.built.Hashed[text]; ok {
		text = base
	}
	text, secretive := s.built.Marked(text)
	fmt.Fprintf(to, "%d %d %q\n", n.Kind, len(n.Content), text)
	for _, c := range n.Content {
		secretive = s.marked(to, c) || secretive
	}
	return secretive
}

// secretNames returns the names of the Secrets that a bootstrap configuration refers to.
func secretNames(n *yaml.Node) (out []string) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "secret" {
			if name := child(c, "name"); name != nil {
				out = append(out, name.Value)
			}
		}
		out = append(out, secretNames(c)...)
	}
	return out
}

// redact removes the values of Secrets and the stand-ins from the findings.
func (r *Result) redact() {
	shown := r.hide
	for i := range r.Diags {
		r.Diags[i] = redacted(r.Diags[i], shown)
	}
	for i := range r.Set.Pools {
		p := &r.Set.Pools[i]
		p.Blocked = slices.Clone(p.Blocked)
		for j := range p.Blocked {
			p.Blocked[j] = redacted(p.Blocked[j], shown)
		}
	}
	for i := range r.Set.Unplanned {
		r.Set.Unplanned[i].Fault = redacted(r.Set.Unplanned[i].Fault, shown)
	}
}

func redacted(d diag.Diagnostic, shown func(string) string) diag.Diagnostic {
	d.Summary, d.Detail, d.Object, d.Field = shown(d.Summary), shown(d.Detail), shown(d.Object), shown(d.Field)
	d.Related = slices.Clone(d.Related)
	for i := range d.Related {
		d.Related[i].Message = shown(d.Related[i].Message)
	}
	return d
}

// ShownYAML is like YAML, without the values of Secrets and all other secrets.
func (r *Result) ShownYAML() (text []byte, ok bool) {
	return r.built.Shown(func(ref intent.ObjectRef, p intent.Path, n *yaml.Node) string {
		if ref.Kind == "Secret" && len(p) == 2 && (p[0] == "data" || p[0] == "stringData") {
			return secret.Mask
		}
		return r.hide(n.Value)
	}), true
}
