package render_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

const onePool = `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: web}
spec:
  clusterName: c
  template:
    spec:
      clusterName: c
      bootstrap: {dataSecretName: web}
      infrastructureRef: {kind: AWSMachinePool, name: web}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: web}
spec:
  maxSize: 3
  awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}, sshKeyName: "${KEY}"}
---
apiVersion: v1
kind: Secret
metadata: {name: web}
stringData: {value: "the-secret-text ${NOT_OURS}"}
`

func renderOne(t *testing.T, text string, vars map[string]string) *render.Result {
	t.Helper()
	r, err := render.Render(context.Background(), tree.Map{"pool.yaml": text}, "pool.yaml", render.Options{Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPrintedIntentsHoldNoUserData(t *testing.T) {
	r := renderOne(t, onePool, map[string]string{"KEY": "k"})
	if r.Diags.HasErrors() {
		t.Fatal(r.Diags)
	}
	if got := r.Set.Pools[0].LaunchTemplate.UserData.Text; got != "the-secret-text ${NOT_OURS}" {
		t.Errorf("user data %q", got)
	}
	asJSON, err := r.IntentsJSON(asItIs)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := r.IntentsYAML(asItIs)
	if err != nil {
		t.Fatal(err)
	}
	if all := string(asJSON) + string(asYAML); strings.Contains(all, "the-secret-text") {
		t.Error("printed intents hold user data")
	}
	var doc struct {
		Pools []struct {
			Group   struct{ MaxSize int }
			Origins map[string]diag.Position
		}
	}
	if err := json.Unmarshal(asJSON, &doc); err != nil {
		t.Fatal(err)
	}
	want := diag.Position{File: "pool.yaml", Line: 16, Column: 12}
	if p := doc.Pools[0]; p.Group.MaxSize != 3 || p.Origins["group.maxSize"] != want {
		t.Errorf("maxSize %d from %v, want 3 from %v", p.Group.MaxSize, p.Origins["group.maxSize"], want)
	}
	if _, ok := doc.Pools[0].Origins["group.minSize"]; ok {
		t.Error("a default has an origin")
	}
}

func TestUnsetVariableOfAReadKind(t *testing.T) {
	r := renderOne(t, onePool, nil)
	if !r.Diags.HasErrors() || len(r.Diags) != 1 || r.Diags[0].Code != "unset-variable" || r.Diags[0].Line != 17 {
		t.Errorf("diagnostics %v, want one unset-variable at line 17", r.Diags)
	}
}

func TestYAMLIsThereWhenValidationFails(t *testing.T) {
	r := renderOne(t, strings.Replace(onePool, "maxSize: 3", "maxsize: 3", 1), map[string]string{"KEY": "k"})
	if !r.Diags.HasErrors() {
		t.Fatal("a misspelt field was accepted")
	}
	if !strings.Contains(string(r.YAML()), "maxsize: 3") {
		t.Errorf("YAML is %q", r.YAML())
	}
}

// TestBlockedPoolsKnowTheirPlace checks that a plan can point at what blocks it.
func TestBlockedPoolsKnowTheirPlace(t *testing.T) {
	text := strings.Replace(onePool, "bootstrap: {dataSecretName: web}", "version: v1.31.0\n      bootstrap: {configRef: {kind: KubeadmConfig, name: web}}", 1) +
		"---\napiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: web}\nspec: {joinConfiguration: {discovery: {bootstrapToken: {token: abcdef.0123456789abcdef}}}}\n"
	r := renderOne(t, text, map[string]string{"KEY": "k"})
	if r.Diags.HasErrors() || len(r.Set.Pools) != 1 || len(r.Set.Pools[0].Blocked) != 1 {
		t.Fatalf("pools %v, diagnostics %v", r.Set.Pools, r.Diags)
	}
	if b := r.Set.Pools[0].Blocked[0]; b.Code != "kubeadm-join-incomplete" || b.File != "pool.yaml" || b.Line != 28 {
		t.Errorf("blocked %v at %v", b.Code, b.Position)
	}
}

// unreadable is a tree whose files are gone, as in a mirror that lost objects.
type unreadable struct{ tree.Map }

var errLost = errors.New("object is missing")

func (u unreadable) ReadFile(string) ([]byte, error) { return nil, errLost }

func TestUnreadableTreeIsAnErrorAndNotAnEmptyRender(t *testing.T) {
	_, err := render.Render(context.Background(), unreadable{tree.Map{"pool.yaml": onePool}}, "pool.yaml", render.Options{})
	if !errors.Is(err, errLost) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, errLost)
	}
}

func TestOriginOfAMissingField(t *testing.T) {
	r := renderOne(t, onePool, map[string]string{"KEY": "k"})
	ref := r.Set.Pools[0].Infrastructure
	if _, ok := r.Origin(ref, intent.Path{"spec", "minSize"}); ok {
		t.Error("a field that is not written has an origin")
	}
}

func BenchmarkRender(b *testing.B) {
	t := tree.Map{"base/kustomization.yaml": "resources: [pool.yaml]\n", "base/pool.yaml": onePool,
		"prod/kustomization.yaml": "resources: [../base]\npatches:\n- patch: |\n    apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\n    kind: AWSMachinePool\n    metadata: {name: web}\n    spec: {maxSize: 9}\n"}
	for b.Loop() {
		r, err := render.Render(context.Background(), t, "prod", render.Options{Vars: map[string]string{"KEY": "k"}})
		if err != nil || r.Diags.HasErrors() {
			b.Fatal(err, r.Diags)
		}
	}
}
