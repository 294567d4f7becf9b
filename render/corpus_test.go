package render_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/tree"
)

// corpusValues make the published templates concrete.
func corpusValues() map[string]string {
	return map[string]string{
		"CLUSTER_NAME": "demo", "NAMESPACE": "default", "AWS_REGION": "eu-west-1", "AWS_AVAILABILITY_ZONE": "eu-west-1a", "AWS_SSH_KEY_NAME": "key",
		"AWS_CONTROL_PLANE_MACHINE_TYPE": "m5.large", "AWS_NODE_MACHINE_TYPE": "m5.large", "KUBERNETES_VERSION": "v1.31.2",
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "2", "AWS_S3_BUCKET_NAME": "demo-bucket",
	}
}

// TestPublishedTemplates renders the templates that Cluster API's AWS provider
// publishes: all of them are accepted as they are.
func TestPublishedTemplates(t *testing.T) {
	names, err := filepath.Glob("../../shared/corpus/capa/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Skip("the published templates are not beside the project")
	}
	// The notes about them; nothing blocks them.
	noted := map[string]string{
		"cluster-template-machinepool.yaml":         "join-token-fetched",
		"cluster-template-flatcar-machinepool.yaml": "join-token-fetched",
	}
	for _, name := range names {
		base := filepath.Base(name)
		t.Run(base, func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := render.Render(context.Background(), tree.Map{base: string(data)}, base, render.Options{Vars: corpusValues()})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range r.Diags {
				if d.Severity == diag.Error || d.Code != noted[base] && d.Code != "older-field" {
					t.Errorf("unexpected: %s", d)
				}
				if !d.Known() {
					t.Errorf("without a position: %s", d)
				}
			}
			if len(r.Set.Pools) != 1 || len(r.Set.Clusters) != 1 {
				t.Fatalf("%d pools and %d clusters, want one each", len(r.Set.Pools), len(r.Set.Clusters))
			}
			p := r.Set.Pools[0]
			if p.Replicas.Value != 2 || !p.Replicas.Written {
				t.Errorf("replicas %+v, want 2 as written", p.Replicas)
			}
			for _, b := range p.Blocked {
				t.Errorf("blocked: %s", b)
			}
		})
	}
}
