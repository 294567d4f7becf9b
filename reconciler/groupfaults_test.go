package reconciler_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
	"pgregory.net/rapid"
)

// groupWish is what Git says of one pool in the test below.
type groupWish struct {
	size, timeout, warm, share int32 // timeout 0: no hook, warm 0: none
	key, health, extra         string
	off, rollback              bool
	subnets                    int
}

func (g groupWish) pool(name string, subnets []string) intent.Pool {
	p := groupPool(name, "m5.large", g.size)
	p.LaunchTemplate.Data.KeyName = g.key
	p.Group.Subnets = intent.Lookup{Kind: intent.Subnets, Cluster: clusterKey, IDs: intent.JoinList(subnets[:g.subnets])}
	// A pool goes on declaring what it has once declared: weir leaves alone what Git leaves out.
	p.Group.SuspendedProcesses = []intent.Process{{Name: "AZRebalance", Suspended: g.off}}
	p.Group.Options.HealthCheckType = g.health
	p.Group.Options.DeleteWarmPool = g.warm == 0
	if g.warm > 0 {
		p.Group.Options.WarmPool = &intent.WarmPool{PoolState: "Stopped", MinSize: g.warm}
	}
	if g.timeout > 0 {
		p.Group.LifecycleHooks = []intent.LifecycleHook{drainHook(g.timeout)}
	}
	if g.share > 0 {
		p.Group.MixedInstancesPolicy = mixed(g.share)
	}
	if g.rollback {
		p.Group.Refresh.AutoRollback = &g.rollback
	}
	p.Group.Tags = map[string]string{"Name": name}
	if g.extra != "" {
		p.Group.Tags[g.extra] = "v"
	}
	p.LaunchTemplate.Tags = p.Group.Tags
	return p
}

func drawWish(rt *rapid.T) groupWish {
	g := groupWish{
		size: rapid.Int32Range(0, 3).Draw(rt, "size"), timeout: rapid.SampledFrom([]int32{0, 30, 60}).Draw(rt, "timeout"),
		warm: rapid.Int32Range(0, 2).Draw(rt, "warm"), share: rapid.SampledFrom([]int32{0, 20, 50}).Draw(rt, "share"),
		key: fmt.Sprintf("key-%d", rapid.IntRange(0, 3).Draw(rt, "key")), health: rapid.SampledFrom([]string{"EC2", "ELB"}).Draw(rt, "health"),
		extra: rapid.SampledFrom([]string{"", "team", "cost"}).Draw(rt, "extra"), off: rapid.Bool().Draw(rt, "off"),
		rollback: rapid.Bool().Draw(rt, "rollback"), subnets: rapid.IntRange(1, 3).Draw(rt, "subnets"),
	}
	if g.share > 0 {
		g.warm = 0 // Auto Scaling takes no warm pool beside a mixed instances policy
	}
	return g
}

// Git, the console, the network and a second process of the same instance do what they like with groups, and rollouts fail, are rolled back or
// cancelled; once all rest, AWS holds what Git says of each group and nothing of groups that Git dropped, and weir has left undeclared settings
// alone. Then there is silence.
func TestWhateverHappensToAGroupItEndsAsGitSays(t *testing.T) {
	t.Parallel()
	checks(t, 12)
	ctx := context.Background()
	begin := newWorld(t).save()
	rapid.Check(t, func(rt *rapid.T) {
		w := begin.world(t)
		subnets := w.subnets()
		scopes := []*reconciler.Scope{newScope(w), newScope(w)}
		git := map[string]groupWish{"keep": {size: 1, key: "key-0", health: "EC2", subnets: 3}}
		desired := func() reconciler.Desired {
			var pools []intent.Pool
			for name, g := range git {
				pools = append(pools, g.pool(name, subnets))
			}
			d := target("blue", pools...)
			d.Policy.Prune.Count = 10
			return d
		}
		pass := func(i int) { _, _ = scopes[i].Pass(ctx, []reconciler.Desired{desired()}, reconciler.Apply) }
		pass(0)
		which, names := rapid.IntRange(0, 1), rapid.SampledFrom([]string{"keep", "one"})
		name := func(rt *rapid.T) *string { return aws.String(names.Draw(rt, "name")) }
		operations := []string{"", "CreateAutoScalingGroup", "UpdateAutoScalingGroup", "StartInstanceRefresh", "CancelInstanceRefresh", "SuspendProcesses", "ResumeProcesses", "PutLifecycleHook",
			"DeleteLifecycleHook", "PutWarmPool", "DeleteWarmPool", "CreateOrUpdateTags", "DeleteTags", "DeleteAutoScalingGroup", "DeleteLaunchTemplate", "DescribeInstanceRefreshes", "DescribeLifecycleHooks"}
		rt.Repeat(map[string]func(*rapid.T){
			"Git":          func(rt *rapid.T) { git[*name(rt)] = drawWish(rt) },
			"a pool goes":  func(*rapid.T) { delete(git, "one") },
			"a pass":       func(rt *rapid.T) { pass(which.Draw(rt, "weir")) },
			"another pass": func(rt *rapid.T) { pass(which.Draw(rt, "weir")) },
			"a crash":      func(rt *rapid.T) { i := which.Draw(rt, "weir"); hangUp(scopes[i]); scopes[i] = newScope(w) },
			"seconds go by": func(rt *rapid.T) {
				w.clock.Advance(time.Duration(rapid.IntRange(1, 20).Draw(rt, "seconds")) * time.Second)
			},
			"minutes go by": func(rt *rapid.T) {
				w.clock.Advance(time.Duration(rapid.IntRange(1, 20).Draw(rt, "minutes")) * time.Minute)
			},
			"a pass in a pass": func(rt *rapid.T) {
				i, at, n := which.Draw(rt, "weir"), rapid.IntRange(1, 5).Draw(rt, "call"), 0
				inner := scopes[i].Cloud
				scopes[i].Cloud = &gated{inner, func(step.Action) {
					if n++; n == at {
						pass(1 - i)
					}
				}}
				scopes[i].Concurrency = 1
				pass(i)
				scopes[i].Cloud = inner
			},
			"a fault": func(rt *rapid.T) {
				f := faultKinds[rapid.SampledFrom(slices.Sorted(maps.Keys(faultKinds))).Draw(rt, "kind")]
				f.Operation, f.After = rapid.SampledFrom(operations).Draw(rt, "operation"), rapid.IntRange(0, 3).Draw(rt, "after")
				remove := w.srv.Faults().Add(f)
				pass(which.Draw(rt, "weir"))
				remove()
			},
			"a rollout that fails": func(rt *rapid.T) {
				remove := w.srv.Faults().Launches.Add(ec2.LaunchFault{Code: rapid.SampledFrom([]string{"InsufficientInstanceCapacity", ""}).Draw(rt, "code")})
				pass(which.Draw(rt, "weir"))
				w.clock.Advance(time.Duration(rapid.IntRange(1, 90).Draw(rt, "minutes")) * time.Minute)
				pass(which.Draw(rt, "weir"))
				remove()
			},
			"cancelled by hand": func(rt *rapid.T) {
				_, _ = w.groups().CancelInstanceRefresh(ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: name(rt)})
			},
			"rolled back by hand": func(rt *rapid.T) {
				_, _ = w.groups().RollbackInstanceRefresh(ctx, &autoscaling.RollbackInstanceRefreshInput{AutoScalingGroupName: name(rt)})
			},
			"other sizes by hand": func(rt *rapid.T) {
				_, _ = w.groups().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: name(rt), MinSize: aws.Int32(0), MaxSize: aws.Int32(4),
					DesiredCapacity: aws.Int32(rapid.Int32Range(0, 4).Draw(rt, "size")), HealthCheckType: aws.String("EC2"), VPCZoneIdentifier: aws.String(subnets[0])})
			},
			"processes by hand": func(rt *rapid.T) {
				_, _ = w.groups().SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: name(rt), ScalingProcesses: []string{"AZRebalance"}})
			},
			"a hook goes by hand": func(rt *rapid.T) {
				_, _ = w.groups().DeleteLifecycleHook(ctx, &autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: name(rt), LifecycleHookName: aws.String("drain")})
			},
			"the warm pool goes by hand": func(rt *rapid.T) {
				_, _ = w.groups().DeleteWarmPool(ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: name(rt), ForceDelete: aws.Bool(true)})
			},
			"the group goes by hand": func(rt *rapid.T) {
				_, _ = w.groups().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: name(rt), ForceDelete: aws.Bool(true)})
			},
			"a tag goes by hand": func(rt *rapid.T) {
				_, _ = w.groups().DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: []astypes.Tag{{Key: aws.String("Name"), ResourceId: name(rt), ResourceType: aws.String("auto-scaling-group")}}})
			},
			"": func(*rapid.T) {},
		})
		w.srv.Faults().Clear()
		w.clock.Advance(2 * time.Hour)
		// A last change, since a rollout that failed is left alone until Git changes.
		for name, g := range git {
			g.key = "key-9"
			git[name] = g
		}
		for range 4 {
			for i := range scopes {
				pass(i)
			}
			w.clock.Advance(time.Minute)
		}
		w.scope = scopes[0]
		if _, trouble := w.settled(desired()); trouble != "" {
			rt.Fatal(trouble)
		}
		w.clock.Advance(15 * time.Minute) // hooks are read again
		if _, trouble := w.settled(desired()); trouble != "" {
			rt.Fatal(trouble)
		}
		w.groupsAre(rt, git, subnets)
		for _, s := range append(scopes, newScope(w)) {
			w.srv.ResetCalls()
			r, err := s.Pass(ctx, []reconciler.Desired{desired()}, reconciler.Apply)
			if err != nil || !converged(r) {
				rt.Fatalf("not converged: %v, %v", err, r[0].Diagnostics)
			}
			if wrote := w.wrote(); len(wrote) > 0 {
				rt.Fatalf("writes at rest: %v", wrote)
			}
			hangUp(s)
		}
	})
}

func hangUp(s *reconciler.Scope) { s.Cloud.(*awscloud.Cloud).Close() }

// groupsAre compares the groups, and what could leak, with what Git says.
func (w *world) groupsAre(t *rapid.T, git map[string]groupWish, subnets []string) {
	var held []string
	for name, g := range git {
		held = append(held, "template "+name)
		group := w.group(name)
		held = append(held, fmt.Sprintf("group %s of %d", name, len(group.Instances)))
		got := groupWish{size: int32(len(group.Instances)), health: aws.ToString(group.HealthCheckType), key: "key-9", rollback: g.rollback,
			subnets: len(slices.DeleteFunc(slices.Clone(subnets), func(s string) bool { return !strings.Contains(aws.ToString(group.VPCZoneIdentifier), s) }))}
		for _, p := range group.SuspendedProcesses {
			got.off = got.off || aws.ToString(p.ProcessName) == "AZRebalance"
		}
		for _, h := range w.hooks(name) {
			_, _ = fmt.Sscanf(h, "drain %d CONTINUE", &got.timeout)
		}
		if p := group.WarmPoolConfiguration; p != nil && p.Status == "" {
			got.warm = aws.ToInt32(p.MinSize)
		}
		if p := group.MixedInstancesPolicy; p != nil {
			got.share = aws.ToInt32(p.InstancesDistribution.OnDemandPercentageAboveBaseCapacity)
		}
		for _, key := range []string{"team", "cost"} {
			if w.groupTag(name, key) != "" {
				got.extra += key
			}
		}
		if w.groupTag(name, "Name") != name {
			t.Fatalf("group %s is named %q", name, w.groupTag(name, "Name"))
		}
		if d := cmp.Diff(g, got, cmp.AllowUnexported(groupWish{})); d != "" {
			t.Fatalf("group %s (-Git +AWS):\n%s", name, d)
		}
		tpl := w.template(name)
		version := fmt.Sprint(aws.ToInt64(tpl.DefaultVersionNumber))
		if at := w.templateOf(name); at.Version != version || at.ID != aws.ToString(tpl.LaunchTemplateId) {
			t.Fatalf("group %s is on %+v, the default is %s of %s", name, at, version, aws.ToString(tpl.LaunchTemplateId))
		}
		for _, i := range group.Instances {
			if aws.ToString(i.LaunchTemplate.Version) != version {
				t.Fatalf("group %s: an instance runs %s, the default is %s", name, aws.ToString(i.LaunchTemplate.Version), version)
			}
		}
		for _, v := range w.versions(name).LaunchTemplateVersions {
			if fmt.Sprint(aws.ToInt64(v.VersionNumber)) == version && aws.ToString(v.LaunchTemplateData.KeyName) != "key-9" {
				t.Fatalf("the default version of %s holds %q", name, aws.ToString(v.LaunchTemplateData.KeyName))
			}
		}
	}
	slices.Sort(held)
	if d := cmp.Diff(held, w.held()); d != "" {
		t.Fatalf("held (-want +got):\n%s", d)
	}
}
