package model

import (
	"testing"

	"github.com/weir-gitops/weir/render/intent"
)

// The origin of a size is the line that decides it.
func TestTheOriginOfASizeIsWhatDecidesIt(t *testing.T) {
	infra, machinePool := intent.ObjectRef{Kind: "AWSMachinePool", Name: "web"}, intent.ObjectRef{Kind: "MachinePool", Name: "web"}
	group := func(replicas intent.Number) *intent.Pool {
		return &intent.Pool{MachinePool: machinePool, Infrastructure: infra, Replicas: replicas, Group: &intent.Group{MinSize: 3, MaxSize: 9}}
	}
	nodegroup := func(replicas intent.Number) *intent.Pool {
		return &intent.Pool{MachinePool: machinePool, Infrastructure: infra, Replicas: replicas,
			Nodegroup: &intent.Nodegroup{MinSize: intent.Number{Value: 3}, MaxSize: intent.Number{Value: 9}}}
	}
	written := func(n int32) intent.Number { return intent.Number{Value: n, Written: true} }
	for name, tt := range map[string]struct {
		pool   *intent.Pool
		to     int32
		object intent.ObjectRef
		path   string
	}{
		"within":                    {group(written(5)), 5, machinePool, "spec.replicas"},
		"at the bound itself":       {group(written(3)), 3, machinePool, "spec.replicas"},
		"below":                     {group(written(1)), 3, infra, "spec.minSize"},
		"above":                     {group(written(20)), 9, infra, "spec.maxSize"},
		"a default below":           {group(intent.Number{Value: 1}), 3, infra, "spec.minSize"},
		"nodegroup, below":          {nodegroup(written(1)), 3, infra, "spec.scaling.minSize"},
		"nodegroup, above":          {nodegroup(written(20)), 9, infra, "spec.scaling.maxSize"},
		"nodegroup, kept by others": {nodegroup(intent.Number{Value: 1}), 5, machinePool, "spec.replicas"},
	} {
		if ch := ReplicasChange(tt.pool, nil, tt.to); ch.Object != tt.object || ch.Path.String() != tt.path {
			t.Errorf("%s: %v %s", name, ch.Object, ch.Path)
		}
	}
}
