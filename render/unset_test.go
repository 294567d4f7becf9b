package render_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render"
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
	if len(r.Set.Pools) > 0 || r.Objects != nil || r.YAML() != nil || r.Whole() {
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
