package kust

import (
	"context"
	"maps"
	"strings"

	"github.com/weir-gitops/weir/render/decoy"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/sops"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/kyaml/utils"
)

// Again is a build once more, with other texts in the place of all secret ones: of
// what was encrypted, and of the variables that are marked as secret. A part that
// differs from the first build depends on a secret, wherever kustomize has put it and
// whatever it has cut off. weir must show nothing of it.
type Again struct {
	// Objects are nil if it gave none; those of a build with Unset are good for as
	// much as there.
	Objects []kinds.Object
	// Diags are the findings, in no order. Those of variables lack their positions.
	Diags diag.List
}

// again builds once more. It returns nil if the build holds no secret. An error of any
// kind leaves no objects.
func (r *Result) again(ctx context.Context, w *walker, o Options) (out *Again) {
	files := w.view.decryption.files
	uses := r.usesAny(o.SecretVars)
	if len(files) == 0 && !uses {
		return nil
	}
	defer func() {
		if recover() != nil {
			out = &Again{}
		}
	}()
	ctx, cancel := w.view.lim.timed(ctx)
	defer cancel()
	m := w.decoys()
	vars := maps.Clone(o.Vars)
	for _, name := range o.SecretVars {
		if value, ok := vars[name]; ok {
			vars[name] = m.Text(value)
		}
	}
	o.Vars = vars
	nodes, found, style := r.raw, w.walked, r.styleOf
	if len(files) > 0 {
		nodes, found = r.runAgain(ctx, w, m)
		style = func(int) func(*yaml.Node, intent.Path) yaml.Style {
			return func(n *yaml.Node, _ intent.Path) yaml.Style { return n.Style }
		}
	}
	out = &Again{Diags: found}
	if nodes == nil {
		return out
	}
	objects, faults, large := substituteAll(nodes, o, style)
	out.Objects = objects
	for _, f := range faults {
		out.add(f.diagnostic(o.GiveValue))
	}
	if large != nil {
		out.add(*large)
	}
	return out
}

func (a *Again) add(d diag.Diagnostic) {
	d.Summary, d.Detail = shortened(d.Summary), shortened(d.Detail)
	a.Diags = append(a.Diags, d)
}

// usesAny reports whether an object of the build uses one of some variables.
func (r *Result) usesAny(names []string) bool {
	var uses func(n *yaml.Node) bool
	uses = func(n *yaml.Node) bool {
		for _, name := range names {
			if hasVariables(n.Value) && strings.Contains(n.Value, "${"+name) {
				return true
			}
		}
		for _, c := range n.Content {
			if uses(c) {
				return true
			}
		}
		return false
	}
	for _, n := range r.raw {
		if len(names) > 0 && uses(n) {
			return true
		}
	}
	return false
}

// runAgain runs kustomize over the files with decoys in the place of what was
// encrypted. Where that is part of what is built only, and not of how, the files need
// no second walk.
func (r *Result) runAgain(ctx context.Context, w *walker, m *decoy.Maker) ([]*yaml.Node, diag.List) {
	v := w.view.fork(ctx)
	v.decryption.by = w.view.decryption.by
	for p, f := range w.view.decryption.files {
		content, err := f.Decoy(m.Text)
		if err != nil {
			return nil, nil
		}
		v.content[p] = content
	}
	p, found := r.plan, w.walked
	if p == nil || !w.contentOnly(w.view.decryption.files) {
		again := newWalker(v)
		if p = again.walk(r.path); p == nil || again.diags.HasErrors() || v.failure() != nil {
			return nil, append(again.diags, w.valued...)
		}
		found = append(again.diags, w.valued...)
	} else {
		fork := *p
		fork.view = v
		p = &fork
	}
	found = found[:len(found):len(found)]
	nodes, fault := p.run(ctx, nil)
	w.large = w.small && (isTooSlow(v.failure()) || fault != nil && fault.Code == "too-large")
	if fault != nil {
		fault.Summary, fault.Detail = shortened(fault.Summary), shortened(fault.Detail)
		return nil, append(found, *fault)
	}
	return nodes, found
}

// contentOnly reports whether files are objects, patches or data of generators alone.
// weir has to check a kustomization or a configuration of a transformer before
// kustomize may see it.
func (w *walker) contentOnly(files map[string]sops.File) bool {
	content := map[string]bool{}
	for _, k := range w.order {
		for _, f := range k.objects {
			content[f.path] = true
		}
		for _, p := range k.patches {
			if p.file != nil {
				content[p.file.path] = true
			}
		}
	}
	for _, k := range w.order {
		delete(content, k.file)
		for _, f := range k.configs {
			delete(content, f.path)
		}
	}
	for p := range files {
		if f := w.files[p]; f == nil || !content[p] && !f.data || f.data && f.parsed {
			return false
		}
	}
	return true
}

// decoys makes decoys that the build splits as it splits the texts themselves.
func (w *walker) decoys() *decoy.Maker {
	m := &decoy.Maker{Named: map[string]bool{}}
	for _, k := range w.order {
		for _, doc := range k.growth {
			learnShape(m, doc)
		}
	}
	return m
}

// learnShape finds the delimiters and the paths of replacements.
func learnShape(m *decoy.Maker, n *yaml.Node) {
	name := func(n *yaml.Node) {
		for _, elem := range utils.SmarterPathSplitter(deref(n).Value, ".") {
			elem = strings.Trim(elem, "[]")
			key, _, _ := strings.Cut(elem, "=")
			m.Named[elem], m.Named[key] = true, true
		}
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			switch key := strings.ToLower(deref(n.Content[i-1]).Value); key {
			case "delimiter":
				if d := deref(c).Value; d != "" {
					m.Delimiters = append(m.Delimiters, d)
				}
			case "fieldpath":
				name(c)
			case "fieldpaths":
				for _, e := range c.Content {
					name(e)
				}
			}
		}
		learnShape(m, c)
	}
}
