package reconciler_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/intent"
)

// saved is the whole state of an account, to be had again as often as wanted.
type saved struct {
	state []byte
	now   time.Time
}

func (w *world) save() saved {
	w.t.Helper()
	var b bytes.Buffer
	w.check(nil, w.srv.Save(&b))
	return saved{b.Bytes(), w.clock.Now()}
}

// world is an account as it was saved, with a process that has seen nothing.
func (s saved) world(t testing.TB) *world {
	t.Helper()
	clock := awsemu.NewManualClock(s.now)
	srv, err := awsemu.New(awsemu.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Load(bytes.NewReader(s.state)); err != nil {
		t.Fatal(err)
	}
	w := serve(t, srv, clock)
	w.fresh()
	w.srv.ResetCalls()
	return w
}

// fresh is a restart as a process that does one thing after the other, so that
// the calls of a run are those of every other.
func (w *world) fresh() {
	w.t.Helper()
	w.restart()
	w.scope.Concurrency = 1
}

// threePools are a group with all that takes calls of its own, one of mixed
// instances, and one that brings a template of somebody else's along.
func threePools(own intent.Pool) (full, mixedPool, brings intent.Pool) {
	full, mixedPool, brings = groupPool("full", "m5.large", 2), groupPool("mixed", "m5.large", 2), own
	everything(&full)
	full.Group.Options.WarmPool.MinSize = 1
	mixedPool.Group.MixedInstancesPolicy = mixed(50)
	return full, mixedPool, brings
}

// chapter is a change of Git in the life of the three pools.
type chapter struct {
	name   string
	git    func() reconciler.Desired
	before func(*world) // what others do first
}

func chapters(t testing.TB, subnets []string) []chapter {
	own := func() intent.Pool { return written(t, "own", "node.k8s.aws/launch-template-name: golden", "") }
	whole := func(pools ...intent.Pool) reconciler.Desired {
		d := target("blue", pools...)
		d.Policy.Prune.Count = 10
		return d
	}
	rolled := func() (full, mix, brings intent.Pool) {
		full, mix, brings = threePools(own())
		full.LaunchTemplate.Data.KeyName, mix.LaunchTemplate.Data.KeyName = "another", "another"
		return full, mix, brings
	}
	edited := func() (full, mix, brings intent.Pool) {
		full, mix, brings = rolled()
		g := full.Group
		full.Replicas.Value, g.MinSize, g.MaxSize, g.DefaultCooldown = 3, 1, 8, new(int32(60))
		g.Tags = map[string]string{"Name": "full", "team": "platform"}
		full.LaunchTemplate.Tags = g.Tags
		g.SuspendedProcesses = []intent.Process{{Name: "AZRebalance"}, {Name: "AlarmNotification", Suspended: true}}
		g.LifecycleHooks = []intent.LifecycleHook{drainHook(90), {Name: "boot", LifecycleTransition: launching, HeartbeatTimeout: 30, DefaultResult: "CONTINUE"}}
		g.Options.WarmPool = &intent.WarmPool{PoolState: "Stopped", MinSize: 2}
		g.Options.TargetGroupARNs = []string{fmt.Sprintf(targetGroup, "b")}
		g.Options.MetricsCollection = &intent.MetricsCollection{Granularity: "1Minute", Metrics: []string{"GroupMaxSize"}}
		g.Options.HealthCheckType, g.Options.TerminationPolicies = "ELB", []string{"OldestInstance"}
		mix.Group.MixedInstancesPolicy = mixed(20)
		mix.Group.Subnets = intent.Lookup{Kind: intent.Subnets, Cluster: clusterKey, IDs: intent.JoinList(subnets[:2])}
		mix.Group.Tags = map[string]string{"team": "platform"}
		brings.Replicas.Value = 1
		brings.Group.LifecycleHooks = []intent.LifecycleHook{drainHook(60)}
		return full, mix, brings
	}
	return []chapter{
		{"first convergence", func() reconciler.Desired { return whole(threePools(own())) }, func(*world) {}},
		{"rollout", func() reconciler.Desired { return whole(rolled()) }, func(w *world) { w.anotherVersion("golden") }},
		{"edits", func() reconciler.Desired { return whole(edited()) }, func(*world) {}},
		{"deletion", func() reconciler.Desired {
			_, mix, _ := edited()
			return whole(mix)
		}, func(*world) {}},
	}
}

// struck are the ways in which a call goes wrong: once, or from there on, as when
// the process is stopped. A process that is stopped after a call leaves in AWS what one
// leaves that is stopped before the next call, and reads leave nothing: so a process is
// stopped before each write and before the last of reads that follow each other. The answer
// to every other write of a kind is lost, the first one included. With WEIR_SOAK all goes
// wrong in every way.
func struck(c awsemu.Call, beforeRead bool, nth, index int) map[string][]awsemu.Fault {
	stop := awsemu.Fault{Kind: awsemu.CutBefore, After: index, Times: -1}
	out := map[string][]awsemu.Fault{}
	if c.Write || !beforeRead || soaking() {
		out["stopped before"] = []awsemu.Fault{stop}
	}
	if c.Write && soaking() {
		out["stopped after"] = []awsemu.Fault{{Kind: awsemu.LoseAnswer, After: index}, stop}
	}
	once := func(name string, f awsemu.Fault) {
		f.Service, f.Operation, f.After = c.Service, c.Operation, nth
		out[name] = []awsemu.Fault{f}
	}
	if c.Write && sampled(2, nth) {
		once("answer lost", awsemu.Fault{Kind: awsemu.LoseAnswer})
	}
	if nth == 0 || c.Write && soaking() { // one refusal for each kind of call is enough
		once("refused", awsemu.Fault{Kind: awsemu.FailBefore, Code: "InternalFailure", Status: 500})
	}
	if c.Write && nth == 0 {
		once("throttled", awsemu.Fault{Kind: awsemu.Throttled})
	}
	return out
}

// Three pools are made, rolled, edited in every way and deleted, and at every call
// of that something goes wrong: the next process ends where an undisturbed one
// does, with nothing made twice, nothing left and no rollout more.
func TestStoppedAtAnyCallOfAPoolsLife(t *testing.T) {
	if testing.Short() {
		t.Skip("-short is set, as make race does: hundreds of lives of a pool take minutes under the race detector")
	}
	seed := newWorld(t)
	seed.golden("golden", "x86_64", "m5.large")
	at := seed.save()
	for _, ch := range chapters(t, seed.subnets()) {
		w := at.world(t)
		ch.before(w)
		at = w.save()
		begin := at
		calm := begin.world(t)
		passes := calm.settle(ch.git())
		all := calm.srv.Calls()
		calm.clock.Advance(time.Minute)
		want := calm.ledger()
		at = calm.save()
		t.Run(ch.name, func(t *testing.T) {
			writes, cases := 0, 0
			seen := map[string]int{}
			for index, c := range all {
				key := c.Service + ":" + c.Operation
				nth := seen[key]
				seen[key]++
				if c.Write {
					writes++
				}
				beforeRead := index+1 < len(all) && !all[index+1].Write
				ways := struck(c, beforeRead, nth, index)
				for name, faults := range ways {
					cases++
					t.Run(fmt.Sprintf("%s at %d %s", name, index, c.Operation), func(t *testing.T) {
						t.Parallel()
						w := begin.world(t)
						for _, f := range faults {
							w.srv.Faults().Add(f)
						}
						left := w.srv.Faults().Pending()
						for range passes {
							_, err := w.pass(reconciler.Apply, ch.git()) // may fail: that is the point
							if w.srv.Faults().Pending() < left || err != nil {
								break
							}
							w.clock.Advance(2 * time.Second)
						}
						w.srv.Faults().Clear()
						w.fresh()
						if _, trouble := w.settled(ch.git()); trouble != "" {
							t.Fatal(trouble)
						}
						w.clock.Advance(time.Minute)
						if d := cmp.Diff(want, w.ledger()); d != "" {
							t.Errorf("what is there (-undisturbed +after):\n%s", d)
						}
						w.fresh()
						w.silent(ch.git())
					})
				}
			}
			t.Logf("%d passes, %d calls, %d of them writes, %d cases", passes, len(all), writes, cases)
		})
	}
}

// ledger is what the account holds of groups and templates, settings, tags and all,
// and how often each was rolled; what AWS itself chooses is left out.
func (w *world) ledger() []string {
	w.t.Helper()
	ctx := context.Background()
	var out []string
	groups, err := w.groups().DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
	w.check(nil, err)
	for _, g := range groups.AutoScalingGroups {
		name := aws.ToString(g.AutoScalingGroupName)
		var members map[string]any
		remarshal(w.t, g, &members)
		for _, m := range []string{"AutoScalingGroupARN", "CreatedTime", "Instances", "Tags", "ServiceLinkedRoleARN", "SuspendedProcesses", "EnabledMetrics", "LaunchTemplate", "MixedInstancesPolicy"} {
			delete(members, m)
		}
		versions := map[string]int{}
		for _, i := range g.Instances {
			versions[string(i.LifecycleState)+" "+aws.ToString(i.LaunchTemplate.LaunchTemplateName)+" "+aws.ToString(i.LaunchTemplate.Version)]++
		}
		var tags, off, metrics []string
		for _, t := range g.Tags {
			tags = append(tags, aws.ToString(t.Key)+"="+aws.ToString(t.Value))
		}
		for _, p := range g.SuspendedProcesses {
			off = append(off, aws.ToString(p.ProcessName))
		}
		for _, m := range g.EnabledMetrics {
			metrics = append(metrics, aws.ToString(m.Metric))
		}
		for _, list := range [][]string{tags, off, metrics} {
			slices.Sort(list)
		}
		refreshes, err := w.groups().DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: g.AutoScalingGroupName})
		w.check(nil, err)
		var rolled []string
		for _, r := range refreshes.InstanceRefreshes {
			rolled = append(rolled, string(r.Status))
		}
		mix := ""
		if p := g.MixedInstancesPolicy; p != nil {
			mix = fmt.Sprint(aws.ToInt32(p.InstancesDistribution.OnDemandPercentageAboveBaseCapacity), len(p.LaunchTemplate.Overrides))
		}
		out = append(out, fmt.Sprintf("group %s: %v", name, compact(members)), fmt.Sprintf("group %s: instances %v, tags %v, suspended %v, metrics %v, hooks %v, rolled %v, template %+v, mixed %s", name, versions,
			tags, off, metrics, w.hooks(name), rolled, w.templateOf(name).Name+" "+w.templateOf(name).Version, mix))
	}
	templates, err := w.ec2().DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{})
	w.check(nil, err)
	for _, t := range templates.LaunchTemplates {
		name := aws.ToString(t.LaunchTemplateName)
		out = append(out, fmt.Sprintf("template %s: versions %v, default %d, tags %v", name, w.numbers(name), aws.ToInt64(t.DefaultVersionNumber), w.templateTags(name)))
	}
	slices.Sort(out)
	return strings.Split(strings.Join(out, "\n"), "\n")
}
