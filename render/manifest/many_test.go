package manifest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/manifest"
)

// What many objects mean, and what is wrong with them, does not depend on how many are decoded
// at a time.
func TestManyObjectsAreDecodedAsOneAfterTheOther(t *testing.T) {
	var text strings.Builder
	for i := range 150 {
		size, more := fmt.Sprint(i), ""
		switch i % 7 {
		case 0:
			size = "much"
		case 1:
			more = "unheardOf: 1, "
		}
		fmt.Fprintf(&text, `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: pool-%[1]d}
spec:
  clusterName: demo
  replicas: %[2]s
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: pool-%[1]d}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: pool-%[1]d}
spec: {minSize: 0, maxSize: 200, %[3]sawsLaunchTemplate: {instanceType: m5.large, ami: {eksLookupType: AmazonLinux2023}}}
---
`, (i*37)%150, size, more)
	}
	objs := objects(t, text.String())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want, wrong := manifest.Intents(objs, manifest.Options{})
	if len(want.Pools) < 100 || len(wrong) < 40 {
		t.Fatalf("%d pools, %d faults", len(want.Pools), len(wrong))
	}
	for _, procs := range []int{2, 8} {
		runtime.GOMAXPROCS(procs)
		got, found := manifest.Intents(objs, manifest.Options{})
		if diff := cmp.Diff(want, got) + cmp.Diff(wrong, found); diff != "" {
			t.Errorf("on %d processors (-one after the other +beside each other):\n%s", procs, diff)
		}
	}
}
