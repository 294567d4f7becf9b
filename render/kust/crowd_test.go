package kust_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// crowds are builds with n of something, in one object.
func crowds() map[string]func(n int) tree.Map {
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	object := func(rest string) tree.Map {
		return tree.Map{"kustomization.yaml": "resources: [o.yaml]\n", "o.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n" + rest}
	}
	return map[string]func(n int) tree.Map{
		"keys": func(n int) tree.Map { return object("data:\n" + lines(n, "  k%d: v\n")) },
		"keys inside": func(n int) tree.Map {
			return object("data: {a: {" + strings.ReplaceAll(lines(n, "k%d: v,"), ":v", ": v") + "}}\n")
		},
		"labels":      func(n int) tree.Map { return object("  labels:\n" + lines(n, "    k%d: v\n")) },
		"annotations": func(n int) tree.Map { return object("  annotations:\n" + lines(n, "    k%d: v\n")) },
		"items":       func(n int) tree.Map { return object("list:\n" + lines(n, "- v%d\n")) },
		"mappings":    func(n int) tree.Map { return object("list:\n" + lines(n, "- {name: v%d}\n")) },
		"anchors":     func(n int) tree.Map { return object("list:\n" + lines(n, "- &a%d v\n")) },
		"aliases":     func(n int) tree.Map { return object("list:\n- &a v\n" + strings.Repeat("- *a\n", n)) },
		"variables":   func(n int) tree.Map { return object("list:\n" + lines(n, "- \"${V%d:-x}\"\n")) },
		"unset": func(n int) tree.Map {
			return object("data:\n  v: \"" + strings.TrimSpace(lines(n, "${V%d} ")) + "\"\n")
		},
		"open variables": func(n int) tree.Map { return object("data:\n  v: \"" + strings.Repeat("${V:-", n) + "\"\n") },
		"merges":         func(n int) tree.Map { return object("a: &a {k: v}\nlist:\n" + lines(n/3, "- {<<: *a, n: %d}\n")) },
		"merged": func(n int) tree.Map {
			return object("list:\n" + lines(n/3, "- &a%d {k%[1]d: v}\n") + "all: {<<: [" + strings.TrimSuffix(lines(n/3, "*a%d,"), ",") + "]}\n")
		},
		"documents": func(n int) tree.Map {
			m := object("")
			m["o.yaml"] += lines(n, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n")
			return m
		},
		"empty documents": func(n int) tree.Map {
			m := object("")
			m["o.yaml"] += strings.Repeat("---\n", n)
			return m
		},
		"findings": func(n int) tree.Map {
			return tree.Map{"kustomization.yaml": "resources:\n" + lines(n, "- absent%d.yaml\n")}
		},
		"patches": func(n int) tree.Map {
			m := tree.Map{"kustomization.yaml": "resources: [o.yaml]\npatches:\n" + lines(n/10, "- {path: p%d.yaml}\n")}
			for i := range n / 10 {
				m["o.yaml"] += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
				m[fmt.Sprintf("p%d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {a: b}\n", i)
			}
			return m
		},
		"literals": func(n int) tree.Map {
			return tree.Map{"kustomization.yaml": "configMapGenerator:\n- name: c\n  literals:\n" + lines(n, "  - k%d=v\n")}
		},
		"operations": func(n int) tree.Map {
			m := object("data: {a: b}\n")
			m["kustomization.yaml"] += "patches:\n- target: {kind: ConfigMap}\n  path: p.yaml\n"
			m["p.yaml"] = lines(n, "- {op: add, path: /data/k%d, value: v}\n")
			return m
		},
	}
}

// TestTimeGrowsWithSize builds the same with five times as many entries: the CPU time of
// weir's own process must not grow with the square of their number. TestManyKeys tests what
// weir refuses instead.
func TestTimeGrowsWithSize(t *testing.T) {
	const small, large, bound = 3_000, 15_000, 16 // a quadratic cost is 25 times as high
	for name, of := range crowds() {
		t.Run(name, func(t *testing.T) {
			took := func(n int) time.Duration {
				files, start := of(n), cpuTime(t)
				if _, err := kust.Build(t.Context(), files, ".", kust.Options{Strict: func(intent.ObjectRef) bool { return true }}); err != nil {
					t.Fatal(err)
				}
				return cpuTime(t) - start
			}
			a, b := max(took(small), 2*time.Millisecond), took(large)
			for range 2 { // other goroutines of the process may have used time
				if b > bound*a {
					a, b = max(a, took(small)), min(b, took(large))
				}
			}
			t.Logf("CPU time: %d take %s, %d take %s", small, a, large, b)
			if b > bound*a {
				t.Errorf("%d take %s, %d take %s", small, a, large, b)
			}
		})
	}
}

// TestManyKeys refuses mappings that would take long, in files and in what is built of them.
func TestManyKeys(t *testing.T) {
	keys := func(from, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "  k%d: v\n", from+i)
		}
		return b.String()
	}
	object := func(name, data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n" + data
	}
	for name, tc := range map[string]struct {
		files tree.Map
		code  string
	}{
		"as many as may be": {tree.Map{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": object("a", keys(0, 5000))}, ""},
		"one too many":      {tree.Map{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": object("a", keys(0, 5001))}, "too-large"},
		"many that are few": {tree.Map{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": object("a", keys(0, 1000)) + "---\n" + object("b", keys(0, 1000))}, ""},
		"three together":    {tree.Map{"kustomization.yaml": "resources: [a.yaml, b.yaml, c.yaml]\n", "a.yaml": object("a", keys(0, 5000)), "b.yaml": object("b", keys(0, 5000)), "c.yaml": object("c", keys(0, 5000))}, "too-large"},
		"made by a patch":   {tree.Map{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: b.yaml}]\n", "a.yaml": object("a", keys(0, 3000)), "b.yaml": object("a", keys(3000, 3000))}, "too-large"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := kust.Build(t.Context(), tc.files, ".", kust.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := codesOf(r); got != tc.code {
				t.Errorf("%v", r.Diags)
			}
		})
	}
}

// TestManyPatchesAndGenerators refuses kustomizations that would take long.
func TestManyPatchesAndGenerators(t *testing.T) {
	const patch = "- target: {kind: ConfigMap}\n  patch: '- {op: add, path: /data/a, value: b}'\n"
	config := func(i int) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {a: b}\n", i)
	}
	several := func(n int) (s string) {
		for i := range n {
			s += config(i)
		}
		return s
	}
	object := config(0)
	for name, tc := range map[string]struct {
		files tree.Map
		code  string
	}{
		"generators":             {tree.Map{"kustomization.yaml": "configMapGenerator:\n" + strings.Repeat("- {name: c, literals: [a=b]}\n", 2001)}, "too-large"},
		"both kinds":             {tree.Map{"kustomization.yaml": "configMapGenerator:\n" + strings.Repeat("- {name: c, literals: [a=b]}\n", 1001) + "secretGenerator:\n" + strings.Repeat("- {name: c, literals: [a=b]}\n", 1000)}, "too-large"},
		"patches of all objects": {tree.Map{"kustomization.yaml": "resources: [o.yaml]\npatches:\n" + strings.Repeat(patch, 2001), "o.yaml": object}, "too-large"},
		"patches of one object":  {tree.Map{"kustomization.yaml": "resources: [o.yaml]\npatches:\n" + strings.Repeat("- path: p.yaml\n", 2001), "o.yaml": object, "p.yaml": object}, "too-large"},
		"patches in one file":    {tree.Map{"kustomization.yaml": "resources: [o.yaml]\npatches: [{path: p.yaml}]\n", "o.yaml": object, "p.yaml": several(2001)}, "too-large"},
		"three bases": {tree.Map{
			"kustomization.yaml": "resources: [a]\npatches:\n" + strings.Repeat(patch, 1700), "a/kustomization.yaml": "resources: [../b]\npatches:\n" + strings.Repeat(patch, 1700),
			"b/kustomization.yaml": "resources: [o.yaml]\npatches:\n" + strings.Repeat(patch, 1700), "b/o.yaml": object,
		}, "too-large"},
		"few": {tree.Map{"kustomization.yaml": "resources: [o.yaml]\npatches:\n" + strings.Repeat(patch, 300), "o.yaml": object}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := kust.Build(t.Context(), tc.files, ".", kust.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := codesOf(r); got != tc.code {
				t.Errorf("got %.60q, want %q", got, tc.code)
			}
		})
	}
}

func codesOf(r *kust.Result) string {
	var out []string
	for _, d := range r.Diags {
		out = append(out, d.Code)
	}
	return strings.Join(out, " ")
}
