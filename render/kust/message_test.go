package kust_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// No value of a generator or of a Secret is in a message, whatever is wrong with
// what stands around it.
func TestNoValuesInMessages(t *testing.T) {
	const canary = "c4nary-do-not-show"
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: " + canary + "}\ndata: {b: " + base64.StdEncoding.EncodeToString([]byte(canary)) + "}\n"
	literal := "secretGenerator:\n- name: a\n  literals: [k=" + canary + "]\n"
	for name, c := range map[string]struct {
		tree tree.Map
		code string
	}{
		"a literal without =":             {tree.Map{"kustomization.yaml": "secretGenerator:\n- name: a\n  literals: [" + canary + "]\n"}, "kustomization-invalid"},
		"a literal without a key":         {tree.Map{"kustomization.yaml": "configMapGenerator:\n- name: a\n  literals: ['=" + canary + "']\n"}, "kustomization-invalid"},
		"a key given twice":               {tree.Map{"kustomization.yaml": "secretGenerator:\n- name: a\n  literals: [k=" + canary + ", k=x" + canary + "]\n"}, "duplicate-key"},
		"a key in two files":              {tree.Map{"kustomization.yaml": "secretGenerator:\n- name: a\n  envs: [e]\n  literals: [k=" + canary + "]\n", "e": "k=" + canary + "\n"}, "build-failed"},
		"an environment not in UTF-8":     {tree.Map{"kustomization.yaml": "secretGenerator:\n- name: a\n  envs: [e]\n", "e": canary + "\xff=x\n"}, "kustomization-invalid"},
		"a literal in a generator's file": {tree.Map{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: a}\nliterals: [" + canary + "]\n"}, "kustomization-invalid"},
		"a generator without a name":      {tree.Map{"kustomization.yaml": "secretGenerator:\n- literals: [k=" + canary + "]\n"}, "build-failed"},
		"an unknown behavior":             {tree.Map{"kustomization.yaml": literal + "  behavior: " + "merge\n"}, "build-failed"},
		"a replacement out of bounds": {overlayOf("replacements: [{source: {kind: Secret, fieldPath: stringData.a, options: {delimiter: ':', index: 9}}, targets: [{select: {kind: Secret}, fieldPaths: [data.c]}]}]\n",
			secret), "build-failed"},
		"a replacement into a value":  {overlayOf("replacements: [{source: {kind: Secret, fieldPath: stringData.a}, targets: [{select: {kind: Secret}, fieldPaths: [stringData.a.b]}]}]\n", secret), "build-failed"},
		"a test of a JSON patch":      {overlayOf("patches:\n- target: {kind: Secret}\n  patch: |\n    - {op: test, path: /stringData/a, value: "+canary+"x}\n", secret), "build-failed"},
		"a patch without a name":      {overlayOf("patches:\n- patch: |\n    kind: Secret\n    stringData: {a: "+canary+"}\n", secret), "bad-patch"},
		"a patch that is almost JSON": {overlayOf("patches:\n- target: {kind: Secret}\n  patch: '[{op: add, path: /data/a, value: "+canary+"}]'\n", secret), "bad-patch"},
		"a patch for nothing":         {overlayOf("patches:\n- patch: |\n    apiVersion: v1\n    kind: Secret\n    metadata: {name: other}\n    stringData: {a: "+canary+"}\n", secret), "build-failed"},
		"a patch that is a text":      {overlayOf("patches:\n- target: {kind: Secret}\n  patch: "+canary+"\n", secret), "bad-patch"},
		"an object twice":             {overlayOf("", secret+"---\n"+secret), "build-failed"},
		"a transformer with a patch":  {overlayOf("transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: p}\n  patch: |\n    kind: Secret\n    stringData: {a: "+canary+"}\n", secret), "build-failed"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := kust.Build(context.Background(), c.tree, ".", kust.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := printDiags(r.Diags)
			if !hasCode(r, c.code) {
				t.Errorf("want %s, got\n%s", c.code, got)
			}
			for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
				if strings.Contains(got, form) {
					t.Errorf("the value is in\n%s", got)
				}
			}
		})
	}
}

// The cause of a fault is in the message, not the configuration that kustomize
// made of it.
func TestMessagesSayTheCause(t *testing.T) {
	for name, c := range map[string]struct {
		tree tree.Map
		want string
	}{
		"a transformer without a patch": {overlayOf("transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: p}\n", configMap), "must specify one of patch and path"},
		"both a patch and a path": {func() tree.Map {
			m := overlayOf("patches: [{path: p.yaml, patch: '[]', target: {kind: ConfigMap}}]\n", configMap)
			m["p.yaml"] = "[]\n"
			return m
		}(), "patch and path can't be set at the same time"},
		"a selector that is no pattern": {overlayOf("patches: [{target: {kind: '['}, patch: '[{\"op\": \"add\", \"path\": \"/a\", \"value\": \"b\"}]'}]\n", configMap), "missing closing ]"},
		"a field that is missing":       {overlayOf("replacements: [{source: {kind: ConfigMap, fieldPath: data.x}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.y]}]}]\n", configMap), "`data.x` is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := kust.Build(context.Background(), c.tree, ".", kust.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := printDiags(r.Diags); !strings.Contains(got, c.want) {
				t.Errorf("want %q in\n%s", c.want, got)
			}
		})
	}
}
