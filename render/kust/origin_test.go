package kust_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// stack is a random pile of overlays over one object, with a model of which file
// set each field last.
type stack struct {
	tree  tree.Map
	top   string
	owner map[string]string // field -> file
	value map[string]string
	past  map[string][]string // field -> all that set it, as file=value
	name  string
}

const poolHead = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: web}\n"

func drawStack(t *rapid.T) stack {
	fields := []string{"a", "b", "c", "d", "e", "f"}
	s := stack{tree: tree.Map{}, owner: map[string]string{}, value: map[string]string{}, past: map[string][]string{}, name: "web"}
	n := 0
	set := func(file, field string) string {
		// Few different values, so that several places say the same.
		n++
		v := fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "value"))
		s.owner[field], s.value[field] = file, v
		s.past[field] = append(s.past[field], file+"="+v)
		return v
	}
	body := "spec:\n  nested:\n    zones: [x, y]\n"
	for _, f := range fields {
		body += "    " + f + ": " + set("base/pool.yaml", f) + "\n"
	}
	s.tree["base/pool.yaml"] = poolHead + body
	s.tree["base/kustomization.yaml"] = "resources: [pool.yaml]\n"
	s.top = "base"
	for layer := range rapid.IntRange(1, 4).Draw(t, "layers") {
		dir := fmt.Sprintf("o%d", layer)
		file := dir + "/kustomization.yaml"
		component := rapid.Bool().Draw(t, "component")
		k := fmt.Sprintf("resources: [../%s]\n", s.top)
		if component {
			s.tree[dir+"/kustomization.yaml"] = fmt.Sprintf("resources: [../%s]\ncomponents: [../c%d]\n", s.top, layer)
			k = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
			file = fmt.Sprintf("c%d/kustomization.yaml", layer)
		}
		s.top = dir
		at := strings.TrimSuffix(file, "kustomization.yaml")
		form := rapid.SampledFrom([]string{"merge file", "merge inline", "merge legacy", "json inline", "json file", "json legacy"}).Draw(t, "form")
		source := file
		if strings.HasSuffix(form, "file") {
			source = at + "patch.yaml"
		}
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(fields), 1, 3, rapid.ID[string]).Draw(t, "fields")
		slices.Sort(chosen)
		merge, ops := poolHead+"spec:\n  nested:\n", ""
		for _, f := range chosen {
			v := set(source, f)
			merge += "    " + f + ": " + v + "\n"
			ops += "- op: replace\n  path: /spec/nested/" + f + "\n  value: " + v + "\n"
		}
		target := "  target: {kind: AWSMachinePool, name: web}\n"
		switch form {
		case "merge file":
			k += "patches:\n- path: patch.yaml\n"
			s.tree[source] = merge
		case "merge inline":
			k += "patches:\n- patch: |\n" + indent(merge)
		case "merge legacy":
			k += "patchesStrategicMerge:\n- |\n" + indent(merge)
		case "json inline":
			k += "patches:\n- patch: |\n" + indent(ops) + target
		case "json file":
			k += "patches:\n- path: patch.yaml\n" + target
			s.tree[source] = ops
		case "json legacy":
			k += "patchesJson6902:\n- patch: |\n" + indent(ops) + strings.Replace(target, "kind:", "group: infrastructure.cluster.x-k8s.io, version: v1beta2, kind:", 1)
		}
		if !component && rapid.Bool().Draw(t, "prefix") {
			k += "namePrefix: p" + fmt.Sprint(layer) + "-\n"
			s.name = "p" + fmt.Sprint(layer) + "-" + s.name
		}
		s.tree[file] = k
	}
	return s
}

// In any pile of overlays a field's origin is the file that the model names, the text there is the field's value, and changing it changes the field.
func TestOriginProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStack(t)
		r, err := kust.Build(context.Background(), s.tree, s.top, kust.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Objects) != 1 {
			t.Fatalf("%s\n%v", printDiags(r.Diags), s.tree)
		}
		ref := r.Objects[0].Ref
		if ref.Name != s.name {
			t.Fatalf("name %s, want %s", ref.Name, s.name)
		}
		probed := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "changed")
		for field, file := range s.owner {
			p := intent.Path{"spec", "nested", field}
			at, ok := r.Origin(ref, p)
			if !ok || at.File != file {
				t.Fatalf("%s: origin %v (%v), want %s\n%s", field, at, ok, file, s.tree[at.File])
			}
			lines := strings.SplitAfter(s.tree[at.File], "\n")
			line := lines[at.Line-1]
			if !strings.HasPrefix(line[at.Column-1:], s.value[field]) {
				t.Fatalf("%s: at %v stands %q, want %s", field, at, line, s.value[field])
			}
			if field != probed {
				continue
			}
			checkChain(t, s, r, ref, field, at)
			lines[at.Line-1] = line[:at.Column-1] + "9" + line[at.Column-1:]
			changed := tree.Map{}
			for k, v := range s.tree {
				changed[k] = v
			}
			changed[at.File] = strings.Join(lines, "")
			again, err := kust.Build(context.Background(), changed, s.top, kust.Options{})
			if err != nil || len(again.Objects) != 1 {
				t.Fatalf("after the change: %v %v", err, again)
			}
			if got := find(again.Objects[0].Node, p...).Value; got != "9"+s.value[field] {
				t.Fatalf("%s: changing %v gave %s", field, at, got)
			}
		}
	})
}

// The chain of a field is what the model knows of its past.
func checkChain(t *rapid.T, s stack, r *kust.Result, ref intent.ObjectRef, field string, origin diag.Position) {
	chain, ok := r.Chain(ref, intent.Path{"spec", "nested", field})
	if !ok {
		t.Fatalf("%s has no chain", field)
	}
	var got []string
	for _, step := range chain {
		if step.How == kust.Unknown || step.Value == nil {
			t.Fatalf("%s: the chain %v holds what cannot be told\n%v", field, chain, s.tree)
		}
		got = append(got, step.File+"="+*step.Value)
	}
	if !slices.Equal(got, s.past[field]) {
		t.Fatalf("%s: chain %v, want %v\n%v", field, got, s.past[field], s.tree)
	}
	if last := chain[len(chain)-1].Position; last != origin {
		t.Fatalf("%s: the chain ends at %v, the origin is %v", field, last, origin)
	}
}

func mustBuild(t *testing.T, m tree.Map, path string, o kust.Options) *kust.Result {
	t.Helper()
	r, err := kust.Build(context.Background(), m, path, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Diags.HasErrors() {
		t.Fatal(printDiags(r.Diags))
	}
	return r
}

func TestOriginOfKeysAndMissingFields(t *testing.T) {
	m := tree.Map{
		"base/kustomization.yaml": "resources: [pool.yaml]\n",
		"base/pool.yaml":          poolHead + "spec:\n  wrong:\n    deep: {x: 1}\n  list:\n  - a: 1\n    b: 2\n  - a: 3\n  empty: {}\n",
		"o/kustomization.yaml":    "resources: [../base]\nnamePrefix: p-\npatches:\n- target: {kind: AWSMachinePool}\n  patch: |-\n    - op: add\n      path: /spec/added\n      value:\n        inner: {z: 2}\n    - op: add\n      path: /spec/list/-\n      value: {a: 4}\n    - op: copy\n      from: /spec/list/0/b\n      path: /spec/copied\n",
	}
	r := mustBuild(t, m, "o", kust.Options{})
	ref := r.Objects[0].Ref
	for _, c := range []struct{ path, origin, key, near string }{
		{"spec.wrong.deep.x", "base/pool.yaml:6:15", "base/pool.yaml:6:12", "base/pool.yaml:6:15"},
		{"spec.wrong.deep", "base/pool.yaml:6:5", "base/pool.yaml:6:5", "base/pool.yaml:6:5"},
		{"spec.wrong", "base/pool.yaml:5:3", "base/pool.yaml:5:3", "base/pool.yaml:5:3"},
		{"spec.list[0]", "base/pool.yaml:8:5", "base/pool.yaml:8:5", "base/pool.yaml:8:5"},
		{"spec.list[1].a", "base/pool.yaml:10:8", "base/pool.yaml:10:5", "base/pool.yaml:10:8"},
		{"spec.list[2].a", "o/kustomization.yaml:12:18", "o/kustomization.yaml:12:15", "o/kustomization.yaml:12:18"},
		{"spec.added.inner.z", "o/kustomization.yaml:9:20", "o/kustomization.yaml:9:17", "o/kustomization.yaml:9:20"},
		{"spec.added.inner", "o/kustomization.yaml:9:9", "o/kustomization.yaml:9:9", "o/kustomization.yaml:9:9"},
		{"spec.added", "o/kustomization.yaml:7:13", "o/kustomization.yaml:7:13", "o/kustomization.yaml:7:13"},
		{"spec.copied", "base/pool.yaml:9:8", "base/pool.yaml:9:8", "base/pool.yaml:9:8"},
		{"spec.empty", "", "", "base/pool.yaml:4:1"},
		{"spec.missing.more", "", "", "base/pool.yaml:4:1"},
		{"spec.wrong.missing", "", "", "base/pool.yaml:5:3"},
		{"nothing", "", "", "base/pool.yaml:1:1"},
	} {
		p, err := intent.ParsePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		origin, _ := r.Origin(ref, p)
		key, _ := r.KeyOrigin(ref, p)
		near, _ := r.Near(ref, p)
		if origin.String() != c.origin || key.String() != c.key || near.String() != c.near {
			t.Errorf("%s: got origin %q, key %q, near %q, want %q, %q, %q", c.path, origin, key, near, c.origin, c.key, c.near)
		}
	}
	if _, ok := r.Origin(intent.ObjectRef{Kind: "No"}, intent.Path{"kind"}); ok {
		t.Error("an object that does not exist has an origin")
	}
}

func TestRenamed(t *testing.T) {
	m := tree.Map{
		"base/kustomization.yaml": "resources: [pool.yaml]\nnameSuffix: -s\n",
		"base/pool.yaml":          strings.Replace(poolHead, "web", "\"${N}-web\"", 1),
		"o/kustomization.yaml":    "resources: [../base]\nnamePrefix: p-\n",
	}
	r := mustBuild(t, m, "o", kust.Options{Vars: map[string]string{"N": "1"}})
	if name, ok := r.Renamed("AWSMachinePool", "1-web"); name != "p-1-web-s" || !ok {
		t.Errorf("got %q %v", name, ok)
	}
	if name, ok := r.Renamed("AWSMachinePool", "other"); ok {
		t.Errorf("got %q for a name that is nowhere", name)
	}
	r = mustBuild(t, tree.Map{"a.yaml": poolHead}, "a.yaml", kust.Options{})
	if name, ok := r.Renamed("AWSMachinePool", "web"); ok {
		t.Errorf("got %q for an object that kept its name", name)
	}
}

func TestOriginIsSafeForConcurrentUse(t *testing.T) {
	g := readGolden(t, "testdata/overlay.txtar")
	r := mustBuild(t, g.tree, g.path, g.opts)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, o := range r.Objects {
				eachScalar(o.Node, nil, func(p intent.Path, _ *yaml.Node) { r.Origin(o.Ref, p) })
			}
			other, err := kust.Build(context.Background(), g.tree, g.path, g.opts)
			if err != nil || len(other.Objects) != len(r.Objects) {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
}
