package build

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/tree"
)

// ManyPools is one overlay of n pools.
func ManyPools(n int, fields string) tree.Map {
	m, names := tree.Map{"kustomization.yaml": fields + "resources: [base]\n"}, "resources:\n"
	for i := range n {
		file := fmt.Sprintf("pool-%04d.yaml", i)
		names += "- " + file + "\n"
		m["base/"+file] = strings.ReplaceAll(`apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: NAME, namespace: fleet, labels: {team: a, cluster.x-k8s.io/cluster-name: main}}
spec:
  clusterName: main
  replicas: 3
  template:
    spec:
      clusterName: main
      version: v1.31.0
      bootstrap: {dataSecretName: boot}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: NAME}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: NAME, namespace: fleet, labels: {team: a, cluster.x-k8s.io/cluster-name: main}}
spec:
  minSize: 1
  maxSize: 3
  subnets: [{id: subnet-1}, {id: subnet-2}]
  additionalTags: {a: b, c: d}
  mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m6i.large}]}
  awsLaunchTemplate:
    ami: {eksLookupType: AmazonLinux2023}
    iamInstanceProfile: nodes
    instanceType: t3.large
    rootVolume: {size: 20, type: gp3}
`, "NAME", fmt.Sprintf("web-%04d", i))
	}
	m["base/kustomization.yaml"] = names
	return m
}

// The default limits admit 2,000 pools in one overlay, and what such overlays do to all
// of them. To build them takes kustomize a minute of CPU, which BenchmarkOneOverlay does.
func TestManyPoolsInOneOverlayAreAdmitted(t *testing.T) {
	for name, c := range map[string]struct {
		pools  int
		fields string
		fault  bool
	}{
		"a base alone":     {2000, "", false},
		"a namespace":      {2000, "namespace: other\n", false},
		"a prefix":         {2000, "namePrefix: a-\n", false},
		"labels":           {2000, "labels: [{pairs: {env: prod, stage: last}}]\n", false},
		"a patch":          {2000, "patches: [{target: {kind: AWSMachinePool}, patch: '[{\"op\": \"replace\", \"path\": \"/spec/maxSize\", \"value\": 9}]'}]\n", false},
		"many more":        {2600, "", true},
		"for much of them": {2000, "labels: [{pairs: {" + strings.Join(strings.Split("abcdefghijklmnop", ""), ": a, ") + ": a}}]\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWalker(newView(context.Background(), ManyPools(c.pools, c.fields), Limits{}.withDefaults()))
			if w.walk("."); w.diags.HasErrors() != c.fault {
				t.Errorf("%v", w.diags)
			}
		})
	}
}
