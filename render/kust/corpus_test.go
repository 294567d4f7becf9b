package kust_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// TestPublishedTemplates builds the cluster templates that CAPA publishes, where
// they lie beside the repository.
func TestPublishedTemplates(t *testing.T) {
	names, err := filepath.Glob("../../../shared/corpus/capa/*.yaml")
	if err != nil || len(names) == 0 {
		t.Skip("no corpus beside the repository")
	}
	vars := map[string]string{
		"CLUSTER_NAME": "main", "NAMESPACE": "ns", "AWS_REGION": "eu-west-1", "AWS_AVAILABILITY_ZONE": "eu-west-1a", "AWS_SSH_KEY_NAME": "key",
		"AWS_CONTROL_PLANE_MACHINE_TYPE": "t3.large", "AWS_NODE_MACHINE_TYPE": "t3.large", "KUBERNETES_VERSION": "v1.33.1",
		"CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "2", "AWS_S3_BUCKET_NAME": "bucket",
	}
	weirs := func(ref intent.ObjectRef) bool {
		return strings.HasSuffix(ref.Group(), "cluster.x-k8s.io") && !strings.HasPrefix(ref.Group(), "addons.")
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			m := tree.Map{"t.yaml": string(text)}
			r, err := kust.Build(context.Background(), m, "t.yaml", kust.Options{Vars: vars, Strict: weirs})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Diags) > 0 {
				t.Fatal(printDiags(r.Diags))
			}
			pools := 0
			for _, o := range r.Objects {
				if o.Ref.Kind == "MachinePool" {
					pools++
					if n := find(o.Node, "spec", "replicas"); n.ShortTag() != "!!int" || n.Value != "2" {
						t.Errorf("replicas is %q %s", n.Value, n.ShortTag())
					}
				}
				eachScalar(o.Node, nil, func(p intent.Path, _ *yaml.Node) {
					if _, ok := r.Origin(o.Ref, p); !ok {
						t.Errorf("no origin for %s %s", o.Ref, p)
					}
				})
				// Texts that hold manifests of their own are as they were.
				if o.Ref.Kind == "ConfigMap" {
					data := find(o.Node, "data")
					for i := 1; i < len(data.Content); i += 2 {
						for line := range strings.Lines(data.Content[i].Value) {
							if strings.Contains(line, "$(") && !strings.Contains(string(text), strings.TrimRight(line, "\n")) {
								t.Errorf("line changed: %s", line)
							}
						}
					}
				}
			}
			if pools == 0 {
				t.Error("no machine pool")
			}
			delete(vars, "CLUSTER_NAME")
			defer func() { vars["CLUSTER_NAME"] = "main" }()
			r, err = kust.Build(context.Background(), m, "t.yaml", kust.Options{Vars: vars, Strict: weirs})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range r.Diags {
				line := strings.Split(string(text), "\n")[max(d.Line, 1)-1]
				if d.Code != "unset-variable" || !strings.Contains(line, "${CLUSTER_NAME}") {
					t.Errorf("%s: the line is %q", d, line)
				}
			}
			if !hasCode(r, "unset-variable") {
				t.Error("an unset variable was not reported")
			}
		})
	}
}
