package render_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/tree"
)

// A variable without a value does not hide what no value could mend, and what a
// value could mend is not held against the manifest.
func TestFaultsBesideUnsetVariables(t *testing.T) {
	files := tree.Map{"pools/a.yaml": `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: web}
spec:
  minSize: ${MIN}
  maxSize: ten
  availabilityZoneSubnetType: ${KIND}
  additionalTags: {"${KEY}": x}
  capacityRebalance: ${SPOT:-true}
  awsLaunchTemplate:
    instanceTyp: m5.large
    rootVolume: {size: 8, type: "${TYPE}"}
    instanceMetadataOptions: {httpTokens: perhaps}
`}
	r, err := render.Render(context.Background(), files, "pools", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range r.Diags {
		got = append(got, d.Position.String()+" "+d.Code)
	}
	want := []string{
		"pools/a.yaml:5:12 unset-variable",
		"pools/a.yaml:6:12 wrong-type",
		"pools/a.yaml:7:31 unset-variable",
		"pools/a.yaml:8:20 unset-variable",
		"pools/a.yaml:11:5 unknown-field",
		"pools/a.yaml:12:33 unset-variable",
		"pools/a.yaml:13:43 bad-enum",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if len(r.Set.Pools) > 0 || r.Objects != nil || r.YAML() != nil || !r.Diags.HasErrors() {
		t.Error("something was made of manifests whose variables have no value")
	}
}

// A secret whose variable has no value has nothing to hide: the hint names the
// variable, and how to write it.
func TestHintOfAnUnsetSecret(t *testing.T) {
	files := tree.Map{"pools/a.yaml": `apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: web}
spec:
  joinConfiguration:
    discovery:
      bootstrapToken: {token: "${JOIN_TOKEN}", apiServerEndpoint: "a:6443", unsafeSkipCAVerification: true}
`}
	r, err := render.Render(context.Background(), files, "pools", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Diags) != 1 || r.Diags[0].Code != "unset-variable" || !strings.Contains(r.Diags[0].Detail, "$${JOIN_TOKEN}") {
		t.Errorf("%v", r.Diags)
	}
}

// A variable without a value is one error, which names each place once.
func TestAnUnsetVariableIsOneError(t *testing.T) {
	m := tree.Map{"kustomization.yaml": "resources: [base]\npatches:\n- {path: p.yaml}\n", "base/kustomization.yaml": "resources: [pool.yaml]\n"}
	m["base/pool.yaml"] = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: web}\nspec:\n  minSize: ${SIZE}\n  awsLaunchTemplate: {instanceType: \"${TYPE}\"}\n"
	m["p.yaml"] = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: web}\nspec: {maxSize: \"${SIZE}\"}\n"
	r, err := render.Render(t.Context(), m, ".", render.Options{GiveValue: "somewhere"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Diags.Count(diag.Error) != 2 {
		t.Fatalf("%v", r.Diags)
	}
	for _, d := range r.Diags {
		if d.Code != "unset-variable" || !strings.Contains(d.Detail, "somewhere") {
			t.Errorf("%+v", d)
		}
		places := []string{d.Position.String()}
		for _, rel := range d.Related {
			places = append(places, rel.String())
		}
		if strings.Contains(d.Summary, "SIZE") != (len(places) == 2) {
			t.Errorf("%s: %q", d.Summary, places)
		}
		if len(places) == 2 && (!strings.HasPrefix(places[0], "base/pool.yaml:") || places[1] != "p.yaml:4:17") {
			t.Errorf("%s: %q", d.Summary, places)
		}
	}
}

// However often it is used, what is told is bounded and says so, and nothing else gets
// lost for it.
func TestAnUnsetVariableInThousandsOfPlaces(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: web}\nspec:\n  additionalTags:\n    bad: ${a.b}\n")
	for i := range 700 {
		fmt.Fprintf(&text, "    k%d: ${NAME}\n", i)
	}
	r, err := render.Render(t.Context(), tree.Map{"m.yaml": text.String()}, "m.yaml", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]int{}
	for _, d := range r.Diags {
		codes[d.Code]++
		if d.Code == "unset-variable" && (len(d.Related) != 100 || !strings.Contains(d.Detail, fmt.Sprintf("in %d places more", 700-1-100))) {
			t.Errorf("%d places, %s", len(d.Related), d.Detail)
		}
	}
	if codes["unset-variable"] != 1 || codes["bad-variable"] != 1 || codes["too-large"] > 0 {
		t.Errorf("%v", codes)
	}
}
