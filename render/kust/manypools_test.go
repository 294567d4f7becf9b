package kust_test

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/tree"
)

// manyPools is one overlay of n pools.
func manyPools(n int, fields string) tree.Map {
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
