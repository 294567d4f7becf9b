// Package fleettest has targets and manifests for tests of fleets.
package fleettest

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/reconciler/targetspec"
)

// Targets reads targets of the source s from the text of a configuration in dir.
func Targets(t testing.TB, dir, text string) []targetspec.Target {
	t.Helper()
	var out []targetspec.Target
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&out); err != nil {
		t.Fatal(err)
	}
	for i := range out {
		out[i].SetDefaults(dir)
		if out[i].Source == "" {
			out[i].Source = "s"
		}
	}
	return out
}

// Pool returns a MachinePool with its AWSMachinePool, both with the same name, and with up to
// ${MAX:=3} machines; Git wants 1. Changes are pairs of a text and its replacement.
func Pool(name string, changes ...string) string {
	return strings.NewReplacer(changes...).Replace(strings.ReplaceAll(pool, "NAME", name))
}

const pool = `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: NAME}
spec:
  clusterName: demo
  replicas: 1
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: NAME}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: NAME}
spec:
  minSize: 1
  maxSize: ${MAX:=3}
  awsLaunchTemplate: {instanceType: m5.large, ami: {eksLookupType: AmazonLinux2023}}
`
