package render

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
	"github.com/weir-gitops/weir/render/secret"
	"go.yaml.in/yaml/v3"
)

// guard takes out the pools that would show a secret, or give encrypted text to
// their nodes, and says why.
func (r *Result) guard(d *dependence) []kinds.Fault {
	plain, sealed := rules.PlainSecrets(r.Objects, r.Secrets.Finder()), rules.Ciphertext(&r.Set)
	if d != nil {
		for i, f := range plain {
			plain[i].Summary = strings.Replace(f.Summary, f.Path.String(), d.shownPath(f.Ref, f.Path).String(), 1)
		}
		plain = append(plain, d.faultsBut(plain)...)
	}
	if len(plain)+len(sealed) == 0 {
		return nil
	}
	bad := map[intent.ObjectRef]bool{}
	all := false
	for _, f := range plain {
		bad[f.Ref] = true
		// An object that is neither a pool nor its MachinePool reaches every pool.
		all = all || f.Ref.Kind != "MachinePool" && f.Ref.Kind != "AWSMachinePool" && f.Ref.Kind != "AWSManagedMachinePool"
	}
	for _, f := range sealed {
		bad[f.Ref] = true
	}
	if all {
		r.Set.Clusters = nil
	}
	r.Set.Pools = slices.DeleteFunc(slices.Clone(r.Set.Pools), func(p intent.Pool) bool {
		return all || bad[p.MachinePool] || bad[p.Infrastructure] || bad[p.Bootstrap]
	})
	return append(plain, sealed...)
}

// redact keeps secret values out of the findings: a bad value is named in many
// of them, and it may come from a variable.
func (r *Result) redact() {
	pools := slices.ContainsFunc(r.Set.Pools, func(p intent.Pool) bool { return len(p.Blocked) > 0 })
	if r.Hidden.Len() == 0 || len(r.Diags) == 0 && !pools {
		return
	}
	hidden := r.Hidden.Finder()
	for i := range r.Diags {
		r.Diags[i] = redacted(r.Diags[i], hidden)
	}
	for i := range r.Set.Pools {
		p := &r.Set.Pools[i]
		p.Blocked = slices.Clone(p.Blocked)
		for j := range p.Blocked {
			p.Blocked[j] = redacted(p.Blocked[j], hidden)
		}
	}
}

func redacted(d diag.Diagnostic, s *secret.Finder) diag.Diagnostic {
	d.Summary, d.Detail, d.Object, d.Field = s.Redact(d.Summary), s.Redact(d.Detail), s.Redact(d.Object), s.Redact(d.Field)
	d.Related = slices.Clone(d.Related)
	for i := range d.Related {
		d.Related[i].Message = s.Redact(d.Related[i].Message)
	}
	return d
}

// ShownYAML is YAML for readers: without the values of Secrets, and without all else
// that is secret or depends on a secret. ok is false where weir cannot tell what does.
func (r *Result) ShownYAML() (text []byte, ok bool) {
	if r.unsure {
		return nil, false
	}
	hidden := r.Hidden.Finder()
	return r.built.Shown(func(ref intent.ObjectRef, p intent.Path, n *yaml.Node) string {
		if r.dependent[n] || ref.Kind == "Secret" && len(p) == 2 && (p[0] == "data" || p[0] == "stringData") {
			return secret.Mask
		}
		return hidden.Redact(n.Value)
	}), true
}
