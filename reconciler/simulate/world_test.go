package simulate_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/render/intent"
)

const (
	account = "123456789012"
	region  = "eu-west-1"
)

// fleet is an AWS with a fleet in it, that a scope keeps as a daemon does, pass after pass.
type fleet struct {
	t       testing.TB
	srv     *awsemu.Server
	clock   *awsemu.ManualClock
	url     string
	cloud   *awscloud.Cloud
	scope   *reconciler.Scope
	rhythm  reconciler.Rhythm
	record  rollout.Record
	began   time.Time
	changed time.Time // when something last changed
	waves   int
	most    int32 // machines more than desired
	last    string
}

// newFleet is an AWS in which things take what a simulation assumes, if seed is 0, and else
// up to 4 % more or less.
func newFleet(t testing.TB, seed int) *fleet {
	t.Helper()
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	off := func(d time.Duration, n int) time.Duration { return d + d*time.Duration((seed*n)%9-4)/100 }
	if seed == 0 {
		off = func(d time.Duration, _ int) time.Duration { return d }
	}
	timings := world.Realistic()
	timings.InstancePending, timings.InstanceShutdown = off(simulate.DefaultMachineReady, 1), off(simulate.DefaultMachineGone, 2)
	timings.RefreshBatch, timings.Warmups = timings.InstancePending, true
	timings.NodegroupCreate, timings.NodegroupUpdate, timings.NodegroupDelete = off(simulate.DefaultNodegroupCreate, 4), off(simulate.DefaultNodegroupUpdate, 5), off(simulate.DefaultNodegroupDelete, 7)
	f := &fleet{t: t, clock: awsemu.NewManualClock(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).Add(time.Duration(seed) * 7 * time.Second))}
	srv, err := awsemu.New(awsemu.Options{Clock: f.clock, Throttle: true, Timings: timings, Account: account, Quotas: map[string]int{"auto-scaling-groups": 20000, "vcpus-standard": 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	f.srv = srv
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	f.url = web.URL
	f.cloud, err = awscloud.Open(context.Background(), sdk.Options{Region: region, EndpointURL: web.URL, Embedded: true, Now: f.clock.Now,
		Limits: sdk.NewLimits(sdk.LimitOptions{Now: f.clock.Now, Sleep: func(_ context.Context, d time.Duration) error { f.clock.Advance(d); return nil }})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.cloud.Close)
	f.scope = reconciler.NewScope(reconciler.Options{Cloud: f.cloud, Resolver: resolve.New(f.cloud, f.clock.Now), Now: f.clock.Now, Concurrency: 1})
	return f
}

// plan plans targets as weir plan does, and makes a scene of it.
func (f *fleet) plan(targets ...reconciler.Desired) simulate.Scene {
	f.t.Helper()
	b := reconciler.Batch{Key: reconciler.ScopeKey{Account: account, Region: region}, Scope: f.scope, Targets: targets, Inputs: &reconciler.PassInputs{}}
	reports := reconciler.RunBatch(f.t.Context(), b, reconciler.PlanOnly)
	for _, r := range reports {
		if r.Err != nil || r.Diagnostics.HasErrors() {
			f.t.Fatal(r.Err, r.Diagnostics)
		}
	}
	return simulate.Scene{Now: f.clock.Now(), Stages: []simulate.Stage{{Batch: b, Inputs: b.Inputs, Reports: reports}}}
}

// apply makes passes as a daemon does until all has converged or nothing goes on for long.
func (f *fleet) apply(targets ...reconciler.Desired) {
	f.t.Helper()
	f.began, f.changed, f.waves, f.most, f.last = f.clock.Now(), f.clock.Now(), 0, 0, ""
	for f.clock.Now().Sub(f.began) < 12*time.Hour {
		reports := reconciler.RunBatch(f.t.Context(), reconciler.Batch{Scope: f.scope, Targets: f.permitted(targets)}, reconciler.Apply)
		done := true
		var pools []rollout.Pool
		var stands strings.Builder
		above := int32(0)
		for _, r := range reports {
			if r.Err != nil {
				f.t.Fatal(r.Err)
			}
			done = done && r.Converged()
			pools = append(pools, r.Governed...)
			for _, p := range r.Pools {
				n := int32(0)
				for _, i := range p.Instances {
					if !strings.HasPrefix(i.State, "Terminat") {
						n++
					}
				}
				above += max(0, n-p.DesiredReplicas)
				fmt.Fprintf(&stands, "%s %v %t;", p.Name, p.Instances, p.Converged)
			}
		}
		f.most = max(f.most, above)
		if text := stands.String(); text != f.last {
			f.last, f.changed = text, f.clock.Now()
		}
		f.conduct(targets, pools)
		if done {
			return
		}
		wait, _ := f.rhythm.Next(reports, 0, f.cloud.UntilSpare())
		f.clock.Advance(wait)
	}
	f.t.Fatalf("the rollout has not ended after %s: %s", f.clock.Now().Sub(f.began), f.last)
}

func specs(targets []reconciler.Desired) (out []rollout.Spec) {
	for _, d := range targets {
		for _, r := range d.Set.Rollouts {
			out = append(out, rollout.Spec{FleetRollout: r, Target: d.Policy.Target})
		}
	}
	return out
}

func (f *fleet) permitted(targets []reconciler.Desired) []reconciler.Desired {
	targets = slices.Clone(targets)
	for i := range targets {
		targets[i].Policy.Gates.Rollouts = rollout.NewGovernor(&f.record, specs(targets)).Permits(targets[i].Policy.Target, targets[i].Set.Pools)
	}
	return targets
}

// conduct makes the next records of FleetRollouts, as long as there are some.
func (f *fleet) conduct(targets []reconciler.Desired, pools []rollout.Pool) {
	for range 10 {
		fresh := map[string]time.Time{}
		for _, d := range targets {
			fresh[d.Policy.Target] = f.clock.Now()
		}
		out := rollout.Next(f.record, rollout.Input{Revision: targets[0].Commit.Revision, Specs: specs(targets), Pools: pools, Fresh: fresh, Now: f.clock.Now()})
		for _, e := range out.Events {
			if e.Kind == rollout.Began || e.Kind == rollout.Advanced {
				f.waves++
			}
		}
		if out.Record.Seq == f.record.Seq {
			return
		}
		f.record = out.Record
	}
}

func (f *fleet) took() time.Duration { return f.changed.Sub(f.began) }

var clusterKey = intent.Key{Namespace: "default", Name: "demo"}

func target(name, revision string, pools ...intent.Pool) reconciler.Desired {
	set := &intent.Set{Pools: pools}
	set.Sort()
	return reconciler.Desired{
		Policy: model.Policy{Instance: "prod", Target: name, Source: "0123456789ab", Sources: []string{"0123456789ab"}, Account: account, Region: region},
		Source: "fleet", Commit: content.Commit{Revision: strings.Repeat(revision, 40), Subject: "a change"}, Set: set, Whole: true,
	}
}

func object(kind, name string) intent.ObjectRef {
	return intent.ObjectRef{Kind: kind, Namespace: "default", Name: name}
}

func group(name, instanceType string, replicas int32, refresh intent.Refresh) intent.Pool {
	refresh.Strategy = "Rolling"
	return intent.Pool{
		Key: intent.Key{Namespace: "default", Name: name}, Kind: intent.GroupPool, ClusterKey: clusterKey,
		MachinePool: object("MachinePool", name), Infrastructure: object("AWSMachinePool", name),
		Replicas: intent.Number{Value: replicas, Written: true}, Version: "v1.33.0",
		LaunchTemplate: &intent.LaunchTemplate{Name: name, RootDevice: true,
			Image:          intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "1.33", InstanceType: instanceType},
			SecurityGroups: []intent.Lookup{{Kind: intent.CoreSecurityGroups, Cluster: clusterKey}},
			Tags:           map[string]string{"Name": name},
			Data: intent.TemplateData{InstanceType: instanceType,
				IamInstanceProfile: &intent.InstanceProfile{Name: "nodes.cluster-api-provider-aws.sigs.k8s.io"}},
		},
		Group: &intent.Group{Name: name, MinSize: 0, MaxSize: 2 * replicas,
			GroupSettings: intent.GroupSettings{DefaultCooldown: new(int32(300)), DefaultInstanceWarmup: new(int32(60)), CapacityRebalance: new(false)},
			Subnets:       intent.Lookup{Kind: intent.Subnets, Cluster: clusterKey},
			Tags:          map[string]string{"Name": name}, Refresh: refresh},
	}
}

func nodegroup(name, instanceType string, replicas int32) intent.Pool {
	return intent.Pool{
		Key: intent.Key{Namespace: "default", Name: name}, Kind: intent.NodegroupPool, ClusterKey: clusterKey,
		MachinePool: object("MachinePool", name), Infrastructure: object("AWSManagedMachinePool", name),
		Replicas:       intent.Number{Value: replicas, Written: true},
		LaunchTemplate: &intent.LaunchTemplate{Name: "cp-" + name, Tags: map[string]string{"Name": name}, Data: intent.TemplateData{InstanceType: instanceType}},
		Nodegroup: &intent.Nodegroup{Name: name, ClusterName: "demo",
			Cluster: intent.Lookup{Kind: intent.EKSCluster, Name: "demo"},
			Role:    intent.Lookup{Kind: intent.Role, Name: "eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io"},
			Subnets: intent.Lookup{Kind: intent.Subnets, Cluster: clusterKey},
			MinSize: intent.Number{Value: 1}, MaxSize: intent.Number{Value: max(replicas, 1)},
			NodegroupSettings: intent.NodegroupSettings{AMIType: "AL2023_x86_64_STANDARD", CapacityType: "ON_DEMAND", UpdateConfig: intent.UpdateConfig{MaxUnavailable: 1}}},
	}
}

func planEmpty(reports []*plan.Report) bool {
	return !slices.ContainsFunc(reports, func(r *plan.Report) bool { return r.Plan == nil || !r.Plan.Empty() })
}
