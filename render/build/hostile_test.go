package build_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/build"
	"github.com/weir-gitops/weir/render/tree"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// noNetwork fails the test at the first request of the process, and takes away
// the programs that kustomize would start.
func noNetwork(t *testing.T) {
	t.Helper()
	was := http.DefaultTransport
	http.DefaultTransport = roundTripper(func(r *http.Request) (*http.Response, error) {
		t.Errorf("a build asked for %s", r.URL)
		return nil, errors.New("no network")
	})
	t.Cleanup(func() { http.DefaultTransport = was })
	dir := t.TempDir()
	script := "#!/bin/sh\necho ran >> " + dir + "/ran\nexit 1\n"
	for _, name := range []string{"git", "helm", "docker"} {
		if err := os.WriteFile(dir+"/"+name, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Cleanup(func() {
		if _, err := os.Stat(dir + "/ran"); !errors.Is(err, fs.ErrNotExist) {
			t.Error("a build started a program")
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRemoteReferencesAreRefused(t *testing.T) {
	noNetwork(t)
	forms := []string{
		"http://127.0.0.1:1/x.yaml", "HTTP://127.0.0.1:1/x.yaml", "https://127.0.0.1:1/a/b?ref=main", "https:x/y",
		"git::https://127.0.0.1:1/a/b", "ssh://git@127.0.0.1/a/b", "git@127.0.0.1:a/b.git", "git@127.0.0.1/a/b",
		"github.com/a/b", "GitHub.com:a/b", "file:///etc", "oci://127.0.0.1/a",
	}
	fields := []string{
		"resources: [%s]", "Resources: [%s]", "bases: [%s]", "components: [%s]", "crds: [%s]", "configurations: [%s]",
		"generators: [%s]", "transformers: [%s]", "validators: [%s]", "patches: [{path: %s}]",
		"patchesStrategicMerge: [%s]", "patchesJson6902: [{target: {kind: A, name: a}, path: %s}]", "replacements: [{path: %s}]",
		"configMapGenerator: [{name: a, files: [%s]}]", "configMapGenerator: [{name: a, files: [\"key=%s\"]}]",
		"configMapGenerator: [{name: a, envs: [%s]}]", "secretGenerator: [{name: a, env: %s}]", "secretGenerator: [{name: a, files: [%s]}]",
		"transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: a}, path: \"%s\"}']",
		"transformers: ['{apiVersion: builtin, kind: ReplacementTransformer, metadata: {name: a}, replacements: [{path: \"%s\"}]}']",
		"generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: a}, files: [\"k=%s\"]}']",
		"transformers: ['{apiVersion: builtin, kind: PatchStrategicMergeTransformer, metadata: {name: a}, paths: [\"%s\"]}']",
	}
	for _, field := range fields {
		for _, form := range forms {
			quoted := form
			if !strings.Contains(field, `"`) {
				quoted = `"` + form + `"`
			}
			text := fmt.Sprintf(field, quoted) + "\n"
			trees := map[string]tree.Map{
				"here":   {"kustomization.yaml": text},
				"nested": {"kustomization.yaml": "resources: [base]\n", "base/kustomization.yaml": text},
			}
			for where, m := range trees {
				r, err := build.Build(context.Background(), m, ".", build.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !hasCode(r, "remote-reference") {
					t.Errorf("%s, %s: %s", text, where, printDiags(r.Diags))
				}
				for _, d := range r.Diags {
					if d.Code == "remote-reference" && d.Line == 0 {
						t.Errorf("%s: no line: %s", text, d)
					}
				}
			}
		}
	}
}

func hasCode(r *build.Result, code string) bool {
	for _, d := range r.Diags {
		if d.Code == code {
			return true
		}
	}
	return false
}

func TestHostileTrees(t *testing.T) {
	noNetwork(t)
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 9; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	base := tree.Map{"kustomization.yaml": "resources: [a.yaml]\n"}
	with := func(m tree.Map) tree.Map {
		out := tree.Map{}
		for k, v := range base {
			out[k] = v
		}
		for k, v := range m {
			out[k] = v
		}
		return out
	}
	diamond := tree.Map{"kustomization.yaml": "resources: [d0]\n"}
	for i := range 40 {
		for _, side := range []string{"l", "r"} {
			diamond[fmt.Sprintf("d%d/%s/kustomization.yaml", i, side)] = fmt.Sprintf("namePrefix: %s\nresources: [../../d%d]\n", side, i+1)
		}
		diamond[fmt.Sprintf("d%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../e%d/l, ../e%d/r]\n", i, i)
		for _, side := range []string{"l", "r"} {
			diamond[fmt.Sprintf("e%d/%s/kustomization.yaml", i, side)] = diamond[fmt.Sprintf("d%d/%s/kustomization.yaml", i, side)]
		}
	}
	diamond["d40/kustomization.yaml"] = "resources: [a.yaml]\n"
	diamond["d40/a.yaml"] = configMap
	inline := func(doc string) tree.Map {
		return tree.Map{"kustomization.yaml": "patches:\n- patch: |\n" + indent(doc)}
	}
	cases := []struct {
		name string
		tree tree.Map
		code string
	}{
		{"alias bomb in a resource", with(tree.Map{"a.yaml": configMap + bomb}), "yaml-alias"},
		{"alias bomb in the kustomization", tree.Map{"kustomization.yaml": bomb + "resources: []\n"}, "yaml-alias"},
		{"alias bomb in an inline patch", inline(bomb), "yaml-alias"},
		{"alias of itself", with(tree.Map{"a.yaml": configMap + "data: &x\n  a: *x\n"}), "yaml-alias"},
		{"alias of itself through a merge", with(tree.Map{"a.yaml": configMap + "data: &x\n  <<: *x\n"}), "yaml-alias"},
		{"alias of itself inline", inline("data: &x\n  a: *x\n"), "yaml-alias"},
		{"deep nesting", with(tree.Map{"a.yaml": configMap + "data: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n"}), "too-large"},
		{"deeper nesting than the parser takes", with(tree.Map{"a.yaml": configMap + "data: " + strings.Repeat("[", 200_000)}), "yaml-syntax"},
		{"deep nesting through aliases", with(tree.Map{"a.yaml": configMap + deepAliases()}), "too-large"},
		{"a large file", with(tree.Map{"a.yaml": configMap + "#" + strings.Repeat("x", 2<<20)}), "too-large"},
		{"bases included too often", diamond, "too-large"},
		{"a cycle of bases", tree.Map{"kustomization.yaml": "resources: [a]\n", "a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a]\n"}, "kustomization-cycle"},
		{"a parent as base", tree.Map{"kustomization.yaml": "resources: [a]\n", "a/kustomization.yaml": "resources: [..]\n"}, "kustomization-cycle"},
		{"a base of itself", tree.Map{"kustomization.yaml": "resources: [.]\n"}, "kustomization-cycle"},
		{"a path out of the tree", tree.Map{"kustomization.yaml": "resources: [../../../../etc]\n"}, "path-escape"},
		{"an absolute path", tree.Map{"kustomization.yaml": "resources: [/etc/passwd]\n"}, "path-escape"},
		{"a file above", tree.Map{"x/kustomization.yaml": "patches: [{path: ../a.yaml}]\n", "kustomization.yaml": "resources: [x]\n", "a.yaml": configMap}, "path-escape"},
		{"a symlink out of the tree", with(tree.Map{"a.yaml": "symlink:../../etc/passwd"}), "symlink-escape"},
		{"an absolute symlink", with(tree.Map{"a.yaml": "symlink:/etc/passwd"}), "symlink-escape"},
		{"a directory symlink out of the tree", tree.Map{"kustomization.yaml": "resources: [d/x]\n", "d": "symlink:.."}, "symlink-escape"},
		{"a symlink to itself", with(tree.Map{"a.yaml": "symlink:a.yaml"}), "bad-path"},
		{"a symlink to a file above", tree.Map{"kustomization.yaml": "resources: [x]\n", "x/kustomization.yaml": "resources: [a.yaml]\n", "x/a.yaml": "symlink:../a.yaml", "a.yaml": configMap}, "path-escape"},
		{"two kustomizations", with(tree.Map{"a.yaml": configMap, "Kustomization": "resources: [a.yaml]\n"}), "kustomization-duplicate"},
		{"helm", tree.Map{"kustomization.yaml": "helmCharts: [{name: x, repo: 'https://127.0.0.1:1'}]\n"}, "helm"},
		{"helm as a generator", tree.Map{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: x\n"}, "helm"},
		{"a program as generator", tree.Map{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: me/v1\nkind: Exec\nmetadata: {name: a}\n"}, "exec-plugin"},
		{"a container as transformer", tree.Map{"kustomization.yaml": "transformers: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: LabelTransformer\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: x}\n"}, "exec-plugin"},
		{"a list of programs", tree.Map{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: v1\nkind: List\nitems: [{apiVersion: me/v1, kind: Exec, metadata: {name: a}}]\n"}, "exec-plugin"},
		{"a directory of generators", tree.Map{"kustomization.yaml": "generators: [g]\n", "g/kustomization.yaml": "resources: []\n"}, "unsupported-field"},
		{"an own schema", tree.Map{"kustomization.yaml": "openapi: {path: https://127.0.0.1:1/x}\n"}, "unsupported-field"},
		{"vars", tree.Map{"kustomization.yaml": "vars: [{name: A, objref: {kind: A, name: a, apiVersion: v1}}]\n"}, "unsupported-field"},
		{"a field in two spellings", with(tree.Map{"kustomization.yaml": "resources: [a.yaml]\nReplacements: [{path: 'https://127.0.0.1:1/x'}]\nreplacements: [{}]\n", "a.yaml": configMap}), "duplicate-key"},
		{"an empty crds file", tree.Map{"kustomization.yaml": "crds: [c.json]\n", "c.json": ""}, "kustomization-invalid"},
		{"schemas in a circle", tree.Map{"kustomization.yaml": "crds: [c.yaml]\n", "c.yaml": "A: {Schema: {properties: {kind: {}, apiVersion: {}, metadata: {}, a: {$ref: A}}}}\n"}, "too-large"},
		{"a replacement that doubles a text", tree.Map{"kustomization.yaml": "resources: [a.yaml]\nreplacements:\n" + strings.Repeat("- {source: {kind: ConfigMap, fieldPath: data.a}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a], options: {delimiter: x, index: 99}}]}\n", 40), "a.yaml": configMap + "data: {a: b}\n"}, "too-large"},
		{"a replacement that doubles an object", tree.Map{"kustomization.yaml": "resources: [a.yaml]\nreplacements:\n" + strings.Repeat("- {source: {kind: ConfigMap, fieldPath: data}, targets: [{select: {name: a}, fieldPaths: [data.b, data.c], options: {create: true}}]}\n", 20), "a.yaml": configMap + "data: {a: b}\n"}, "too-large"},
		{"a JSON patch that doubles an object", with(tree.Map{"kustomization.yaml": "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n" + doubling(40), "a.yaml": configMap + "data: {a: b}\n"}), "build-failed"},
		{"a patch for very many objects", manyPatched(), "too-large"},
		{"a hidden document separator", with(tree.Map{"a.yaml": "a\n---# b\nc\n"}), "yaml-syntax"},
		{"an empty kustomization", tree.Map{"kustomization.yaml": ""}, "kustomization-invalid"},
		{"no kustomization", tree.Map{"a/b.txt": "x"}, "kustomization-missing"},
		{"a missing path", tree.Map{}, "kustomization-missing"},
		{"the same object twice", with(tree.Map{"a.yaml": configMap + "---\n" + configMap}), "build-failed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			r, err := build.Build(context.Background(), c.tree, ".", build.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("took %s", took)
			}
			if !hasCode(r, c.code) || r.Objects != nil {
				t.Errorf("want %s and no objects, got %d objects and\n%s", c.code, len(r.Objects), printDiags(r.Diags))
			}
			for _, d := range r.Diags {
				if strings.Contains(d.Summary+d.Detail, "/.repo") {
					t.Errorf("internal path in %s", d)
				}
			}
		})
	}
}

func deepAliases() string {
	s := "l0: &l0 [[[[[[[[[[x]]]]]]]]]]\n"
	for i := 1; i < 12; i++ {
		s += fmt.Sprintf("l%d: &l%d [[[[[[[[[[*l%d]]]]]]]]]]\n", i, i, i-1)
	}
	return s
}

func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "    - {op: copy, from: /data, path: /data/x%d}\n", i)
	}
	return b.String()
}

func manyPatched() tree.Map {
	var objects strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&objects, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\n", i)
	}
	return tree.Map{
		"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]\n", "a.yaml": objects.String(),
		"p.yaml": "- op: add\n  path: /data\n  value: {a: &x [" + strings.Repeat("y,", 1000) + "y], b: *x, c: *x, d: *x}\n",
	}
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ") + "\n"
}

func TestLimits(t *testing.T) {
	m := tree.Map{"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": configMap, "b.yaml": strings.ReplaceAll(configMap, "name: a", "name: b")}
	for name, c := range map[string]struct {
		lim  build.Limits
		code string
	}{
		"files":    {build.Limits{Files: 2}, "too-large"},
		"bytes":    {build.Limits{TotalBytes: 60}, "too-large"},
		"one file": {build.Limits{FileBytes: 40}, "too-large"},
		"objects":  {build.Limits{Objects: 1}, "too-large"},
		"depth":    {build.Limits{Depth: 1}, "too-large"},
		"time":     {build.Limits{Duration: time.Nanosecond}, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := build.Build(context.Background(), m, ".", build.Options{Limits: c.lim})
			if err != nil {
				t.Fatal(err)
			}
			if !hasCode(r, c.code) {
				t.Errorf("want %s, got\n%s", c.code, printDiags(r.Diags))
			}
		})
	}
}

// failing is a tree with an object missing.
type failing struct {
	tree.Map
	at string
}

var errMissingObject = errors.New("object not found")

func (f failing) ReadFile(p string) ([]byte, error) {
	if p == f.at {
		return nil, errMissingObject
	}
	return f.Map.ReadFile(p)
}

func (f failing) Lookup(p string) (tree.Entry, error) {
	if "look "+p == f.at {
		return tree.Entry{}, errMissingObject
	}
	return f.Map.Lookup(p)
}

// A tree that cannot be read must never look like one that holds less.
func TestUnreadableTreeIsAnError(t *testing.T) {
	m := tree.Map{"o/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [a.yaml]\n", "b/a.yaml": configMap}
	for _, at := range []string{"o/kustomization.yaml", "b/a.yaml", "look b", "look o/kustomization.yml", "look b/kustomization.yaml"} {
		r, err := build.Build(context.Background(), failing{m, at}, "o", build.Options{})
		if !errors.Is(err, errMissingObject) {
			t.Errorf("%s: got result %v and error %v", at, r, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := build.Build(ctx, m, "o", build.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got error %v", err)
	}
}
