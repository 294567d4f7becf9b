package build

import (
	"context"
	"fmt"
	"path"
	"sync"

	"github.com/weir-gitops/weir/render/diag"
	"go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// Process-global state, all of it in kustomize:
//
//   - The Kubernetes schema. kustomize parses its own once per process (some
//     20 ms) and reads it without a lock while another build may still be at it,
//     so the first build warms it for all. A custom one from the field openapi
//     would stay for all later builds, so the walk refuses that field.
//   - Standard error. kustomize writes its deprecation warnings there; the walk
//     reports them, and modernize takes the fields away before kustomize looks.
//   - The bytes that JSON patches may copy, of which the library knows no limit
//     by itself; the first build sets one.
//   - Programs, the network and the real disk. Nothing in here could hold
//     kustomize back from them; the walk refuses every reference that leads there.

var prepare = sync.OnceFunc(func() {
	jsonpatch.AccumulatedCopySizeLimit = maxCopied
	openapi.SchemaForResourceType(kyaml.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"})
})

// plan is a walked path, ready to be built as often as needed.
type plan struct {
	view   *view
	limits Limits
	root   string  // directory that kustomize starts in
	origin string  // the file to name when nothing better is known
	kusts  []*kust // children before parents
	files  map[string]*file
	base   fileSystem
}

func (w *walker) plan(top *kust) *plan {
	p := &plan{view: w.view, limits: w.view.lim, root: top.dir, origin: top.file, kusts: w.order, files: w.files}
	p.base = fileSystem{view: w.view, fed: map[string][]byte{}, allowed: map[string]bool{}}
	for name := range w.files {
		p.base.allowed[name] = true
	}
	for _, k := range w.order {
		if k.legacy || k.virtual {
			content, err := encodeKustomization(copyNode(k.doc))
			if err != nil {
				w.add("kustomization-invalid", diag.Position{File: k.file}, "the kustomization cannot be written out: "+err.Error(), "")
				continue
			}
			p.base.fed[k.file] = content
		}
	}
	if top.virtual {
		p.origin = top.dir
		if len(top.objects) == 1 {
			p.origin = top.objects[0].path
		}
		p.base.made = map[string]bool{top.file: true}
		p.base.hidden = map[string]bool{}
		for _, name := range konfig.RecognizedKustomizationFileNames() {
			p.base.hidden[path.Join(top.dir, name)] = true
		}
	}
	return p
}

// encodeKustomization writes a kustomization without deprecated fields.
func encodeKustomization(doc *yaml.Node) ([]byte, error) {
	modernize(doc)
	return yaml.Marshal(doc)
}

// run builds the plan and returns the objects, in order. fed replaces the
// content of files for this run. If the time is up it returns neither objects
// nor a fault, and the view knows why.
func (p *plan) run(ctx context.Context, fed map[string][]byte) ([]*yaml.Node, *diag.Diagnostic) {
	fsys := p.base
	if len(fed) > 0 {
		all := make(map[string][]byte, len(fed)+len(p.base.fed))
		for name, content := range p.base.fed {
			all[name] = content
		}
		for name, content := range fed {
			all[name] = content
		}
		fsys.fed = all
	}
	type answer struct {
		nodes []*yaml.Node
		err   error
	}
	done := make(chan answer, 1)
	if err := abandoned.wait(ctx); err != nil {
		p.view.giveUp(err)
		return nil, nil
	}
	// kustomize knows no context. It gets a goroutine of its own, so that a
	// build that takes too long is given up: its file system answers with errors
	// from then on, so the goroutine ends as soon as it reads again or is done.
	go func() {
		nodes, err := krustyRun(&fsys, string(mounted(p.root)))
		done <- answer{nodes, err}
	}()
	select {
	case <-ctx.Done():
		p.view.giveUp(context.Cause(ctx))
		abandoned.add()
		go func() {
			<-done
			abandoned.remove()
		}()
		return nil, nil
	case a := <-done:
		if a.err != nil {
			d := p.explain(a.err)
			return nil, &d
		}
		return a.nodes, nil
	}
}

// krustyRun calls kustomize and turns a panic of its into an error.
func krustyRun(fsys *fileSystem, root string) (nodes []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize panicked: %v", r)
		}
	}()
	prepare()
	opts := krusty.MakeDefaultOptions()
	opts.Reorder = krusty.ReorderOptionUnspecified // as kubectl kustomize does
	m, err := krusty.MakeKustomizer(opts).Run(fsys, root)
	if err != nil {
		return nil, err
	}
	return nodesOf(m), nil
}

func nodesOf(m resmap.ResMap) []*yaml.Node {
	var nodes []*yaml.Node
	for _, r := range m.Resources() {
		if n := r.YNode(); n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// copyNode copies a node tree, aliases kept inside the copy.
func copyNode(n *yaml.Node) *yaml.Node {
	return copyInto(n, map[*yaml.Node]*yaml.Node{})
}

func copyInto(n *yaml.Node, made map[*yaml.Node]*yaml.Node) *yaml.Node {
	if n == nil {
		return nil
	}
	if c, ok := made[n]; ok {
		return c
	}
	c := *n
	made[n] = &c
	c.Alias = copyInto(n.Alias, made)
	if n.Content != nil {
		c.Content = make([]*yaml.Node, len(n.Content))
		for i := range n.Content {
			c.Content[i] = copyInto(n.Content[i], made)
		}
	}
	return &c
}
