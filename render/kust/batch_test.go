package kust_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

const alone = 1 << 20 // objects in a batch: all

// Built in batches, an overlay gives the same objects in the same order, with the same
// findings and origins, as built as a whole.
func TestBatchesProperty(t *testing.T) {
	apart, sure, failed := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := drawMany(t)
		whole, err := kust.Build(context.Background(), m, "top", kust.Options{Limits: kust.Limits{Batch: alone}})
		if err != nil {
			t.Fatal(err)
		}
		parts, err := kust.Build(context.Background(), m, "top", kust.Options{Limits: kust.Limits{Batch: rapid.IntRange(2, 6).Draw(t, "batch")}})
		if err != nil {
			t.Fatal(err)
		}
		if whole.Objects == nil {
			failed++
		}
		n, err := kust.InBatches(parts)
		if n > 1 {
			if apart++; err == nil {
				sure++
			}
		}
		if whole.Objects == nil && len(whole.Diags) == 1 && len(parts.Diags) == 1 && parts.Diags[0].Code == whole.Diags[0].Code {
			return // of several faults kustomize names one by chance
		}
		if got, want := printDiags(parts.Diags), printDiags(whole.Diags); got != want {
			t.Fatalf("findings:\n%s\nwant:\n%s\n%v", got, want, m)
		}
		if got, want := written(t, parts), written(t, whole); got != want {
			t.Fatalf("in %d batches (%v):\n%s\nas a whole:\n%s\n%v", n, err, got, want, m)
		}
		if rapid.IntRange(0, 4).Draw(t, "origins") > 0 {
			return
		}
		for _, o := range whole.Objects {
			eachField(o.Node, nil, func(p intent.Path) {
				for name, ask := range map[string]func(*kust.Result) (diag.Position, bool){
					"value": func(r *kust.Result) (diag.Position, bool) { return r.Origin(o.Ref, p) },
					"key":   func(r *kust.Result) (diag.Position, bool) { return r.KeyOrigin(o.Ref, p) },
					"near":  func(r *kust.Result) (diag.Position, bool) { return r.Near(o.Ref, p.Join("missing")) },
				} {
					want, known := ask(whole)
					// A batch, or a document alone, may tell where the marks fail the whole.
					if got, ok := ask(parts); (got != want || ok != known) && (known || kust.Traced(whole)) {
						t.Fatalf("%s of %s %s: %v %v, want %v %v\n%v", name, o.Ref, p, got, ok, want, known, m)
					}
				}
			})
		}
	})
	if sure == 0 {
		t.Error("none was built in batches")
	}
	t.Logf("%d were cut, %d of them built in batches, %d failed", apart, sure, failed)
}

// Two objects of different batches that get the same name are a fault there too.
func TestBatchesKnowTheSameObject(t *testing.T) {
	object := func(version, kind, name, namespace string) string {
		return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: '%s'}\n", version, kind, name, namespace)
	}
	for name, two := range map[string][2]string{ // both become p-s
		"equal":                     {object("v1", "ConfigMap", "s", "x"), object("v1", "ConfigMap", "p", "x")},
		"the default namespace":     {object("v1", "ConfigMap", "s", ""), object("v1", "ConfigMap", "p", "default")},
		"no namespace at all":       {object("v1", "PersistentVolume", "s", "x"), object("v1", "PersistentVolume", "p", "y")},
		"another namespace":         {object("v1", "ConfigMap", "s", "x"), object("v1", "ConfigMap", "p", "y")},
		"another group of the kind": {object("a.b/v1", "Cluster", "s", "x"), object("c.d/v1", "Cluster", "p", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			text := two[0]
			for i := range 12 {
				text += object("v1", "Secret", fmt.Sprintf("s%d", i), "x")
			}
			m := tree.Map{
				"kustomization.yaml": "resources: [one, two]\n", "one/a.yaml": text, "two/b.yaml": two[1],
				"one/kustomization.yaml": "namePrefix: p-\nresources: [a.yaml]\n", "two/kustomization.yaml": "nameSuffix: -s\nresources: [b.yaml]\n",
			}
			var found [2]string
			for i, batch := range []int{2, alone} {
				r, err := kust.Build(t.Context(), m, ".", kust.Options{Limits: kust.Limits{Batch: batch}})
				if err != nil {
					t.Fatal(err)
				}
				found[i] = fmt.Sprint(len(r.Objects), printDiags(r.Diags))
			}
			if found[0] != found[1] {
				t.Errorf("in batches:\n%s\nas a whole:\n%s", found[0], found[1])
			}
		})
	}
}

// Of a build in batches, an object that no patch is for answers by itself, and one that is
// patched costs the marked build of its batch.
func TestOriginsOfBatchesCostLittle(t *testing.T) {
	m := tree.Map{
		"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": "",
		"top/kustomization.yaml": "resources: [../base]\nnamePrefix: p-\nnamespace: x\nlabels: [{pairs: {l: b}}]\npatches: [{path: patch.yaml}]\n",
		"top/patch.yaml":         "apiVersion: a.cluster.x-k8s.io/v1\nkind: Pool\nmetadata: {name: n20}\nspec: {size: 4}\n",
	}
	for i := range 40 {
		m["base/a.yaml"] += fmt.Sprintf("---\napiVersion: a.cluster.x-k8s.io/v1\nkind: Pool\nmetadata: {name: n%d}\nspec:\n  size: 3\n", i)
	}
	r, err := kust.Build(t.Context(), m, "top", kust.Options{Limits: kust.Limits{Batch: 10}})
	if err != nil || r.Diags != nil {
		t.Fatal(err, r.Diags)
	}
	for i, want := range []struct {
		name    string
		path    intent.Path
		at      diag.Position
		whole   bool
		batches int
	}{
		{"p-n7", intent.Path{"spec", "size"}, diag.Position{File: "base/a.yaml", Line: 48, Column: 9}, false, 0},
		{"p-n8", intent.Path{"spec"}, diag.Position{File: "base/a.yaml", Line: 53, Column: 1}, false, 0},
		{"p-n20", intent.Path{"spec", "size"}, diag.Position{File: "top/patch.yaml", Line: 4, Column: 14}, false, 1},
		{"p-n21", intent.Path{"metadata", "labels", "l"}, diag.Position{File: "top/kustomization.yaml", Line: 4, Column: 22}, false, 1},
		{"p-n39", intent.Path{"metadata", "labels", "l"}, diag.Position{File: "top/kustomization.yaml", Line: 4, Column: 22}, false, 2},
	} {
		at, _ := r.Origin(intent.ObjectRef{APIVersion: "a.cluster.x-k8s.io/v1", Kind: "Pool", Namespace: "x", Name: want.name}, want.path)
		if whole, batches := kust.MarkedBuilds(r); at != want.at || whole != want.whole || batches != want.batches {
			t.Errorf("%d: %v after marked builds of all (%v) and %d batches, want %v after %v and %d", i, at, whole, batches, want.at, want.whole, want.batches)
		}
	}
}

// eachField visits the fields and items at and below a node.
func eachField(n *yaml.Node, p intent.Path, visit func(intent.Path)) {
	visit(p)
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			eachField(c, p.Join(intent.Index(i)), visit)
		case i%2 == 1:
			eachField(c, p.Join(n.Content[i-1].Value), visit)
		}
	}
}

func written(t interface{ Fatal(...any) }, r *kust.Result) string {
	var b strings.Builder
	for _, o := range r.Objects {
		out, err := yaml.Marshal(o.Node)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n" + string(out))
	}
	return b.String()
}

// drawMany draws an overlay over some directories of objects that refer to each other,
// with patches of every form.
func drawMany(t *rapid.T) tree.Map {
	m := tree.Map{}
	pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	often := func(what string) bool { return rapid.IntRange(0, 3).Draw(t, what) == 0 }
	names := []string{"a", "b", "c", "d", "e", "f", "g", "web", "web-1", "p-a", "p-b", "a-s", "default", "x"}
	kinds := []string{"ConfigMap", "ServiceAccount", "Deployment", "AWSMachinePool", "RoleBinding"}
	if often("namespaces") {
		kinds = append(kinds, "Namespace")
	}
	type object struct{ kind, name string }
	versions := map[string]string{"ConfigMap": "v1", "ServiceAccount": "v1", "Namespace": "v1", "Deployment": "apps/v1", "AWSMachinePool": "infrastructure.cluster.x-k8s.io/v1beta2", "RoleBinding": "rbac.authorization.k8s.io/v1"}
	head := func(o object) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", versions[o.kind], o.kind, o.name)
	}
	body := func(o object) string {
		name := pick("mentioned", names...)
		switch o.kind {
		case "ConfigMap":
			return "data: {a: " + name + "}\n"
		case "Deployment":
			return fmt.Sprintf("spec:\n  template:\n    spec:\n      serviceAccountName: %s\n      containers: [{name: c, image: img, envFrom: [{configMapRef: {name: %s}}]}]\n", name, pick("map", names...))
		case "RoleBinding":
			return "subjects: [{kind: ServiceAccount, name: " + name + "}]\nroleRef: {kind: ClusterRole, name: r, apiGroup: rbac.authorization.k8s.io}\n"
		case "AWSMachinePool":
			return "spec: {maxSize: 3, other: " + name + pick("more", "", ", list: [{a: 1, b: "+name+"}, x], none: {}", ", empty: null, list: [null, {a: x}], deep: {er: {a: 'it', b: 2}}",
				", c: &c {a: 1, b: [x]}, d: *c", ", $patchy: {a: 1}, text: \"a\\nb\"") + "}\n"
		default:
			return ""
		}
	}
	layer := func(dir string, own []object) string {
		var b strings.Builder
		for _, f := range []string{"namePrefix: p-", "nameSuffix: -s", "namespace: " + pick("ns", "default", "x"), "commonAnnotations: {k: a}", "labels: [{pairs: {l: b}, includeSelectors: true}]", "images: [{name: img, newTag: '2'}]"} {
			if often("field") {
				b.WriteString(f + "\n")
			}
		}
		if often("configuration") {
			b.WriteString("configurations: [names.yaml]\n")
			m[dir+"/names.yaml"] = "nameReference:\n- kind: " + pick("referred", kinds...) + "\n  fieldSpecs: [{kind: AWSMachinePool, path: " + pick("at", "spec/other", "spec/other", "metadata/annotations/n", "metadata/name") + "}]\n"
		}
		var patches []string
		for i := range rapid.IntRange(0, 3).Draw(t, "patches") {
			if len(own) == 0 {
				break
			}
			o := rapid.SampledFrom(own).Draw(t, "patched")
			text := head(o) + body(o)
			switch pick("form", "file", "two", "inline", "named", "kind", "regexp", "json", "label") {
			case "two":
				other := rapid.SampledFrom(own).Draw(t, "other")
				text += "---\n" + head(other) + body(other)
				fallthrough
			case "file":
				f := fmt.Sprintf("patch-%d.yaml", i)
				m[dir+"/"+f] = text
				patches = append(patches, "- path: "+f)
			case "inline":
				patches = append(patches, "- patch: |\n    "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    "))
			case "named":
				patches = append(patches, fmt.Sprintf("- patch: '{apiVersion: v1, kind: any, metadata: {name: any, annotations: {n: %s}}}'\n  target: {name: %s, kind: %s}", pick("says", names...), o.name, o.kind))
			case "kind":
				patches = append(patches, fmt.Sprintf("- patch: '- {op: add, path: /metadata/labels, value: {q: %s}}'\n  target: {kind: %s}", pick("says", names...), o.kind))
			case "regexp":
				patches = append(patches, fmt.Sprintf("- patch: '- {op: add, path: /metadata/annotations, value: {q: w}}'\n  target: {name: '%s.*'}", o.name))
			case "json":
				patches = append(patches, fmt.Sprintf("- patch: '- {op: add, path: %s, value: %s}'\n  target: {kind: %s, name: %s}", pick("path", "/data/a", "/spec/other", "/metadata/name"), pick("value", names...), o.kind, o.name))
			case "label":
				patches = append(patches, "- patch: '{apiVersion: v1, kind: any, metadata: {name: any, annotations: {n: x}}}'\n  target: {labelSelector: l=b}")
			}
		}
		if len(patches) > 0 {
			b.WriteString("patches:\n" + strings.Join(patches, "\n") + "\n")
		}
		return b.String()
	}
	objects := func(dir string, taken map[object]bool) (refs []string, own []object) {
		for f := range rapid.IntRange(1, 3).Draw(t, "files") {
			file := fmt.Sprintf("objects-%d.yaml", f)
			text := pick("head", "", "# a comment\n", "---\n")
			for range rapid.IntRange(2, 8).Draw(t, "objects") {
				o := object{pick("kind", kinds...), pick("name", names...)}
				if taken[o] && rapid.IntRange(0, 300).Draw(t, "again") > 0 {
					continue
				}
				taken[o] = true
				own = append(own, o)
				text += "---\n" + pick("comment", "", "# of it\n") + head(o) + body(o)
			}
			m[dir+"/"+file] = text
			refs = append(refs, file)
		}
		return refs, own
	}
	var refs []string
	all := []object{}
	taken := map[object]bool{}
	for i := range rapid.IntRange(1, 3).Draw(t, "directories") {
		dir := fmt.Sprintf("base%d", i)
		if often("own names") {
			taken = map[object]bool{}
		}
		files, own := objects(dir, taken)
		m[dir+"/kustomization.yaml"] = "resources: [" + strings.Join(files, ", ") + "]\n" + layer(dir, own)
		refs, all = append(refs, "../"+dir), append(all, own...)
	}
	if often("files beside") {
		files, own := objects("top", taken)
		refs, all = append(files, refs...), append(all, own...)
	}
	top := "resources: [" + strings.Join(refs, ", ") + "]\n"
	if often("component") {
		text := "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
		own := all
		if often("that adds") {
			files, added := objects("component", taken)
			text += "resources: [" + strings.Join(files, ", ") + "]\n"
			own = append(all[:len(all):len(all)], added...)
		}
		m["component/kustomization.yaml"] = text + layer("component", own)
		top += "components: [../component]\n"
	}
	m["top/kustomization.yaml"] = top + layer("top", all)
	return m
}

// A configuration of one directory counts for what another one adds, in every batch.
func TestBatchesCarryConfigurations(t *testing.T) {
	files := tree.Map{
		"top/kustomization.yaml":   "namePrefix: eu-\nresources: [../pools, ../names]\n",
		"names/kustomization.yaml": "configurations: [names.yaml]\nresources: [one.yaml]\n",
		"names/one.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n",
	}
	for p, content := range renamedPools(30) {
		switch dir, file := path.Split(p); {
		case file == "names.yaml":
			files["names/names.yaml"] = content
		case dir == "base/":
			files["pools/"+file] = strings.Replace(content, "configurations: [names.yaml]\n", "", 1)
		}
	}
	var printed [2]string
	for i, batch := range []int{4, alone} {
		r, err := kust.Build(t.Context(), files, "top", kust.Options{Limits: kust.Limits{Batch: batch}})
		if err != nil || len(r.Objects) != 61 {
			t.Fatal(err, r.Diags)
		}
		if n, err := kust.InBatches(r); batch != alone && (n < 2 || err != nil) {
			t.Errorf("%d batches, %v", n, err)
		}
		printed[i] = string(r.Raw())
	}
	if printed[0] != printed[1] || strings.Count(printed[0], "name: eu-web-") != 90 {
		t.Errorf("in batches:\n%s", printed[0])
	}
}
