package preflight

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// fake is an account in which everything that pools of tests name is in order. It records
// the calls.
type fake struct {
	mu         sync.Mutex
	calls      []string
	fails      map[string]*observed.Error // by operation
	most       map[string]int             // names of a call, by operation
	hangs      string                     // the operation that is not answered
	profiles   map[string]Profile
	keyPairs   map[string]bool
	groups     map[string]bool
	subnets    map[string]Subnet
	targets    map[string]TargetGroup
	placements map[string]PlacementGroup
	keys       map[string]Key
	types      map[string]InstanceType
	offerings  map[string][]string
	images     map[string]bool
	quotas     map[string]float64
	snapshots  map[string]int32
	running    []Instance
	reserved   []Reservation
	refuses    *observed.Error
	dry        []DryRun
}

func newFake() *fake {
	all := []string{"eu-west-1a", "eu-west-1b"}
	return &fake{
		fails: map[string]*observed.Error{}, profiles: map[string]Profile{"nodes": {Role: "nodes"}, "empty": {}}, keyPairs: map[string]bool{"ops": true}, groups: map[string]bool{"sg-1": true},
		subnets: map[string]Subnet{"subnet-a": {Zone: "eu-west-1a", Free: 100}, "subnet-b": {Zone: "eu-west-1b", Free: 100}, "subnet-w": {Zone: "eu-west-1-wl1-dub-wlz-1", Free: 100}},
		targets: map[string]TargetGroup{tg("web"): {VPC: "vpc-1", Type: "instance"}, tg("far"): {VPC: "vpc-2", Type: "instance"}, tg("pods"): {VPC: "vpc-1", Type: "ip"}},
		placements: map[string]PlacementGroup{
			"tight": {Strategy: "cluster", State: "available"}, "wide": {Strategy: "spread", State: "available"}, "parts": {Strategy: "partition", State: "available", Partitions: 3}, "going": {Strategy: "spread", State: "deleting"},
		},
		keys: map[string]Key{"alias/good": {State: "Enabled", Symmetric: true}, "alias/off": {State: "Disabled", Symmetric: true}, "alias/rsa": {State: "Enabled"}},
		types: map[string]InstanceType{
			"m5.large":    {VCPUs: 2, Architectures: []string{"x86_64"}, Markets: []string{"on-demand", "spot"}, Strategies: []string{"cluster", "partition", "spread"}, Enclaves: "unsupported", Hibernation: new(true), EFA: new(false), MaxInterfaces: 3, NetworkCards: 1, Cores: []int32{1}, Threads: []int32{1, 2}, Features: []string{"nested-virtualization"}, Weightings: []string{"default"}},
			"m7g.large":   {VCPUs: 2, Architectures: []string{"arm64"}, Markets: []string{"on-demand", "spot"}, Enclaves: "supported", Hibernation: new(false)},
			"t3.micro":    {VCPUs: 2, Architectures: []string{"x86_64"}, Strategies: []string{"partition", "spread"}, Markets: []string{"on-demand"}},
			"p5.48xlarge": {VCPUs: 192, Architectures: []string{"x86_64"}, EFA: new(true), MaxEFAs: 2, NetworkCards: 32, MaxInterfaces: 64},
		},
		offerings: map[string][]string{"m5.large": all, "m7g.large": all, "t3.micro": all, "p5.48xlarge": {"eu-west-1b"}},
		images:    map[string]bool{"amazon-eks-node-al2023-x86_64-standard-1.34-v20251112": true, "bottlerocket-aws-k8s-1.34-arm64-v1.50.0-4f3d1c2b": true},
		snapshots: map[string]int32{"snap-1": 5},
		quotas:    map[string]float64{"L-1216C47A": 100, "L-34B43A08": 10, "L-417A185B": 0},
	}
}

func tg(name string) string {
	return "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/" + name + "/0123456789abcdef"
}

func (f *fake) call(ctx context.Context, op string) error {
	if f.hangs == op {
		<-ctx.Done()
		service, operation, _ := strings.Cut(op, ":")
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls = append(f.calls, op)
		return &observed.Error{Kind: observed.Cancelled, Service: service, Operation: operation, Code: "Cancelled"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, op)
	if e := f.fails[op]; e != nil {
		return e
	}
	return nil
}

func some[V any](ctx context.Context, f *fake, op string, all map[string]V, keys []string) (map[string]V, error) {
	if err := f.call(ctx, op); err != nil {
		return nil, err
	}
	if f.most != nil {
		f.mu.Lock()
		f.most[op] = max(f.most[op], len(keys))
		f.mu.Unlock()
	}
	out := map[string]V{}
	for _, k := range keys {
		if v, ok := all[k]; ok {
			out[k] = v
		}
	}
	return out, nil
}

func (f *fake) Profile(ctx context.Context, name string) (Profile, bool, error) {
	p, ok := f.profiles[name]
	return p, ok, f.call(ctx, "iam:GetInstanceProfile")
}

func (f *fake) Snapshots(ctx context.Context, ids []string) (map[string]int32, error) {
	return some(ctx, f, "ec2:DescribeSnapshots", f.snapshots, ids)
}

func (f *fake) KeyPairs(ctx context.Context, names []string) (map[string]bool, error) {
	return some(ctx, f, "ec2:DescribeKeyPairs", f.keyPairs, names)
}

func (f *fake) ImagesNamed(ctx context.Context, names []string) (map[string]bool, error) {
	return some(ctx, f, "ec2:DescribeImages", f.images, names)
}

func (f *fake) GroupsThatExist(ctx context.Context, ids []string) (map[string]bool, error) {
	return some(ctx, f, "ec2:DescribeSecurityGroups", f.groups, ids)
}

func (f *fake) SubnetRoom(ctx context.Context, ids []string) (map[string]Subnet, error) {
	return some(ctx, f, "ec2:DescribeSubnets", f.subnets, ids)
}

func (f *fake) TargetGroups(ctx context.Context, arns []string) (map[string]TargetGroup, error) {
	return some(ctx, f, "elasticloadbalancing:DescribeTargetGroups", f.targets, arns)
}

func (f *fake) PlacementGroups(ctx context.Context, names []string) (map[string]PlacementGroup, error) {
	return some(ctx, f, "ec2:DescribePlacementGroups", f.placements, names)
}

func (f *fake) Key(ctx context.Context, id string) (Key, bool, error) {
	k, ok := f.keys[id]
	return k, ok, f.call(ctx, "kms:DescribeKey")
}

func (f *fake) InstanceTypes(ctx context.Context, names []string) (map[string]InstanceType, error) {
	return some(ctx, f, "ec2:DescribeInstanceTypes", f.types, names)
}

func (f *fake) Offerings(ctx context.Context, names []string) (map[string][]string, error) {
	return some(ctx, f, "ec2:DescribeInstanceTypeOfferings", f.offerings, names)
}

func (f *fake) Quota(ctx context.Context, code string) (float64, bool, error) {
	q, ok := f.quotas[code]
	return q, ok, f.call(ctx, "servicequotas:GetServiceQuota")
}

func (f *fake) Running(ctx context.Context) ([]Instance, error) {
	return f.running, f.call(ctx, "ec2:DescribeInstances")
}

func (f *fake) Reservations(ctx context.Context) ([]Reservation, error) {
	return f.reserved, f.call(ctx, "ec2:DescribeCapacityReservations")
}

func (f *fake) DryRun(ctx context.Context, r DryRun) (refused, err *observed.Error) {
	f.dry = append(f.dry, r)
	if failed := f.call(ctx, "ec2:RunInstances"); failed != nil {
		return nil, asError(failed)
	}
	return f.refuses, nil
}

// counts are the calls since the last time, by operation.
func (f *fake) counts() map[string]int {
	out := map[string]int{}
	for _, c := range f.calls {
		out[c]++
	}
	f.calls = nil
	return out
}

func ref(kind string) intent.ObjectRef {
	return intent.ObjectRef{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta2", Kind: kind, Namespace: "default", Name: "web"}
}

// webPool is a pool about which AWS has nothing to say.
func webPool() intent.Pool {
	return intent.Pool{
		Key: intent.Key{Namespace: "default", Name: "web"}, Kind: intent.GroupPool, MachinePool: ref("MachinePool"), Infrastructure: ref("AWSMachinePool"), Options: ref("PoolOptions"),
		Replicas: intent.Number{Value: 3, Written: true},
		LaunchTemplate: &intent.LaunchTemplate{Name: "web", RootDevice: true, Image: intent.Lookup{Kind: intent.ImageByID, Name: "ami-1", InstanceType: "m5.large"}, Data: intent.TemplateData{
			InstanceType: "m5.large", ImageID: "ami-1", KeyName: "ops", IamInstanceProfile: &intent.InstanceProfile{Name: "nodes"}, SecurityGroupIDs: []string{"sg-1"},
			BlockDeviceMappings: []intent.BlockDeviceMapping{{DeviceName: "/dev/xvda", Ebs: intent.Ebs{VolumeSize: 20}}}, UserData: "c2VjcmV0",
		}},
		Group: &intent.Group{Name: "web", MinSize: 1, MaxSize: 10, Subnets: intent.Lookup{Kind: intent.Subnets}},
	}
}

// asNodegroup makes a managed pool of webPool.
func asNodegroup(p *intent.Pool) {
	p.Kind, p.Infrastructure, p.Group = intent.NodegroupPool, ref("AWSManagedMachinePool"), nil
	p.Nodegroup = &intent.Nodegroup{Name: "web", ClusterName: "demo", Subnets: intent.Lookup{Kind: intent.Subnets}, NodegroupSettings: intent.NodegroupSettings{CapacityType: "ON_DEMAND"}}
}

// creation is the plan that makes pools, as the planner would make it of them.
func creation(subnets []string, pools ...intent.Pool) Request {
	p := &plan.Plan{Target: "blue"}
	in := model.Input{Set: &intent.Set{Pools: pools}, State: &observed.State{}, Answers: observed.Answers{
		{Kind: intent.Subnets}: {Subnets: subnets, VPCs: []string{"vpc-1"}},
		{Kind: intent.ImageByID, Name: "ami-1", InstanceType: "m5.large"}: {Image: &observed.Image{ID: "ami-1", Architecture: "x86_64", RootDevice: "/dev/xvda", RootSize: 8, RootSnapshot: "snap-1"}},
	}}
	for i := range pools {
		pool := &in.Set.Pools[i]
		if t := pool.LaunchTemplate; t != nil {
			p.Steps = append(p.Steps, step.Step{Verb: step.Create, Pool: pool.Key.String(), Do: step.CreateLaunchTemplate{Name: t.Name, Data: t.Data}})
		}
		s := step.Step{Verb: step.Create, Pool: pool.Key.String()}
		if g := pool.Group; g != nil {
			s.Do = step.CreateGroup{Group: observed.Group{Name: g.Name, MinSize: g.MinSize, DesiredCapacity: pool.Replicas.Value, GroupSettings: g.GroupSettings}}
		} else {
			s.Do = step.CreateNodegroup{Nodegroup: observed.Nodegroup{DesiredSize: pool.Replicas.Value}}
		}
		p.Steps = append(p.Steps, s)
	}
	return Request{Plan: p, Input: in, Followed: true}
}

// Findings are those of Ask.
func (a *Asker) Findings(ctx context.Context, plans []Request) (out []diag.List) {
	for _, answer := range a.Ask(ctx, plans) {
		out = append(out, answer.Findings)
	}
	return out
}

// ask returns what a new asker finds about a plan, a line for each finding.
func ask(f *fake, plans ...Request) (out []string) {
	for _, found := range New(f, f, func() time.Time { return time.Unix(0, 0) }).Findings(context.Background(), plans) {
		for _, d := range found {
			out = append(out, d.Severity.String()+" "+d.Code+" "+d.Object+" "+d.Field+": "+d.Summary)
		}
	}
	slices.Sort(out)
	return out
}
