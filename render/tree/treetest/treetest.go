// Package treetest has trees for tests.
package treetest

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/tree"
)

// Indexed is a Map with an index, so that directory lookups are as fast as in a real tree.
type Indexed struct {
	tree.Map
	entries map[string]tree.Entry
}

// New returns an indexed tree of a Map, which must not change.
func New(m tree.Map) Indexed {
	t := Indexed{Map: m, entries: map[string]tree.Entry{".": {Name: ".", Mode: tree.Dir, Size: -1}}}
	for _, p := range slices.Sorted(maps.Keys(m)) {
		e, err := m.Lookup(p)
		if err != nil {
			panic(err)
		}
		t.entries[p] = e
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			t.entries[d] = tree.Entry{Name: path.Base(d), Mode: tree.Dir, Size: -1}
		}
	}
	return t
}

// Lookup implements tree.Tree.
func (t Indexed) Lookup(p string) (tree.Entry, error) {
	if e, ok := t.entries[p]; ok {
		return e, nil
	}
	return tree.Entry{}, &fs.PathError{Op: "lookup", Path: p, Err: fs.ErrNotExist}
}

// Pools returns an overlay with n pools, each in its own file. fields are additional fields of its
// kustomization.
func Pools(n int, fields string) tree.Map {
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
      bootstrap: {dataSecretName: ""}
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
