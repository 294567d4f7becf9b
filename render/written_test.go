package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/tree"
)

// What was written down is what was kept, and it holds for the same trees.
func TestARenderIsReadAsItWasWritten(t *testing.T) {
	written := 0
	for _, r := range goldenResults(t) {
		k, err := r.Keep(render.NewShared(nil))
		if err != nil {
			t.Fatal(err)
		}
		text := k.Pack()
		if text == nil {
			continue
		}
		written++
		w, err := render.Unpack(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := w.Keep(render.NewShared(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(k.Set, again.Set) + cmp.Diff(k.Diags, again.Diags); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if k.Reads.Digest() != again.Reads.Digest() || again.Hidden.Len() != 0 || string(again.Pack()) != string(text) {
			t.Error("it has read something else")
		}
		if _, err := render.Unpack(text[:len(text)-1]); err == nil {
			t.Error("a cut text is read")
		}
	}
	if written < 5 {
		t.Errorf("%d renders were written", written)
	}
}

// No secret is written down, nor what was made beside one.
func TestNoRenderBesideASecretIsWritten(t *testing.T) {
	pool := "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: abc}\nspec: {minSize: 1, maxSize: 2, additionalTags: {a: \"${A:=b}\"}, awsLaunchTemplate: {instanceType: m5.large}}\n---\n" +
		"apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachinePool\nmetadata: {name: abc}\nspec: {clusterName: c, template: {spec: {clusterName: c, version: v1.33.0, bootstrap: {dataSecretName: \"\"}, infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: abc}}}}\n"
	for name, c := range map[string]struct {
		more    string
		options render.Options
		want    bool
	}{
		"plain":                   {want: true},
		"a variable":              {options: render.Options{Vars: map[string]string{"A": "x"}}, want: true},
		"a secret variable":       {options: render.Options{Vars: map[string]string{"A": "x"}, SecretVars: []string{"A"}}},
		"one that nothing uses":   {options: render.Options{Vars: map[string]string{"B": "x"}, SecretVars: []string{"B"}}},
		"a Secret":                {more: "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {value: abc}\n"},
		"a Secret without values": {more: "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"},
		"an error":                {more: "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: bcd}\nspec: {minSize: many}\n"},
	} {
		k, err := render.Keep(t.Context(), tree.Map{"a.yaml": pool + c.more}, "a.yaml", c.options, render.NewShared(nil))
		if err != nil {
			t.Fatal(err)
		}
		if text := k.Pack(); (text != nil) != c.want {
			t.Errorf("%s: %d bytes are written; %v", name, len(text), k.Diags)
		} else if c.want && !strings.Contains(string(text), "m5.large") {
			t.Errorf("%s: %q", name, text)
		}
	}
}
