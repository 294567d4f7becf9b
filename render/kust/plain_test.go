package kust_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// What is taken as it was read is what kustomize makes of it, comments, styles and order
// included, and has the same origins.
func TestAsReadProperty(t *testing.T) {
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		m := drawPlain(t)
		read += sameAsRead(t, m, ".", rapid.IntRange(2, 4).Draw(t, "batch"))
	})
	if read < 10 {
		t.Errorf("%d batches were taken as they were read", read)
	}
}

// FuzzAsRead does that with any text after some objects.
func FuzzAsRead(f *testing.F) {
	for _, body := range plainBodies {
		f.Add("---\n" + plainHead + body)
		f.Add("--- # why\n# head\n\n" + plainHead + "# before\n" + body + "# after\n---\n" + strings.ReplaceAll(plainHead, "web", "other") + body)
	}
	var before strings.Builder
	for i := range 4 {
		before.WriteString("---\n" + strings.ReplaceAll(plainHead, "web", fmt.Sprint("n", i)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 16<<10 {
			sameAsRead(t, tree.Map{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": before.String() + text}, ".", 2)
		}
	})
}

// What takes time that grows with a square, or what unfolds, is left to where it can be
// ended.
func TestSomeAnnotationsAreForKustomize(t *testing.T) {
	many := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("    a%d: b\n", i)
		}
		return text
	}
	for name, last := range map[string]string{"too many": many(30 + 1), "aliases": "    a: '{a: &a [b], c: [*a, *a]}'\n", "a list": "    a: '[b]'\n"} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for i, annotations := range []string{many(1), many(1), many(30), many(30), last, many(1)} {
				fmt.Fprintf(&text, "---\n%s  annotations:\n%s", strings.ReplaceAll(plainHead, "web", fmt.Sprint("n", i)), annotations)
			}
			if n := sameAsRead(t, tree.Map{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": text.String()}, ".", 2); n != 1 {
				t.Errorf("%d batches were taken as they were read, want that in the middle alone", n)
			}
		})
	}
}

// What a batch alone would not tell, and what lines alone do not tell of documents.
func TestBatchesLeaveToTheWhole(t *testing.T) {
	pools := func(from, to int) (text string) {
		for i := from; i < to; i++ {
			text += fmt.Sprintf("---\n%sspec: {size: 3}\n", strings.ReplaceAll(plainHead, "web", fmt.Sprint("n", i)))
		}
		return text
	}
	file := func(text string) tree.Map {
		return tree.Map{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": text}
	}
	child := func(list, fields string) tree.Map {
		return tree.Map{"kustomization.yaml": list + "\n", "a.yaml": pools(0, 8), "b/kustomization.yaml": fields + "resources: [b.yaml]\n", "b/b.yaml": "# none\n"}
	}
	object := func(version, kind, name string) string {
		return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s}\n", version, kind, name)
	}
	cases := map[string]tree.Map{
		"a comment that ends in the middle of a line": file(pools(0, 6) + "---\n# c\r" + strings.ReplaceAll(strings.TrimPrefix(pools(6, 7), "---\n"), "\n", "\r") + "\n---\nnull\n" + pools(7, 12)),
		"a component as a resource":                   child("resources: [a.yaml, b]", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"),
		"a resource as a component":                   child("resources: [a.yaml]\ncomponents: [b]", ""),
		"no kustomization":                            child("resources: [a.yaml, b]", "apiVersion: a/v1\nkind: B\n"),
		"one version in two spellings":                file(object("v1", "ConfigMap", "a") + pools(0, 510) + object("/v1", "ConfigMap", "b")),
		"versions in no order":                        file(object("a_b/c", "X", "z") + object("a/b_c", "X", "a") + pools(0, 6) + object("a_b/c", "X", "b") + object("a/b_c", "X", "k") + object("a_b/c", "X", "j")),
	}
	for name, end := range map[string]string{"CR": "\r", "NEL": "\u0085", "LS": "\u2028", "PS": "\u2029"} {
		cases["a document behind a "+name] = file(strings.TrimSuffix(pools(0, 6), "\n") + end + pools(6, 7) + "---\nnull\n" + pools(7, 12))
	}
	for name, m := range cases {
		t.Run(name, func(t *testing.T) {
			if len(m["a.yaml"]) > 20_000 {
				sameAsRead(t, m, ".", 100)
				return
			}
			sameAsRead(t, m, ".", 2)
		})
	}
}

// What batches hold in common is handed to kustomize with each of them.
func TestBatchesTakeAsMuchAsTheyMayRead(t *testing.T) {
	for size, want := range map[int]bool{1_000: true, 20_000: false} {
		m := overlayOf("metadata: {name: "+strings.Repeat("x", size)+"}\n", configMaps(40))
		r, err := kust.Build(t.Context(), m, ".", kust.Options{Limits: kust.Limits{Batch: 2, TotalBytes: 100_000}})
		if err != nil || len(r.Objects) != 40 {
			t.Fatal(err, r.Diags)
		}
		if n, err := kust.InBatches(r); n != 20 || (err == nil) != want {
			t.Errorf("%d bytes: %d batches, %v", size, n, err)
		}
	}
}

// sameAsRead builds in batches and as a whole, and returns how many batches were taken as
// they were read.
func sameAsRead(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, m tree.Map, top string, batch int,
) int {
	var built [2]*kust.Result
	var err error
	for i, n := range []int{batch, alone} {
		if built[i], err = kust.Build(context.Background(), m, top, kust.Options{Limits: kust.Limits{Batch: n}}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := printDiags(built[0].Diags), printDiags(built[1].Diags); got != want {
		t.Fatalf("findings:\n%s\nwant:\n%s\n%v", got, want, m)
	}
	if built[1].Objects == nil {
		return 0
	}
	if got, want := string(built[0].Raw()), string(built[1].Raw()); got != want {
		t.Fatalf("as read:\n%s\nby kustomize:\n%s\n%v", got, want, m)
	}
	if got, want := written(t, built[0]), written(t, built[1]); got != want {
		t.Fatalf("as read:\n%s\nby kustomize:\n%s\n%v", got, want, m)
	}
	for _, o := range built[1].Objects[:min(3, len(built[1].Objects))] {
		for _, p := range []intent.Path{{"spec", "size"}, {"spec", "tags", "a"}, {"metadata", "name"}, {"metadata", "annotations", "a"}} {
			got, ok := built[0].Origin(o.Ref, p)
			if want, known := built[1].Origin(o.Ref, p); known && (!ok || got != want) {
				t.Fatalf("origin of %s %s: %v, want %v\n%v", o.Ref, p, got, want, m)
			}
		}
	}
	return kust.AsRead(built[0])
}

const plainHead = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata:\n  name: web\n"

// plainBodies are what a pool may hold below its name.
var plainBodies = []string{
	"spec:\n  size: 3\n",
	"spec: {size: 3, tags: {a: b, 'c': \"d\"}, list: [a, {b: c}]}\n",
	"spec:\n  tags:\n    on: yes\n    y: n\n    '1': 0o7\n    octal: 012\n    date: 2001-01-02\n    float: 1e3\n    text: \"1\"\n",
	"spec:\n  empty: {}\n  none: []\n  nothing: ''\n  tilde: \"~\"\n",
	"spec:\n  null: a\n  a: null\n  b: ~\n  c:\n",
	"spec:\n  text: |\n    #!/bin/bash\n    echo hi\n\n  folded: >-\n    a\n    b\n\n  kept: |+\n    a\n\n",
	"spec:\n  # of size\n  size: 3 # three\n  # after\n\n  # of tags\n  tags:\n    # of a\n    a: b\n    # foot\n",
	"spec:\n  list:\n  # first\n  - a # one\n  - b\n  # last\n  - c: d\n    e: f\n",
	"spec:\n    wide:\n        - a\n        -   b: c\n",
	"spec: &a\n  size: 3\n",
	"spec:\n  one: &a {b: c}\n  two: *a\n  three: {<<: *a, d: e}\n",
	"spec:\n  tagged: !!str 3\n  own: !foo bar\n  binary: !!binary aGk=\n",
	"spec:\n  ? size\n  : 3\n  ? [a]\n  : b\n",
	"  labels: {a: b}\n  annotations: {z: '1', a: b, m: \"x\"}\nspec: {size: 3}\n",
	"  annotations:\n    # why\n    z: true\n    a: |\n      text\n      more\n  labels: {a: b}\n",
	"  annotations: {}\n",
	"  annotations: {config.kubernetes.io/local-config: 'true'}\n",
	"  annotations: {config.kubernetes.io/origin: x, internal.config.kubernetes.io/index: '1', a: b}\n",
	"  annotations: [a]\n",
	"  annotations: text\n",
	"  annotations: {a: {b: c}}\n",
	"  annotations: {a: 1, b: 1.50, c: 0x10}\n",
	"  labels: {a: 1, b: true}\n",
	"  labels: [a]\n",
	"  labels: text\n",
	"  labels: {a: {b: c}}\n",
	"  annotations: {a: 'on', b: '*x', c: '{\"a\": [b]}', d: '1_000', e: \"a\\nb\", f: ' x '}\n",
	"spec:\n  a: |2\n      x\n    y\n  b: >+\n\n\n    folded\n     more\n\n\n  c: |1-\n   t\n  d: \"\n   ---\n   x\"\n  e: |\n    ---\n    z\u2028    y",
	"  generateName: web-\n  ownerReferences: text\n  finalizers: {a: b}\n",
	"  creationTimestamp: 2001-01-02T03:04:05Z\n",
	"  namespace: other\nspec: {size: 3}\n",
	"  namespace: 5\nspec: {text: \"a\\tb\\u00e9\", more: 'it''s', long: \"" + strings.Repeat("word ", 40) + "\"}\n",
	"spec: {size: 3}\nstatus: {a: b}\n",
	"spec:\r\n  # why\r\n  size: 3 # c\r\n  text: |\r\n    a\r\n\r\n  quoted: \"a\r\n    b \\\r\n    c\"\r\n",
	"spec:\r  size: 3\r  tags: {a: b} # c\r",
	"spec: {name: web, a: $patch, $patch: delete}\n",
}

func drawPlain(t *rapid.T) tree.Map {
	pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	files := []string{"a.yaml", "b/b.yaml"}
	text := map[string]string{}
	separators := []string{"---\n", "---\n", "--- # c\n", "---  \n", "---\n---\n", "---\n# only\n---\n"}
	if rapid.IntRange(0, 4).Draw(t, "odd") == 0 {
		separators = append(separators, "\u2028---\n", "\r---\r", "---\nnull\n---\n", "---\n~\n---\n", "---\n# c\r")
	}
	for i := range rapid.IntRange(9, 20).Draw(t, "objects") {
		file := pick("file", "a.yaml", "a.yaml", "a.yaml", "b/b.yaml")
		head := strings.ReplaceAll(plainHead, "web", fmt.Sprint("n", (i*7)%20))
		switch pick("kind", "pool", "pool", "pool", "pool", "cluster", "map") {
		case "cluster":
			head = strings.ReplaceAll(strings.ReplaceAll(head, "AWSMachinePool", "Cluster"), "infrastructure.", "")
		case "map":
			head = strings.ReplaceAll(strings.ReplaceAll(head, "AWSMachinePool", "ConfigMap"), "infrastructure.cluster.x-k8s.io/v1beta2", "v1")
		}
		body := "spec: {size: 3}\n"
		if rapid.Bool().Draw(t, "special") {
			body = rapid.SampledFrom(plainBodies).Draw(t, "body")
		}
		text[file] += pick("before", "", "", "# trailing\n", "\n# apart\n\n") + pick("separator", separators...) +
			pick("head", "", "", "# head\n", "# apart\n\n", "\n") + head + body
	}
	m := tree.Map{"kustomization.yaml": "resources: [a.yaml, b]\n", "b/kustomization.yaml": "resources: [b.yaml]\n"}
	for _, f := range files {
		if text[f] == "" {
			text[f] = configMap
		}
		m[f] = strings.TrimPrefix(text[f], pick("start", "", "---\n")) + pick("end", "", "", "# end\n", "---\n", "---", "# end\n---")
	}
	return m
}
