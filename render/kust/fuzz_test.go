package kust_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// FuzzBuild builds arbitrary small trees: a kustomization, one that it can use as a base or component, a file of objects and a patch. Every build
// ends soon, in objects or in diagnostics, and its origins answer.
func FuzzBuild(f *testing.F) {
	pool := poolHead + "spec:\n  n: ${N}\n  list: [{name: a, v: 1}, {name: b}]\n"
	for _, kustomization := range []string{
		"resources: [base]\npatches: [{path: patch.yaml}]\nnamePrefix: x-\n",
		"resources: [a.yaml]\ncomponents: [base]\n",
		"resources: [a.yaml]\npatches: [{path: patch.yaml, target: {kind: AWSMachinePool}}]\nimages: [{name: a, newTag: b}]\n",
		"resources: [a.yaml]\nreplacements:\n- source: {kind: AWSMachinePool, fieldPath: spec.n}\n  targets:\n  - select: {kind: AWSMachinePool}\n    fieldPaths: ['spec.list.[name=a].v']\n    options: {delimiter: '.', index: 1, create: true}\n",
		"configMapGenerator: [{name: g, files: [patch.yaml], literals: [a=b], behavior: merge}]\ngenerators: [patch.yaml]\ncrds: [a.yaml]\n",
		"transformers: [patch.yaml]\nresources: [a.yaml]\nlabels: [{pairs: {a: b}, includeSelectors: true}]\nreplicas: [{name: web, count: 3}]\n",
		"patchesStrategicMerge: [patch.yaml]\npatchesJson6902: [{target: {kind: AWSMachinePool, name: web, group: infrastructure.cluster.x-k8s.io, version: v1beta2}, path: patch.yaml}]\nbases: [base]\ncommonLabels: {a: b}\n",
		"resources: [a.yaml]\nconfigurations: [patch.yaml]\nsortOptions: {order: fifo}\nbuildMetadata: [originAnnotations, transformerAnnotations, managedByLabel]\n",
	} {
		for _, patch := range []string{
			poolHead + "spec:\n  $patch: replace\n  n: null\n",
			"- {op: add, path: /spec/list/-, value: {name: c}}\n- {op: test, path: /spec/n, value: 1}\n",
			"apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: a}\nprefix: y\nfieldSpecs: [{path: metadata/name}]\n",
			"nameReference:\n- kind: AWSMachinePool\n  fieldSpecs: [{path: spec/n, kind: AWSMachinePool}]\n",
		} {
			f.Add(kustomization, "resources: [a.yaml]\n", pool, patch)
			f.Add(kustomization, "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nnameSuffix: -s\n", pool+"data: &x {a: &y [b]}\nmore: {<<: *x, c: *y}\n", patch)
		}
	}
	f.Fuzz(func(t *testing.T, kustomization, base, objects, patch string) {
		if len(kustomization)+len(base)+len(objects)+len(patch) > 64<<10 {
			return
		}
		m := tree.Map{
			"kustomization.yaml": kustomization, "a.yaml": objects, "patch.yaml": patch,
			"base/kustomization.yaml": base, "base/a.yaml": objects,
		}
		start := cpuTime(t)
		r, err := kust.Build(context.Background(), m, ".", kust.Options{
			Vars:   map[string]string{"N": "1"},
			Strict: func(intent.ObjectRef) bool { return true },
			Limits: kust.Limits{Files: 200, Nodes: 10_000, TotalBytes: 1 << 20},
		})
		if err != nil {
			t.Fatalf("a tree in memory can always be read: %v", err)
		}
		if len(r.Objects) > 0 && r.Diags.HasErrors() {
			t.Fatalf("objects beside errors: %v", r.Diags)
		}
		asked := 0
		for _, o := range r.Objects {
			eachScalar(o.Node, nil, func(p intent.Path, _ *yaml.Node) {
				if asked++; asked > 20 {
					return
				}
				if at, ok := r.Origin(o.Ref, p); ok && (m[at.File] == "" || at.Line == 0) {
					t.Fatalf("origin of %s at %v, which does not exist", p, at)
				}
				r.Near(o.Ref, p)
			})
		}
		r.YAML()
		if same, err := r.Reads.Same(m); !same || err != nil {
			t.Fatalf("the tree is not the same as itself: %v %v", same, err)
		}
		if took := cpuTime(t) - start; took > 20*time.Second {
			t.Fatalf("took %s of CPU", took)
		}
	})
}

// cpuTime is what the process has used, which says more than a clock on a machine
// that is shared.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
