package kust_test

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/render/tree/treetest"
)

// hostile is a tree that a build must refuse, with what it says and where.
type hostile struct {
	name string
	tree func() tree.Tree
	code string
	at   string // file:line:column; "" where no file is at fault
}

func of(m tree.Map) func() tree.Tree { return func() tree.Tree { return m } }

// made is for trees that take memory to make: only the process that builds it
// makes it.
func made(f func() tree.Map) func() tree.Tree {
	return func() tree.Tree { return treetest.New(f()) }
}

func one(objects string) func() tree.Tree { return of(overlayOf("", objects)) }

// hostileTrees is the corpus.
func hostileTrees() []hostile {
	return append(append(hostileReferences(), hostileYAML()...), hostileSizes()...)
}

func hostileReferences() []hostile {
	return []hostile{
		{"a remote base", of(tree.Map{"kustomization.yaml": "resources:\n- https://127.0.0.1:1/a//b?ref=main\n"}), "remote-reference", "kustomization.yaml:2:3"},
		{"a remote base in a base", of(tree.Map{"kustomization.yaml": "resources: [b]\n", "b/kustomization.yaml": "resources: [git@127.0.0.1:a/b]\n"}), "remote-reference", "b/kustomization.yaml:1:13"},
		{"a cycle of bases", of(tree.Map{"kustomization.yaml": "resources: [a]\n", "a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a]\n"}), "kustomization-cycle", "b/kustomization.yaml:1:13"},
		{"a parent as base", of(tree.Map{"kustomization.yaml": "resources: [a]\n", "a/kustomization.yaml": "resources: [..]\n"}), "kustomization-cycle", "a/kustomization.yaml:1:13"},
		{"a base of itself", of(tree.Map{"kustomization.yaml": "resources: [.]\n"}), "kustomization-cycle", "kustomization.yaml:1:13"},
		{"a component in a circle", of(tree.Map{"kustomization.yaml": "components: [c]\n", "c/kustomization.yaml": "kind: Component\ncomponents: [../c]\n"}), "kustomization-cycle", "c/kustomization.yaml:2:14"},
		{"a path out of the tree", of(tree.Map{"kustomization.yaml": "resources: [../../../../etc]\n"}), "path-escape", "kustomization.yaml:1:13"},
		{"an absolute path", of(tree.Map{"kustomization.yaml": "resources: [/etc/passwd]\n"}), "path-escape", "kustomization.yaml:1:13"},
		{"an absolute path for a generator", of(tree.Map{"kustomization.yaml": "secretGenerator: [{name: a, files: [k=/etc/passwd]}]\n"}), "path-escape", "kustomization.yaml:1:37"},
		{"a file above", of(tree.Map{"x/kustomization.yaml": "patches: [{path: ../a.yaml}]\n", "kustomization.yaml": "resources: [x]\n", "a.yaml": configMap}), "path-escape", "x/kustomization.yaml:1:18"},
		{"a symlink out of the tree", one("symlink:../../etc/passwd"), "symlink-escape", "kustomization.yaml:1:13"},
		{"an absolute symlink", one("symlink:/etc/passwd"), "symlink-escape", "kustomization.yaml:1:13"},
		{"a symlink to a process", of(tree.Map{"kustomization.yaml": "configMapGenerator: [{name: a, files: [e]}]\n", "e": "symlink:/proc/self/environ"}), "symlink-escape", "kustomization.yaml:1:40"},
		{"a directory symlink out of the tree", of(tree.Map{"kustomization.yaml": "resources: [d/x]\n", "d": "symlink:.."}), "symlink-escape", "kustomization.yaml:1:13"},
		{"a symlink to itself", one("symlink:a.yaml"), "bad-path", "kustomization.yaml:1:13"},
		{"two symlinks to each other", of(tree.Map{"kustomization.yaml": "resources: [a]\n", "a": "symlink:b", "b": "symlink:a"}), "bad-path", "kustomization.yaml:1:13"},
		{"a symlink below itself", of(tree.Map{"kustomization.yaml": "resources: [a/b]\n", "a": "symlink:a/b"}), "bad-path", "kustomization.yaml:1:13"},
		{"a symlink to a file above", of(tree.Map{"kustomization.yaml": "resources: [x]\n", "x/kustomization.yaml": "resources: [a.yaml]\n", "x/a.yaml": "symlink:../a.yaml", "a.yaml": configMap}), "path-escape", "x/kustomization.yaml:1:13"},
		{"a base in a submodule", func() tree.Tree { return withSubmodule{tree.Map{"kustomization.yaml": "resources: [sub/base]\n"}} }, "missing-file", "kustomization.yaml:1:13"},
		{"a large file kept elsewhere", one("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"), "lfs-pointer", "a.yaml:1:1"},
		{"data kept elsewhere", of(tree.Map{"kustomization.yaml": "configMapGenerator: [{name: a, files: [f.sh]}]\n", "f.sh": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"}), "lfs-pointer", "f.sh:1:1"},
		{"two kustomizations", of(tree.Map{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": configMap, "Kustomization": "resources: [a.yaml]\n"}), "kustomization-duplicate", "Kustomization"},
		{"helm", of(tree.Map{"kustomization.yaml": "helmCharts: [{name: x, repo: 'https://127.0.0.1:1'}]\n"}), "helm", "kustomization.yaml:1:1"},
		{"helm as a generator", of(tree.Map{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: x\n"}), "helm", "g.yaml:1:1"},
		{"a program as generator", of(tree.Map{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: me/v1\nkind: Exec\nmetadata: {name: a}\n"}), "exec-plugin", "g.yaml:1:1"},
		{"a program named by an annotation", of(tree.Map{"kustomization.yaml": "transformers:\n- |\n  apiVersion: builtin\n  kind: LabelTransformer\n  metadata:\n    name: a\n    annotations:\n      config.kubernetes.io/function: |\n        exec: {path: ./x.sh}\n"}), "exec-plugin", "kustomization.yaml:8:7"},
		{"a container as transformer", of(tree.Map{"kustomization.yaml": "transformers: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: LabelTransformer\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: x, network: true}\n"}), "exec-plugin", "g.yaml:6:5"},
		{"a container as validator", of(tree.Map{"kustomization.yaml": "validators: [g.yaml]\n", "g.yaml": "apiVersion: me/v1\nkind: V\nmetadata:\n  name: a\n  annotations: {config.k8s.io/function: 'container: {image: x}'}\n"}), "exec-plugin", "g.yaml:1:1"},
		{"a list of programs", of(tree.Map{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: v1\nkind: List\nitems: [{apiVersion: me/v1, kind: Exec, metadata: {name: a}}]\n"}), "exec-plugin", "g.yaml:1:1"},
		{"a directory of generators", of(tree.Map{"kustomization.yaml": "generators: [g]\n", "g/kustomization.yaml": "resources: []\n"}), "unsupported-field", "kustomization.yaml:1:14"},
		{"an own schema", of(tree.Map{"kustomization.yaml": "openapi: {path: https://127.0.0.1:1/x}\n"}), "unsupported-field", "kustomization.yaml:1:1"},
		{"vars", of(tree.Map{"kustomization.yaml": "vars: [{name: A, objref: {kind: A, name: a, apiVersion: v1}}]\n"}), "unsupported-field", "kustomization.yaml:1:1"},
		{"a field in two spellings", of(tree.Map{"kustomization.yaml": "resources: [a.yaml]\nReplacements: [{path: 'https://127.0.0.1:1/x'}]\nreplacements: [{}]\n", "a.yaml": configMap}), "duplicate-key", "kustomization.yaml:2:1"},
		{"an empty crds file", of(tree.Map{"kustomization.yaml": "crds: [c.json]\n", "c.json": ""}), "kustomization-invalid", "c.json"},
		{"schemas in a circle", of(tree.Map{"kustomization.yaml": "crds: [c.yaml]\n", "c.yaml": "A: {Schema: {properties: {kind: {}, apiVersion: {}, metadata: {}, a: {$ref: A}}}}\n"}), "too-large", "c.yaml"},
		{"an empty kustomization", of(tree.Map{"kustomization.yaml": ""}), "kustomization-invalid", "kustomization.yaml"},
		{"no kustomization", of(tree.Map{"a/b.txt": "x"}), "kustomization-missing", "."},
		{"nothing", of(tree.Map{}), "kustomization-missing", "."},
		{"the same object twice", one(configMap + "---\n" + configMap), "build-failed", "a.yaml:5:1"},
		{"a literal without a value", of(tree.Map{"kustomization.yaml": "secretGenerator:\n- name: a\n  literals: [a=b, c]\n"}), "kustomization-invalid", "kustomization.yaml:3:19"},
		{"a patch of no form", of(overlayOf("patches:\n- patch: |\n    kind: ConfigMap\n    data: {a: b}\n", configMap)), "bad-patch", "kustomization.yaml:4:5"},
	}
}

func hostileYAML() []hostile {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n"
	return []hostile{
		{"an alias bomb in a resource", one(configMap + aliasBomb()), "yaml-alias", "a.yaml:1:1"},
		{"an alias bomb in the kustomization", of(tree.Map{"kustomization.yaml": aliasBomb() + "resources: []\n"}), "yaml-alias", "kustomization.yaml:1:1"},
		{"an alias bomb in an inline patch", of(inlinePatch(aliasBomb())), "yaml-alias", "kustomization.yaml:3:5"},
		{"an alias of itself", one(configMap + "data: &x\n  a: *x\n"), "yaml-alias", "a.yaml:5:6"},
		{"an alias of itself through a merge", one(configMap + "data: &x\n  <<: *x\n"), "yaml-alias", "a.yaml:5:7"},
		{"an alias of itself inline", of(inlinePatch("data: &x\n  a: *x\n")), "yaml-alias", "kustomization.yaml:4:10"},
		{"an alias of a long text", made(func() tree.Map {
			return overlayOf("", configMap+"data:\n  a: &a "+strings.Repeat("x", 900_000)+"\nmore: ["+strings.Repeat("*a,", 9000)+"*a]\n")
		}), ended, "kustomization.yaml"},
		{"deep nesting", one(configMap + "data: " + deep), "too-large", "a.yaml:4:106"},
		{"deep nesting in block style", one(configMap + "data:\n" + strings.Repeat("- ", 5000) + "x\n"), "too-large", "a.yaml:5:199"},
		{"deep nesting in a patch", of(inlinePatch("data: " + deep)), "too-large", "kustomization.yaml:3:110"},
		{"deeper nesting than the parser takes", one(configMap + "data: " + strings.Repeat("[", 200_000)), "yaml-syntax", "a.yaml:4"},
		{"deep nesting through aliases", one(configMap + deepAliases()), "too-large", "a.yaml:13:19"},
		{"a scalar of 10 MB", made(func() tree.Map { return overlayOf("", configMap+"data: {a: "+strings.Repeat("x", 10<<20)+"}\n") }), "too-large", "kustomization.yaml:1:13"},
		{"a scalar of 10 MB in a kustomization", made(func() tree.Map {
			return tree.Map{"kustomization.yaml": "namePrefix: " + strings.Repeat("x", 10<<20) + "\n"}
		}), "too-large", "kustomization.yaml"},
		{"a large generated file", made(func() tree.Map {
			return tree.Map{"kustomization.yaml": "configMapGenerator: [{name: a, files: [f]}]\n", "f": strings.Repeat("x", 10<<20)}
		}), "too-large", "kustomization.yaml:1:40"},
		{"a million empty documents", made(func() tree.Map { return files(4, strings.Repeat("---\n", 250_000)+configMap) }), "too-large", "f0.yaml"},
		{"a million scalars as documents", made(func() tree.Map { return files(6, strings.Repeat("---\nx\n", 170_000)) }), "too-large", "f0.yaml"},
		{"a hundred thousand objects", made(func() tree.Map { return files(8, configMaps(13_000)) }), "too-large", "f1.yaml"},
		{"megabytes of commas", made(func() tree.Map { return files(16, configMap+"x: ["+strings.Repeat("x,", 500_000)+"]\n") }), "too-large", "f0.yaml"},
		{"megabytes of dashes", made(func() tree.Map { return files(16, configMap+"x:\n"+strings.Repeat("-\n", 500_000)) }), "too-large", "f0.yaml"},
		{"megabytes of keys", made(func() tree.Map { return files(16, configMap+"data:\n"+numbered(70_000, "  k%d: x\n")) }), "too-large", "f0.yaml:5:3"},
		{"megabytes of comments", made(func() tree.Map { return files(40, configMap+strings.Repeat("# x\n", 250_000)) }), "too-large", "kustomization.yaml:27:3"},
		{"a hidden document separator", one("a\n---# b\nc\n"), "yaml-syntax", "a.yaml:2:1"},
		{"keys given twice", one("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n"), "duplicate-key", "a.yaml:5:3"},
		{"many keys given twice", one(configMap + "data:\n" + strings.Repeat("  a: b\n", 5000)), "duplicate-key", "a.yaml:6:3"},
		{"very many keys given twice", one(configMap + "data:\n" + strings.Repeat("  a: b\n", 100_000)), "too-large", "a.yaml:5:3"},
		{"invalid UTF-8", one(configMap + "data: {a: \"\xff\xfe\"}\n"), "yaml-syntax", "a.yaml:4:12"},
		{"invalid UTF-8 in the kustomization", of(tree.Map{"kustomization.yaml": "namePrefix: \"\xc3\x28\"\n"}), "yaml-syntax", "kustomization.yaml:1:14"},
		{"invalid UTF-8 in an environment", of(tree.Map{"kustomization.yaml": "secretGenerator: [{name: a, envs: [e]}]\n", "e": "a=b\nc=\xff\n"}), "kustomization-invalid", "e:2"},
		{"NUL", one(configMap + "data: {a: \"b\x00c\"}\n"), "yaml-syntax", "a.yaml:4:13"},
		{"UTF-16 without order", one("a\x00p\x00i\x00"), "yaml-syntax", "a.yaml:1:2"},
		{"tabs", one("apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n"), "yaml-syntax", "a.yaml:4"},
		{"keys that are lists", one(configMap + "? [a, b]\n: c\n"), "yaml-syntax", "a.yaml:4:3"},
	}
}

func hostileSizes() []hostile {
	return []hostile{
		{"bases included too often", made(diamond), ended, "kustomization.yaml"},
		{"a thousand nested bases around many objects", made(func() tree.Map { return chain(1000, "", configMaps(300)) }), "too-large", "d99/kustomization.yaml:1:13"},
		{"a thousand nested bases that rename", made(func() tree.Map { return chain(1000, "namePrefix: abcdefgh-\n", configMaps(100)) }), "too-large", "d99/kustomization.yaml:1:13"},
		{"a thousand bases in a circle", made(func() tree.Map { return circle(1000) }), "too-large", "d99/kustomization.yaml:1:13"},
		{"ninety bases in a circle", made(func() tree.Map { return circle(90) }), "kustomization-cycle", "d90/kustomization.yaml:1:21"},
		{"ninety bases that rename many objects", made(func() tree.Map { return chain(90, "namePrefix: abcdefgh-\n", configMaps(300)) }), ended, "kustomization.yaml"},
		{"ten thousand bases", made(func() tree.Map { return chain(10_000, "", configMap) }), "too-large", "d99/kustomization.yaml:1:13"},
		{"a replacement that doubles a text", of(overlayOf("replacements:\n"+strings.Repeat("- {source: {kind: ConfigMap, fieldPath: data.a}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a], options: {delimiter: x, index: 99}}]}\n", 40), configMap+"data: {a: b}\n")), ended, "kustomization.yaml"},
		{"a replacement that doubles an object", of(overlayOf("replacements:\n"+strings.Repeat("- {source: {kind: ConfigMap, fieldPath: data}, targets: [{select: {name: a}, fieldPaths: [data.b, data.c], options: {create: true}}]}\n", 20), configMap+"data: {a: b}\n")), ended, "kustomization.yaml"},
		{"a replacement of a long text into many objects", made(spread), ended, "kustomization.yaml"},
		{"a replacement that nests deeply", made(func() tree.Map {
			return overlayOf("replacements:\n- source: {kind: ConfigMap, fieldPath: metadata.name}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: ['data"+strings.Repeat(".a", 400_000)+"'], options: {create: true}}]\n", configMap)
		}), "too-large", "kustomization.yaml:4:54"},
		{"very many replacements", made(func() tree.Map {
			return overlayOf("replacements:\n"+numbered(4000, "- {source: {kind: ConfigMap, name: a1, fieldPath: metadata.name}, targets: [{select: {kind: ConfigMap}, fieldPaths: [x.b%d], options: {create: true}}]}\n"), configMaps(500))
		}), ended, "kustomization.yaml"},
		{"a JSON patch that doubles an object", of(overlayOf(doubling(40), configMap+"data: {a: b}\n")), "build-failed", "kustomization.yaml"},
		{"a JSON patch with a deep path", made(func() tree.Map {
			return overlayOf("patches:\n- target: {kind: ConfigMap}\n  patch: |\n    - {op: add, path: \"/data"+strings.Repeat("/a", 200_000)+"\", value: 1}\n", configMap)
		}), "too-large", "kustomization.yaml:5:23"},
		{"very many operations on a large list", made(func() tree.Map {
			return overlayOf("patches:\n- target: {kind: ConfigMap}\n  patch: |\n"+strings.Repeat("    - {op: remove, path: /x/0}\n", 15_000), configMap+"x: ["+strings.Repeat("x,", 60_000)+"]\n")
		}), ended, "kustomization.yaml"},
		{"a patch for very many objects", made(manyPatched), ended, "kustomization.yaml"},
		{"a long text patched into very many objects", made(func() tree.Map {
			return overlayOf("patches:\n- target: {kind: ConfigMap}\n  patch: |\n    - {op: add, path: /data, value: {a: "+strings.Repeat("x", 500_000)+"}}\n", configMaps(1000))
		}), ended, "kustomization.yaml"},
		{"very many patches", made(func() tree.Map {
			return overlayOf("patches:\n"+numbered(3000, "- {target: {kind: ConfigMap, name: '.*%d'}, patch: '[{\"op\": \"add\", \"path\": \"/x\", \"value\": 1}]'}\n"), configMaps(1000))
		}), ended, "kustomization.yaml"},
		{"lists that are merged element by element", made(mergedLists), ended, "kustomization.yaml"},
		{"very many names that refer", made(func() tree.Map { return overlayOf("namePrefix: x-\n", podsAndMaps(1200)) }), ended, "kustomization.yaml"},
		{"names that refer by an own configuration", made(referring), ended, "kustomization.yaml"},
		{"very many objects", made(func() tree.Map {
			return overlayOf("", numbered(4500, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d, labels: {a: a, b: b, c: c, d: d, e: e, f: f, g: g, h: h, i: i, j: j, k: k, l: l, m: m, n: n, o: o, p: p}}\n"))
		}), ended, "kustomization.yaml"},
		{"very many objects in a chain of bases", made(func() tree.Map { return chain(4, "", configMaps(4500)) }), ended, "kustomization.yaml"},
		{"objects with very many annotations", made(func() tree.Map {
			return files(40, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a%d\n  annotations:\n"+numberedKeys(20_000))
		}), "too-large", "f0.yaml:6:5"},
		{"a long label for very many objects", made(func() tree.Map {
			return overlayOf("labels: [{pairs: {l: "+strings.Repeat("x", 200_000)+"}}]\n", configMaps(2000))
		}), ended, "kustomization.yaml"},
		{"very many directories", made(func() tree.Map {
			m := tree.Map{"kustomization.yaml": "resources:\n" + numbered(4900, "- d%d\n")}
			for i := range 4900 {
				m[fmt.Sprintf("d%d/kustomization.yaml", i)] = "resources: [a.yaml]\n"
				m[fmt.Sprintf("d%d/a.yaml", i)] = strings.Replace(poolHead, "web", fmt.Sprint("n", i), 1)
			}
			return m
		}), ended, "kustomization.yaml"},
		{"very many keys in a kustomization", made(func() tree.Map {
			return overlayOf("metadata:\n  annotations:\n"+numberedKeys(64_000), configMap)
		}), ended, "kustomization.yaml"},
		{"metadata in every batch", made(func() tree.Map {
			return chain(8, "metadata:\n  annotations:\n"+numberedKeys(1000), configMaps(4000))
		}), ended, "kustomization.yaml"},
		{"very many labels for very many objects", made(func() tree.Map {
			return overlayOf("labels:\n- pairs:\n"+numbered(2000, "    l%d: x\n"), configMaps(1000))
		}), ended, "kustomization.yaml"},
		{"very many images", made(func() tree.Map {
			return overlayOf("images:\n"+numbered(20_000, "- {name: i%d, newTag: a}\n"), podsAndMaps(500))
		}), ended, "kustomization.yaml"},
		{"a prefix of a megabyte", made(func() tree.Map { return overlayOf("namePrefix: "+strings.Repeat("x", 1_000_000)+"\n", configMaps(500)) }), ended, "kustomization.yaml"},
		{"very many generators", made(func() tree.Map {
			return tree.Map{"kustomization.yaml": "configMapGenerator:\n" + numbered(4900, "- {name: a%d, literals: [a=b]}\n")}
		}), ended, "kustomization.yaml"},
		{"a generator of very many literals", made(func() tree.Map {
			return tree.Map{"kustomization.yaml": "configMapGenerator:\n- name: a\n  literals:\n" + numbered(50_000, "  - a%d=b\n")}
		}), ended, "kustomization.yaml"},
		{"a generator of a very long environment", made(func() tree.Map {
			return tree.Map{"kustomization.yaml": "configMapGenerator: [{name: a, envs: [e]}]\n", "e": numbered(100_000, "a%d=b\n")}
		}), ended, "kustomization.yaml"},
		{"a generator in a transformer of very many literals", made(func() tree.Map {
			return tree.Map{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: a}\nliterals:\n" + numbered(50_000, "- a%d=b\n")}
		}), "too-large", "g.yaml:1:1"},
		{"one file generated very often", made(func() tree.Map {
			return tree.Map{"kustomization.yaml": "configMapGenerator:\n" + numbered(1000, "- {name: a%d, files: [f]}\n"), "f": strings.Repeat("x", 500_000)}
		}), ended, "kustomization.yaml"},
		{"a path of very many steps", made(func() tree.Map {
			return tree.Map{"kustomization.yaml": "resources: ['" + strings.Repeat("a/../", 150_000) + "b']\n"}
		}), "missing-file", "kustomization.yaml:1:13"},
		{"a chain of symlinks", made(func() tree.Map {
			m := tree.Map{"kustomization.yaml": "resources: [l0]\n"}
			for i := range 60 {
				m[fmt.Sprintf("l%d", i)] = fmt.Sprintf("symlink:l%d", i+1)
			}
			return m
		}), "bad-path", "kustomization.yaml:1:13"},
	}
}

// numberedKeys are annotations, without the sign that numbered replaces.
func numberedKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "    k%d: x\n", i)
	}
	return b.String()
}

// withSubmodule is a tree with a submodule at sub.
type withSubmodule struct{ tree.Map }

func (w withSubmodule) Lookup(p string) (tree.Entry, error) {
	if p == "sub" {
		return tree.Entry{Name: "sub", Mode: tree.Submodule, Hash: strings.Repeat("a", 40), Size: -1}, nil
	}
	return w.Map.Lookup(p)
}
