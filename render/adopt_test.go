package render_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/tree"
)

// The annotation weir.dev/adopt is read from either object of a pool, and takes
// two words.
func TestAnnotationAdopt(t *testing.T) {
	const pool = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: web, annotations: {%s}}
spec:
  clusterName: demo
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: web}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: web, annotations: {%s}}
spec: {minSize: 0, maxSize: 3, awsLaunchTemplate: {instanceType: m5.large}}
`
	for name, c := range map[string]struct {
		machine, infra string
		want           bool
		fault          string
	}{
		"absent":           {"", "", false, ""},
		"on the pool":      {"", `weir.dev/adopt: "true"`, true, ""},
		"on the machine":   {`weir.dev/adopt: "true"`, "", true, ""},
		"the pool wins":    {`weir.dev/adopt: "true"`, `weir.dev/adopt: "false"`, false, ""},
		"another word":     {"", `weir.dev/adopt: "yes"`, false, `annotation weir.dev/adopt cannot be "yes"`},
		"another spelling": {"", `weir.dev/adop: "true"`, false, `did you mean "weir.dev/adopt"`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := render.Render(context.Background(), tree.Map{"pool.yaml": fmt.Sprintf(pool, c.machine, c.infra)}, "pool.yaml", render.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(r.Diags); r.Diags.HasErrors() != (c.fault != "") {
				t.Fatalf("diagnostics: %s", got)
			}
			if c.fault != "" {
				d := r.Diags[0]
				if !strings.Contains(d.Summary+" "+d.Detail, c.fault) || d.Line == 0 {
					t.Errorf("got %+v", d)
				}
				return
			}
			if got := r.Set.Pools[0].Adopt; got != c.want {
				t.Errorf("adopt: got %v, want %v", got, c.want)
			}
		})
	}
}
