package reconciler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// setAlias has a group launch whatever an alias means, of its own template or, by
// its policy, of that of an override.
func (w *world) setAlias(name, alias string) {
	w.t.Helper()
	g := w.group(name)
	in := &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String(name)}
	spec := &astypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String(w.templateOf(name).Name), Version: aws.String(alias)}
	in.LaunchTemplate = spec
	if p := g.MixedInstancesPolicy; p != nil {
		for _, o := range p.LaunchTemplate.Overrides {
			if o.LaunchTemplateSpecification != nil {
				o.LaunchTemplateSpecification.LaunchTemplateName = nil // the two together are refused
			}
		}
		in.LaunchTemplate, in.MixedInstancesPolicy = nil, &astypes.MixedInstancesPolicy{LaunchTemplate: &astypes.LaunchTemplate{LaunchTemplateSpecification: spec, Overrides: p.LaunchTemplate.Overrides}}
	}
	w.check(w.groups().UpdateAutoScalingGroup(context.Background(), in))
}

// grow has somebody else add a machine, and returns the versions that run.
func (w *world) grow(name string) (versions map[string]int) {
	w.t.Helper()
	w.check(w.groups().SetDesiredCapacity(context.Background(), &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: aws.String(name), DesiredCapacity: aws.Int32(aws.ToInt32(w.group(name).DesiredCapacity) + 1)}))
	w.clock.Advance(time.Minute)
	versions = map[string]int{}
	for _, i := range w.group(name).Instances {
		versions[aws.ToString(i.LaunchTemplate.Version)]++
	}
	return versions
}

// autoscaled is a pool whose size somebody else decides, and whose rollouts AWS is
// to take back when they fail.
func autoscaled(name, key string) intent.Pool {
	p := groupPool(name, "m5.large", 2)
	p.Replicas.Written, p.ReplicasManagedExternally = false, true
	p.Group.MinSize = 2
	p.LaunchTemplate.Data.KeyName = key
	yes := true
	p.Group.Refresh.AutoRollback = &yes
	return p
}

// A held version is not what a group on an alias launches when it grows, and the
// refresh that can be rolled back is taken once the hold ends.
func TestAHeldVersionDoesNotGoLiveByAnAlias(t *testing.T) {
	for _, alias := range []string{"$Latest", "$Default"} {
		for name, policy := range map[string]*intent.MixedInstances{"template": nil, "policy": mixed(50)} {
			t.Run(alias+" "+name, func(t *testing.T) {
				w := newWorld(t)
				pool := func(key string) intent.Pool {
					p := autoscaled("web", key)
					p.Group.MixedInstancesPolicy = policy
					return p
				}
				w.settle(target("blue", pool("")))
				w.setAlias("web", alias)
				w.restart()
				if r := w.must(reconciler.Apply, target("blue", pool("")))[0]; !r.Plan.Empty() {
					t.Fatalf("an alias of the wanted version is a difference: %+v", r.Plan.Steps)
				}
				next := target("blue", pool("another"))
				for _, hold := range []func(*model.Policy){
					func(p *model.Policy) { p.ReportOnly = true }, func(p *model.Policy) { p.Suspended = true },
				} {
					held := next
					hold(&held.Policy)
					w.srv.ResetCalls()
					w.must(reconciler.Apply, held)
					if wrote := w.wrote(); len(wrote) > 0 {
						t.Errorf("a held target was written to: %v", wrote)
					}
				}
				next.Policy.Gates.Window = "opens on Monday"
				w.must(reconciler.Apply, next)
				if n := aws.ToInt64(w.template("web").LatestVersionNumber); n != 2 {
					t.Fatalf("the newest version is %d", n)
				}
				if got := w.grow("web"); got["1"] != 3 {
					t.Errorf("the versions that run while the rollout is held: %v", got)
				}
				next.Policy.Gates.Window = ""
				w.settle(next)
				if got := w.grow("web"); got["2"] != 4 {
					t.Errorf("the versions that run afterwards: %v", got)
				}
				w.srv.ResetCalls()
				w.settle(next)
				if wrote := w.wrote(); len(wrote) > 0 {
					t.Errorf("weir wrote on: %v", wrote)
				}
			})
		}
	}
}

// Templates of overrides are pinned too, those of others by what they mean now, and
// not where Git itself writes the alias.
func TestOverridesOnAnAliasArePinned(t *testing.T) {
	w := newWorld(t)
	w.theirTemplate()
	w.anotherVersion("theirs")
	pool := func(key, rollback string, overrides ...intent.Override) intent.Pool {
		p := autoscaled("web", key)
		if rollback == "" {
			p.Group.Refresh.AutoRollback = nil
		}
		m := mixed(50)
		m.Overrides = append(m.Overrides[:1:1], overrides...)
		p.Group.MixedInstancesPolicy = m
		return p
	}
	theirs := intent.Override{InstanceType: "m6g.large", LaunchTemplate: &intent.LaunchTemplateSpecification{Name: "theirs", Version: "$Latest"}}
	w.settle(target("blue", pool("", "", theirs)))
	versions := func() string {
		p := w.group("web").MixedInstancesPolicy.LaunchTemplate
		out := aws.ToString(p.LaunchTemplateSpecification.Version)
		for _, o := range p.Overrides {
			if o.LaunchTemplateSpecification != nil {
				out += " " + aws.ToString(o.LaunchTemplateSpecification.Version)
			}
		}
		return out
	}
	w.setAlias("web", "$Latest")
	next := target("blue", pool("another", "", theirs))
	next.Policy.Gates.Window = "opens on Monday"
	w.must(reconciler.Apply, next)
	if got := versions(); got != "1 $Latest" {
		t.Errorf("where Git writes the alias of an override the versions are %q", got)
	}
	w.setAlias("web", "$Latest")
	next = target("blue", pool("another", "back", intent.Override{InstanceType: "m5a.large"}))
	next.Policy.Gates.Window = "opens on Monday"
	w.must(reconciler.Apply, next)
	if got := versions(); !strings.HasSuffix(got, " 2") || strings.Contains(got, "$") {
		t.Errorf("where Git drops the override the versions are %q", got)
	}
	next.Policy.Gates.Window = ""
	w.settle(next)
}

// A refresh with a configuration of its own forbids setting the group to a version:
// it is ended first, and nothing is made before.
func TestAnAliasIsPinnedAfterARefreshThatIsInTheWay(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", autoscaled("web", "")))
	w.setAlias("web", "$Latest")
	w.check(w.groups().StartInstanceRefresh(context.Background(), &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: aws.String("web"),
		DesiredConfiguration: &astypes.DesiredConfiguration{LaunchTemplate: &astypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("web"), Version: aws.String("1")}}}))
	next := target("blue", autoscaled("web", "another"))
	r := w.must(reconciler.Apply, next)[0]
	if n := aws.ToInt64(w.template("web").LatestVersionNumber); n != 1 || len(r.Failures()) > 0 {
		t.Errorf("version %d was made, failures %v", n, r.Failures())
	}
	w.settle(next)
	if v := w.templateOf("web").Version; v != "2" {
		t.Errorf("the group launches version %s", v)
	}
}

// A crash at any write between the alias and the end of the rollout leaves nothing
// that goes live by itself, and the next process goes on.
func TestACrashWhileAnAliasIsPinned(t *testing.T) {
	for n := range 4 { // the pin, the version, the refresh, the default version
		for what, kind := range map[string]awsemu.FaultKind{"before": awsemu.CutBefore, "after": awsemu.LoseAnswer} {
			t.Run(fmt.Sprintf("%d %s", n+1, what), func(t *testing.T) {
				w := newWorld(t)
				w.settle(target("blue", autoscaled("web", "")))
				w.setAlias("web", "$Latest")
				next := target("blue", autoscaled("web", "another"))
				remove := w.srv.Faults().Add(awsemu.Fault{Kind: kind, WritesOnly: true, After: n})
				for range 20 {
					r, err := w.pass(reconciler.Apply, next)
					if err != nil || len(r[0].Failures()) > 0 {
						break
					}
					w.clock.Advance(2 * time.Second)
				}
				remove()
				if aws.ToInt64(w.template("web").LatestVersionNumber) > 1 && w.templateOf("web").Version == "$Latest" {
					t.Error("a version was made while the group follows the newest")
				}
				w.restart()
				w.settle(next)
				if got := w.numbers("web"); len(got) != 2 {
					t.Errorf("versions %v", got)
				}
				if got := w.instances("web"); len(got) != 2 || !strings.HasSuffix(got[0], " 2") || !strings.HasSuffix(got[1], " 2") {
					t.Errorf("machines %v", got)
				}
			})
		}
	}
}

// A template that pools share gets its version when the last of their groups is
// pinned; where the pool of one is paused, the version waits and says for what.
func TestASharedTemplateWaitsForAGroupOnAnAlias(t *testing.T) {
	w := newWorld(t)
	w.settle(w.sharing("one"))
	web := ""
	for _, p := range w.sharing("one").Set.Pools {
		if p.Key.Name == "web" {
			web = p.Group.Name
		}
	}
	w.setAlias(web, "$Latest")
	next := w.sharing("two")
	for i := range next.Set.Pools {
		next.Set.Pools[i].Paused = next.Set.Pools[i].Key.Name == "web"
	}
	w.srv.ResetCalls()
	var r *plan.Report
	for range 3 {
		r = w.must(reconciler.Apply, next)[0]
		w.clock.Advance(2 * time.Second)
	}
	n := aws.ToInt64(w.templates()[w.templateOf(web).Name].LatestVersionNumber)
	held := 0
	for _, s := range r.Plan.Steps {
		if strings.Contains(s.HeldReason, "default/web") {
			held++
		}
	}
	if n != 1 || held < 2 { // the version, and what api has to do with it
		t.Errorf("version %d was made for a paused pool's group; held %d of %+v", n, held, r.Plan.Steps)
	}
	for i := range next.Set.Pools {
		next.Set.Pools[i].Paused = false
	}
	w.settle(next)
	if v := w.templateOf(web).Version; v != "2" {
		t.Errorf("the group launches version %s", v)
	}
}
