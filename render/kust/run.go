package kust

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust/worker"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
)

// buildSpec describes a build of a path, whose files were read. It can be built any number of times.
type buildSpec struct {
	view   *view
	limits Limits
	root   string  // directory that kustomize starts in
	origin string  // the file for messages without a better place
	kusts  []*kust // children before parents
	files  map[string]*file
	fed    map[string][]byte // content that differs from the file's
	made   string            // the path of a kustomization that is not in the tree, or ""

	apart *apart
}

// spec returns the description of a build that starts in a kustomization.
func (w *walker) spec(top *kust) *buildSpec {
	p := &buildSpec{view: w.view, limits: w.view.lim, root: top.dir, origin: top.file, kusts: w.order, files: w.files, fed: map[string][]byte{}, apart: &apart{}}
	for _, k := range w.order {
		if k.legacy || k.virtual {
			content, err := encodeKustomization(copyNode(k.doc))
			if err != nil {
				w.add("kustomization-invalid", diag.Position{File: k.file}, "the kustomization cannot be written out: "+err.Error(), "")
				continue
			}
			p.fed[k.file] = content
		}
	}
	if top.virtual {
		p.origin = top.dir
		if len(top.objects) == 1 {
			p.origin = top.objects[0].path
		}
		p.made = top.file
	}
	return p
}

// encodeKustomization writes a kustomization without deprecated fields.
func encodeKustomization(doc *yaml.Node) ([]byte, error) {
	modernize(doc)
	return yaml.Marshal(doc)
}

// job returns a run of kustomize over exactly the walked files. fed replaces the content of files for this
// run.
func (p *buildSpec) job(fed map[string][]byte) *worker.Job {
	j := &worker.Job{Root: p.root, Files: p.view.contents(p.files), Paths: p.view.resolutions(), Reads: p.limits.Files, Bytes: p.limits.TotalBytes, Nodes: p.limits.Nodes, Small: p.view.small}
	maps.Copy(j.Files, p.fed)
	maps.Copy(j.Files, fed)
	if p.made != "" { // kustomize reads it, and must find no other kustomization
		for _, name := range konfig.RecognizedKustomizationFileNames() {
			j.Paths[path.Join(p.root, name)] = worker.Path{Missing: true}
		}
		j.Paths[p.made] = worker.Path{At: p.made, File: true}
	}
	return j
}

// run builds the plan and returns the objects, in order. fed replaces the content of files for this run. If
// the tree cannot be read, the time is over, or no worker can run, it returns neither objects nor a fault.
// The view then has the reason.
func (p *buildSpec) run(ctx context.Context, fed map[string][]byte) ([]*yaml.Node, *diag.Diagnostic) {
	b, fault := p.runParts(ctx, fed)
	return b.nodes, fault
}

// runParts is like run, and also returns the objects in the order of the plan's members.
func (p *buildSpec) runParts(ctx context.Context, fed map[string][]byte) (built, *diag.Diagnostic) {
	b, err := p.build(ctx, fed)
	if err == nil {
		return b, nil
	}
	var d diag.Diagnostic
	var fault worker.Fault
	var ended *worker.Ended
	switch {
	case ctx.Err() != nil:
		p.view.giveUp(context.Cause(ctx))
		return built{}, nil
	case errors.As(err, &fault):
		d = p.explain(fault)
	case errors.Is(err, worker.ErrNodes):
		d = tooManyNodes(diag.Position{File: p.origin}, fmt.Sprintf("the build results in more than %d YAML nodes", p.limits.Nodes), p.limits.Nodes)
	case errors.As(err, &ended):
		if ended.Cause == worker.Killed {
			p.view.killed.Store(true)
		}
		d = endedDiagnostic(diag.Position{File: p.origin}, ended)
	default:
		p.view.giveUp(err)
		return built{}, nil
	}
	return built{}, &d
}

// copyNode copies a node tree. Aliases in the copy refer to nodes of the copy.
func copyNode(n *yaml.Node) *yaml.Node {
	return copyInto(n, map[*yaml.Node]*yaml.Node{})
}

// copyInto is copyNode with the copies that were already made, so that a node that is reached twice is
// copied once.
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

// inOrder sorts objects like kustomize does for kubectl: by type, and then by namespace and name. The order
// of types comes from a run of kustomize with one object of each type.
func inOrder(ctx context.Context, nodes []*yaml.Node) error {
	type key struct{ version, kind string }
	keyOf := func(n *yaml.Node) key { return key{text(n, "apiVersion"), text(n, "kind")} }
	ranks := map[key]int{}
	var stubs bytes.Buffer
	for _, n := range nodes {
		if k := keyOf(n); ranks[k] == 0 {
			if strings.ContainsAny(k.version, "_~") {
				return errWhole // kustomize treats some of these as equal
			}
			ranks[k] = 1
			fmt.Fprintf(&stubs, "---\napiVersion: %q\nkind: %q\nmetadata: {name: x}\n", k.version, k.kind)
		}
	}
	const kustomization, objects = "kustomization.yaml", "objects.yaml"
	sorted, err := worker.Run(ctx, &worker.Job{
		Root: ".", Small: true, Reads: 10, Bytes: 1 << 20, Nodes: 100 * len(ranks),
		Files: map[string][]byte{kustomization: []byte("resources: [" + objects + "]\n"), objects: stubs.Bytes()},
		Paths: map[string]worker.Path{".": {At: "."}, kustomization: {At: kustomization, File: true}, objects: {At: objects, File: true}},
	}, func(string) worker.Path { return worker.Path{Missing: true} })
	if fault := worker.Fault(""); errors.As(err, &fault) {
		return errWhole // the fault is about these stubs, not about the build
	}
	if err != nil {
		return err
	}
	for i, n := range sorted {
		ranks[keyOf(n)] = i
	}
	name := func(n *yaml.Node) string {
		return cmp.Or(text(n, "metadata", "namespace"), "~X") + "|" + cmp.Or(text(n, "metadata", "name"), "~N")
	}
	slices.SortStableFunc(nodes, func(a, b *yaml.Node) int {
		return cmp.Or(cmp.Compare(ranks[keyOf(a)], ranks[keyOf(b)]), cmp.Compare(name(a), name(b)))
	})
	return nil
}
