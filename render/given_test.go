package render_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/tree"
)

// The values of a Secret are hidden, and nothing of the render is written down, also where the
// build does not give the Secret, or gives it with other values than a replacement has read.
func TestASecretThatTheBuildDoesNotGive(t *testing.T) {
	const value = "hunter2-Hunter2-hunter2"
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	pool := "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: abc}\nspec: {minSize: 1, maxSize: 2, additionalTags: {a: b}, awsLaunchTemplate: {instanceType: m5.large}}\n---\n" +
		"apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachinePool\nmetadata: {name: abc}\nspec: {clusterName: c, template: {spec: {clusterName: c, version: v1.33.0, bootstrap: {dataSecretName: \"\"}, infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: abc}}}}\n"
	const local = `{config.kubernetes.io/local-config: "true"}`
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {value: " + value + "}\n"
	from := func(kind, field string) string {
		return "replacements:\n- source: {kind: " + kind + ", name: s, fieldPath: " + field + "}\n  targets:\n  - select: {kind: AWSMachinePool}\n    fieldPaths: [spec.additionalTags.a]\n"
	}
	files := func(kustomization string, more ...string) tree.Map {
		m := tree.Map{"b/kustomization.yaml": kustomization, "b/a.yaml": pool, "o/kustomization.yaml": "resources: [../b]\n"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	generated := func(sources string) string {
		return "resources: [a.yaml]\nsecretGenerator:\n- name: s\n  " + sources + "\n  options: {disableNameSuffixHash: true, annotations: " + local + "}\n" + from("Secret", "data.value")
	}
	above := func(patch string) string { return "resources: [../b]\npatches:\n- " + patch + "\n" }
	for name, m := range map[string]tree.Map{
		"local":              files("resources: [a.yaml, s.yaml]\n"+from("Secret", "stringData.value"), "b/s.yaml", strings.Replace(secret, "name: s", "name: s, annotations: "+local, 1)),
		"local, in a list":   files("resources: [a.yaml, s.yaml]\n"+from("Secret", "stringData.value"), "b/s.yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s, annotations: "+local+"}, stringData: {value: "+value+"}}\n"),
		"deleted above":      files("resources: [a.yaml, s.yaml]\n"+from("Secret", "stringData.value"), "b/s.yaml", secret, "o/kustomization.yaml", above("patch: '{apiVersion: v1, kind: Secret, metadata: {name: s}, $patch: delete}'")),
		"another one above":  files("resources: [a.yaml, s.yaml]\n"+from("Secret", "stringData.value"), "b/s.yaml", secret, "o/kustomization.yaml", above("patch: '{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {value: Another-1-of-them}}'")),
		"patched, then gone": files("resources: [a.yaml, s.yaml]\npatches:\n- {target: {kind: Secret}, patch: '[{\"op\": \"replace\", \"path\": \"/stringData/value\", \"value\": \""+value+"\"}]'}\n"+from("Secret", "stringData.value"), "b/s.yaml", strings.Replace(strings.Replace(secret, value, "Another-1-of-them", 1), "name: s", "name: s, annotations: "+local, 1)),
		"a literal":          files(generated("literals: ['value=" + value + "']")),
		"a file":             files(generated("files: [value]"), "b/value", value),
		"variables":          files(generated("envs: [v]"), "b/v", "other=x\nvalue="+value+"\n"),
		"a generator's file": files("resources: [a.yaml]\ngenerators: [g.yaml]\n"+from("Secret", "data.value"), "b/g.yaml", "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: s}\nliterals: [value="+value+"]\noptions: {disableNameSuffixHash: true, annotations: "+local+"}\n"),
		"a token": files("resources: [a.yaml, s.yaml]\n"+from("KubeadmConfig", "spec.joinConfiguration.discovery.bootstrapToken.token"),
			"b/s.yaml", "apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: s, annotations: "+local+"}\nspec: {joinConfiguration: {discovery: {bootstrapToken: {token: "+value+"}}}}\n"),
	} {
		r, err := render.Render(t.Context(), m, "o", render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if all := string(r.YAML()); r.Diags.HasErrors() || !strings.Contains(all, "a: "+value) && !strings.Contains(all, "a: "+encoded) {
			t.Errorf("%s: the test shows nothing: %v\n%s", name, r.Diags, all)
		}
		k, err := r.Keep(render.NewShared(nil))
		if err != nil {
			t.Fatal(err)
		}
		if text := k.Pack(); text != nil {
			t.Errorf("%s: %q is written", name, text)
		}
		if shown, _ := r.ShownYAML(); strings.Contains(string(shown), value) || strings.Contains(string(shown), encoded) {
			t.Errorf("%s: it is shown:\n%s", name, shown)
		}
	}
}
