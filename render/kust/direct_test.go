package kust_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// What an overlay in batches tells of its fields from their documents alone is what the marked
// build of the whole tells, whatever else could have set them.
func TestADocumentTellsNoMoreThanItKnows(t *testing.T) {
	const apiVersion = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\n"
	var pools strings.Builder
	for i := range 9 {
		fmt.Fprintf(&pools, "---\n%skind: AWSMachinePool\nmetadata: {name: n%d, labels: {l: x}}\nspec: {min: 1, max: 2, tags: {a: b, p: x}, list: [{name: u, v: p-u}, x], ref: {kind: AWSMachinePool, name: n%d}, image: 'img:1', selector: {matchLabels: {l: x}}, template: {metadata: {labels: {l: x}, annotations: {a: x}}}, none: null, namespace: ns}\n", apiVersion, i, (i+1)%9)
	}
	all := pools.String()
	kustomization := func(text string) tree.Map {
		return tree.Map{"top/kustomization.yaml": text, "base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": all, "top/own.yaml": all}
	}
	with := func(m tree.Map, more ...string) tree.Map {
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	const base = "resources: [../base]\n"
	inline := func(target, patch string) string {
		return base + "patches:\n- target: {" + target + "}\n  patch: '" + patch + "'\n"
	}
	const replace = `[{"op": "replace", "path": "/spec/min", "value": 1}]` // what is there already
	batched := 0
	for name, m := range map[string]tree.Map{
		"nothing":              kustomization(base),
		"a name by regex":      kustomization(inline("name: \"n[1-3]\"", replace)),
		"a kind by regex":      kustomization(inline("kind: AWS.*", replace)),
		"a dot in the name":    kustomization(inline("name: n.", replace)),
		"a group":              kustomization(inline("group: infrastructure.cluster.x-k8s.io", replace)),
		"a version":            kustomization(inline("version: v1beta2", replace)),
		"labels":               kustomization(inline("labelSelector: l=x", replace)),
		"labels and a name":    kustomization(inline("name: n1, labelSelector: l=x", replace)),
		"a namespace":          kustomization(inline("namespace: ns", replace) + "namespace: ns\n"),
		"any":                  kustomization(inline("name: .*", replace)),
		"another kind":         kustomization(inline("kind: Other", replace)),
		"a kind in lower case": kustomization(inline("kind: awsmachinepool", replace)),
		"adds to a list":       kustomization(inline("name: n1", `[{"op": "add", "path": "/spec/list/0", "value": {"name": "u", "v": "p-u"}}]`)),
		"tests":                kustomization(inline("name: n2", `[{"op": "test", "path": "/spec/min", "value": 1}, {"op": "copy", "from": "/spec/min", "path": "/spec/max"}]`)),
		"merges the same":      kustomization(base + "patches:\n- patch: '{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, metadata: {name: n3}, spec: {min: 1, tags: {a: b}}}'\n"),
		"by the new name":      kustomization("namePrefix: q-\nresources: [../mid]\npatches:\n- target: {name: p-n3}\n  patch: '" + replace + "'\n"),
		"prefixes":             kustomization("namePrefix: q-\nresources: [../mid]\n"),
		"prefix and suffix":    kustomization("namePrefix: p-\nnameSuffix: -u\nnamespace: ns\n" + base),
		"references":           with(kustomization("namePrefix: p-\nconfigurations: [c.yaml]\n"+base), "top/c.yaml", "nameReference: [{kind: AWSMachinePool, fieldSpecs: [{kind: AWSMachinePool, path: spec/ref/name}, {path: spec/tags/p}]}]\n"),
		"prefix of a field":    with(kustomization("namePrefix: p-\nconfigurations: [c.yaml]\n"+base), "top/c.yaml", "namePrefix: [{kind: AWSMachinePool, path: spec/tags/a}]\n"),
		"labels everywhere":    kustomization("commonLabels: {l: x}\ncommonAnnotations: {a: x}\n" + base),
		"labels in templates":  kustomization("labels: [{pairs: {l: x}, includeSelectors: true, includeTemplates: true}]\n" + base),
		"labels in fields":     kustomization("labels: [{pairs: {p: x}, fields: [{path: spec/tags, create: true}]}]\n" + base),
		"images":               kustomization("images: [{name: img, newTag: '1'}]\n" + base),
		"a component":          with(kustomization(base+"components: [../c]\n"), "c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- target: {kind: AWSMachinePool, name: n1}\n  patch: '"+replace+"'\n"),
		"a component's labels": with(kustomization(base+"components: [../c]\n"), "c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: c-\ncommonLabels: {l: x}\n"),
		"a component above":    with(kustomization("resources: [../mid]\ncomponents: [../c]\n"), "c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- target: {name: p-n.}\n  patch: '"+replace+"'\n"),
		"anchors":              with(kustomization(base), "base/a.yaml", strings.ReplaceAll(strings.Replace(all, "tags: {a: b,", "tags: &t {a: b,", 1), "none: null", "none: &n x, more: *n")),
		"merge keys":           with(kustomization(base), "base/a.yaml", strings.ReplaceAll(all, "template: {", "m: &m {z: 1, y: 2}, merged: {<<: *m, y: 3}, template: {")),
		"twice in two files":   with(kustomization("namePrefix: p-\nresources: [../base, ../other]\n"), "other/kustomization.yaml", "nameSuffix: -o\nresources: [a.yaml]\n", "other/a.yaml", all),
		"texts":                with(kustomization(base), "base/a.yaml", strings.ReplaceAll(all, "none: null", "none: 0x10, t: \"a\\tb\", yes: 1e3, 'on': 010, o: ~, e: '', k: {}, z: [], 1: one, true: two, long: \"first\n  second\"")),
		"replacements":         kustomization(base + "replacements: [{source: {kind: AWSMachinePool, name: n1, fieldPath: spec.min}, targets: [{select: {kind: AWSMachinePool}, fieldPaths: [spec.min]}]}]\n"),
		"deleted":              kustomization(base + "patches:\n- patch: '{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, metadata: {name: n3}, $patch: delete}'\n"),
		"CRLF":                 with(kustomization(base), "base/a.yaml", strings.ReplaceAll(all, "\n", "\r\n")),
	} {
		m["mid/kustomization.yaml"] = "namePrefix: p-\nresources: [../base]\n"
		build := func(batch int) *kust.Result {
			r, err := kust.Build(t.Context(), m, "top", kust.Options{Limits: kust.Limits{Batch: batch}})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		whole, parts := build(alone), build(3)
		if got, want := written(t, parts), written(t, whole); got != want || len(whole.Objects) < 8 {
			t.Errorf("%s: %v\n%s", name, whole.Diags, cmp.Diff(want, got))
			continue
		}
		if n, _ := kust.InBatches(parts); n > 1 {
			batched++
		}
		for _, o := range whole.Objects {
			eachField(o.Node, nil, func(p intent.Path) {
				for kind, ask := range map[string]func(*kust.Result) (diag.Position, bool){
					"value": func(r *kust.Result) (diag.Position, bool) { return r.Origin(o.Ref, p) },
					"key":   func(r *kust.Result) (diag.Position, bool) { return r.KeyOrigin(o.Ref, p) },
				} {
					want, known := ask(whole)
					if got, ok := ask(parts); (got != want || ok != known) && (known || name != "tests") { // no test may see a mark, whichever pool it is for
						t.Errorf("%s: %s of %s %s: %v %v, want %v %v", name, kind, o.Ref, p, got, ok, want, known)
					}
				}
			})
		}
	}
	if batched < 25 {
		t.Errorf("%d were built in batches", batched)
	}
}
