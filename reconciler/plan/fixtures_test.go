package plan

import (
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

func assign[T any](dst *T, v *T) {
	if v != nil {
		*dst = *v
	}
}

func testPolicy() model.Policy {
	return model.Policy{Instance: "prod", Target: "blue", Source: "0123456789ab", Sources: []string{"0123456789ab"},
		Account: "000000000000", Region: "eu-west-1", Prune: model.Prune{Enabled: true}}
}

var subnetLookup = intent.Lookup{Kind: intent.Subnets, Cluster: intent.Key{Namespace: "default", Name: "c"}}

func testAnswers() observed.Answers {
	return observed.Answers{
		subnetLookup: {Subnets: []string{"subnet-a", "subnet-b"}},
		imageLookup:  {Image: &observed.Image{ID: "ami-1", RootDevice: "/dev/xvda", RootSize: 8}},
		eksLookup:    {Cluster: &observed.EKSCluster{Name: "c", Version: "1.33", Endpoint: "https://e", Status: "ACTIVE"}},
		roleLookup:   {RoleARN: "arn:aws:iam::000000000000:role/nodes"},
	}
}

var (
	imageLookup = intent.Lookup{Kind: intent.ImageByName, Name: "capa-*", Owner: "1"}
	eksLookup   = intent.Lookup{Kind: intent.EKSCluster, Name: "c"}
	roleLookup  = intent.Lookup{Kind: intent.Role, Name: "nodes"}
)

func ref(kind, name string) intent.ObjectRef {
	return intent.ObjectRef{Kind: kind, Namespace: "default", Name: name}
}

func groupPool(name, instanceType string, replicas int32) intent.Pool {
	return intent.Pool{
		Key: intent.Key{Namespace: "default", Name: name}, Kind: intent.GroupPool,
		MachinePool: ref("MachinePool", name), Infrastructure: ref("AWSMachinePool", name),
		ClusterKey: intent.Key{Namespace: "default", Name: "c"},
		Replicas:   intent.Number{Value: replicas, Written: true},
		LaunchTemplate: &intent.LaunchTemplate{Name: name, Image: imageLookup, Tags: map[string]string{"Name": name},
			Data: intent.TemplateData{InstanceType: instanceType, KeyName: "key"}},
		Group: &intent.Group{Name: name, MinSize: 0, MaxSize: 10, Subnets: subnetLookup,
			GroupSettings: intent.GroupSettings{DefaultCooldown: new(int32(300)), DefaultInstanceWarmup: new(int32(300)), CapacityRebalance: new(false)}, Tags: map[string]string{"Name": name}, Refresh: intent.Refresh{Strategy: "Rolling"}},
	}
}

func nodegroupPool(name string, replicas int32) intent.Pool {
	return intent.Pool{
		Key: intent.Key{Namespace: "default", Name: name}, Kind: intent.NodegroupPool,
		MachinePool: ref("MachinePool", name), Infrastructure: ref("AWSManagedMachinePool", name),
		Replicas: intent.Number{Value: replicas, Written: true},
		Nodegroup: &intent.Nodegroup{Name: name, ClusterName: "c", Cluster: eksLookup, Role: roleLookup, Subnets: subnetLookup,
			MinSize: intent.Number{Value: 1}, MaxSize: intent.Number{Value: max(replicas, 1)},
			NodegroupSettings: intent.NodegroupSettings{AMIType: "AL2023_x86_64_STANDARD", CapacityType: "ON_DEMAND", UpdateConfig: intent.UpdateConfig{MaxUnavailable: 1}}},
	}
}

func testInput(pools ...intent.Pool) model.Input {
	set := &intent.Set{Pools: pools}
	set.Sort()
	return model.Input{Policy: testPolicy(), Commit: content.Commit{Revision: "abcdef0123456789", Subject: "scale"}, Set: set, Answers: testAnswers(),
		Fleet: model.NewFleet(map[string][]model.Claim{"blue": model.Claims(set)}, true)}
}

// fataler is the part of testing.TB that the model uses.
type fataler interface {
	Helper()
	Fatal(args ...any)
}
