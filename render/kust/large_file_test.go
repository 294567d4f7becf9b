package kust_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/render/tree/treetest"
)

// A file may be larger than an object may be: what is bounded is a document, which is
// parsed as a whole before anything of it is counted.
func TestAFileOfManyDocumentsMayBeLarge(t *testing.T) {
	m := treetest.Pools(1200, "")
	var all strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&all, "---\n# %s\n%s", strings.Repeat("why ", 100), m[fmt.Sprintf("base/pool-%04d.yaml", i)])
	}
	if all.Len() < 3<<19 {
		t.Fatalf("the file has %d bytes", all.Len())
	}
	for name, files := range map[string]tree.Map{
		"as a resource":   {"kustomization.yaml": "namespace: other\nresources: [all.yaml]\n", "all.yaml": all.String()},
		"in a directory":  {"all.yaml": all.String()},
		"Windows's lines": {"all.yaml": strings.ReplaceAll(all.String(), "\n", "\r\n")},
	} {
		r, err := kust.Build(context.Background(), files, ".", kust.Options{})
		if err != nil || len(r.Objects) != 2400 {
			t.Errorf("%s: %d objects, %v, %v", name, len(r.Objects), err, r.Diags)
		}
	}
}

func TestOneDocumentIsBounded(t *testing.T) {
	object := func(data int) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"" + strings.Repeat("x", data) + "\"}\n"
	}
	const more = 1 << 20
	generator := "configMapGenerator: [{name: a, files: [f]}]\n"
	for name, c := range map[string]struct {
		files tree.Map
		at    string
	}{
		"the second":                {tree.Map{"a.yaml": object(10) + "---\n" + object(more)}, "a.yaml:5:1"},
		"one that looks like two":   {tree.Map{"a.yaml": strings.Replace(object(more), "xx", "x\n---x", 1)}, "a.yaml:1:1"},
		"separators in a block":     {tree.Map{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n" + strings.Repeat("    ---\n    "+strings.Repeat("x", 1000)+"\n", 1100)}, "a.yaml:1:1"},
		"a kustomization":           {tree.Map{"kustomization.yaml": "resources: [a.yaml]\n#" + strings.Repeat("x", more) + "\n", "a.yaml": object(1)}, "kustomization.yaml:1:1"},
		"a patch":                   {tree.Map{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]\n", "a.yaml": object(1), "p.yaml": object(more)}, "p.yaml:1:1"},
		"a file that becomes data":  {tree.Map{"kustomization.yaml": generator, "f": strings.Repeat("x", more+1)}, "kustomization.yaml:1:40"},
		"what is data and objects":  {tree.Map{"kustomization.yaml": "resources: [f]\n" + generator, "f": object(more/2) + "---\n" + strings.Replace(object(more/2), "name: a", "name: b", 1)}, "kustomization.yaml:2:40"},
		"one that may be encrypted": {tree.Map{"a.yaml": object(10) + "---\n" + strings.Replace(object(more/2), "xx", "ENC[AES256_GCM,", 1) + "---\n" + object(more/2)}, "a.yaml"},
		"the file":                  {tree.Map{"a.yaml": strings.Repeat(object(1000)+"---\n", 8000)}, "a.yaml"},
	} {
		r, err := kust.Build(context.Background(), c.files, ".", kust.Options{})
		if err != nil || !slices.ContainsFunc(r.Diags, func(d diag.Diagnostic) bool {
			return d.Code == "too-large" && (d.Position.String() == c.at || d.File == c.at)
		}) {
			t.Errorf("%s: %v, %v", name, err, r.Diags)
		}
	}
}
