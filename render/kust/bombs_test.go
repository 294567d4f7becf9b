package kust_test

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/tree"
)

// Trees that are small on disk and would take hours or all memory if they were
// handed to kustomize as they are, or that are simply large.

// numbered repeats a text n times, with %d replaced by the number.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

func configMaps(n int) string {
	return numbered(n, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\n")
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ") + "\n"
}

// overlayOf is a kustomization of one file.
func overlayOf(fields, objects string) tree.Map {
	return tree.Map{"kustomization.yaml": "resources: [a.yaml]\n" + fields, "a.yaml": objects}
}

// files is a kustomization of n files.
func files(n int, format string) tree.Map {
	m := tree.Map{"kustomization.yaml": "resources:\n" + numbered(n, "- f%d.yaml\n")}
	for i := range n {
		m[fmt.Sprintf("f%d.yaml", i)] = strings.ReplaceAll(format, "%d", fmt.Sprint(i))
	}
	return m
}

func inlinePatch(doc string) tree.Map {
	return tree.Map{"kustomization.yaml": "patches:\n- patch: |\n" + indent(doc)}
}

func aliasBomb() string {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 9; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return bomb
}

func deepAliases() string {
	s := "l0: &l0 [[[[[[[[[[x]]]]]]]]]]\n"
	for i := 1; i < 12; i++ {
		s += fmt.Sprintf("l%d: &l%d [[[[[[[[[[*l%d]]]]]]]]]]\n", i, i, i-1)
	}
	return s
}

// diamond includes one base 2^40 times, each time under another prefix.
func diamond() tree.Map {
	m := tree.Map{"kustomization.yaml": "resources: [d0]\n", "d40/kustomization.yaml": "resources: [a.yaml]\n", "d40/a.yaml": configMap}
	for i := range 40 {
		m[fmt.Sprintf("d%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../e%d/l, ../e%d/r]\n", i, i)
		for _, side := range []string{"l", "r"} {
			m[fmt.Sprintf("e%d/%s/kustomization.yaml", i, side)] = fmt.Sprintf("namePrefix: %s\nresources: [../../d%d]\n", side, i+1)
		}
	}
	return m
}

// chain nests n bases, each with a field, around objects.
func chain(n int, field, objects string) tree.Map {
	m := tree.Map{"kustomization.yaml": "resources: [d0]\n", fmt.Sprintf("d%d/a.yaml", n): objects}
	for i := range n {
		m[fmt.Sprintf("d%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../d%d]\n", i+1) + field
	}
	m[fmt.Sprintf("d%d/kustomization.yaml", n)] = "resources: [a.yaml]\n"
	return m
}

func circle(n int) tree.Map {
	m := chain(n, "", configMap)
	m[fmt.Sprintf("d%d/kustomization.yaml", n)] = "resources: [a.yaml, ../d0]\n"
	return m
}

func doubling(n int) string {
	return "patches:\n- target: {kind: ConfigMap}\n  patch: |\n" + numbered(n, "    - {op: copy, from: /data, path: /data/x%d}\n")
}

func manyPatched() tree.Map {
	m := overlayOf("patches: [{path: p.yaml, target: {kind: ConfigMap}}]\n", configMaps(1500))
	m["p.yaml"] = "- op: add\n  path: /data\n  value: {a: &x [" + strings.Repeat("y,", 1000) + "y], b: *x, c: *x, d: *x}\n"
	return m
}

func podsAndMaps(n int) string {
	return configMaps(n) + numbered(n, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {volumes: [{name: a, configMap: {name: a%d}}]}\n")
}

func referring() tree.Map {
	m := overlayOf("namePrefix: x-\nconfigurations: [c.yaml]\n", configMaps(900)+"---\n"+poolHead+"spec:\n"+numbered(4500, "  r%d: {ref: a%d}\n"))
	m["c.yaml"] = "nameReference:\n- kind: ConfigMap\n  fieldSpecs:\n" + numbered(4500, "  - {kind: AWSMachinePool, path: spec/r%d/ref}\n")
	return m
}

// spread gives one long text to many objects through a replacement.
func spread() tree.Map {
	return overlayOf("replacements:\n- source: {kind: ConfigMap, name: big, fieldPath: data.a}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.b], options: {create: true}}]\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata: {a: "+strings.Repeat("x", 900_000)+"}\n"+configMaps(1000))
}

func mergedLists() tree.Map {
	env := func(value string) string { return numbered(8000, "      - {name: e%d, value: "+value+"}\n") }
	pod := func(value string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n    - name: c\n      env:\n" + env(value)
	}
	m := overlayOf("patches: [{path: p.yaml}]\n", pod("a"))
	m["p.yaml"] = pod("b")
	return m
}
