package kust_test

import (
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/render/tree/treetest"
)

// renamedPools is one overlay of n pools with a prefix, and a configuration that says where
// their objects name each other.
func renamedPools(n int) tree.Map {
	m := treetest.Pools(n, "namePrefix: eu-\n")
	m["base/kustomization.yaml"] += "configurations: [names.yaml]\n"
	m["base/names.yaml"] = "nameReference:\n- kind: AWSMachinePool\n  fieldSpecs: [{kind: MachinePool, path: spec/template/spec/infrastructureRef/name}]\n"
	return m
}
