package reconciler_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// drifts is one thing that somebody changes in AWS.
type drifts struct {
	// declare makes Git say something of it, where the pools of the test do not.
	declare func(w *world, web, ng *intent.Pool)
	change  func(w *world)
	field   string // that the correcting step names; "" for a step of no field
	action  string // that corrects it
	cause   string // what AWS says of it
}

// members are the members of step.UpdateGroup, by name: those that are special, and one
// of the pool's and one of PoolOptions' of the others.
func members() map[string]drifts {
	out := map[string]drifts{
		"MinSize": update("minSize", func(*world) step.UpdateGroup { return step.UpdateGroup{MinSize: aws.Int32(1)} }),
		"MaxSize": update("maxSize", func(*world) step.UpdateGroup { return step.UpdateGroup{MaxSize: aws.Int32(5)} }),
		"DefaultCooldown": update("defaultCoolDown", func(*world) step.UpdateGroup {
			return step.UpdateGroup{GroupSettings: intent.GroupSettings{DefaultCooldown: aws.Int32(60)}}
		}),
		"DesiredCapacity": with(update("replicas", func(*world) step.UpdateGroup { return step.UpdateGroup{DesiredCapacity: aws.Int32(4)} }), func(d *drifts) {
			d.cause = "changing the desired capacity from 2 to 4"
		}),
		"SubnetIDs": with(update("subnets", func(w *world) step.UpdateGroup { return step.UpdateGroup{SubnetIDs: w.subnets()[:1]} }), func(d *drifts) {
			d.declare = func(w *world, web, _ *intent.Pool) {
				web.Group.Subnets = intent.Lookup{Kind: intent.Subnets, Cluster: clusterKey, IDs: intent.JoinList(w.subnets())}
			}
		}),
		"Template": {field: "launchTemplate.version", action: "UpdateGroup", change: func(w *world) {
			w.setVersion("web", w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.KeyName = aws.String("evil") }))
		}},
		"MixedInstancesPolicy": with(update("mixedInstancesPolicy", func(w *world) step.UpdateGroup {
			return step.UpdateGroup{Template: w.templateOf("web"), MixedInstancesPolicy: mixed(50)}
		}), func(d *drifts) {
			d.declare = func(_ *world, web, _ *intent.Pool) {
				web.Group.MixedInstancesPolicy, web.Group.Refresh.Disable = mixed(100), true
			}
		}),
	}
	for name, d := range optionMembers() {
		out["Options."+name] = d
	}
	return out
}

func mixed(onDemand int32) *intent.MixedInstances {
	return &intent.MixedInstances{OnDemandAllocationStrategy: "prioritized", OnDemandPercentageAboveBaseCapacity: onDemand, SpotAllocationStrategy: "price-capacity-optimized",
		Overrides: []intent.Override{{InstanceType: "m5.large"}, {InstanceType: "m5.xlarge"}}}
}

// update is a change of the group web by the call that weir itself would make.
func update(field string, make func(*world) step.UpdateGroup) drifts {
	return drifts{field: field, action: "UpdateGroup", change: func(w *world) {
		u := make(w)
		u.Name = "web"
		w.check(newScope(w).Cloud.Execute(context.Background(), u))
	}}
}

func with(d drifts, more func(*drifts)) drifts {
	more(&d)
	return d
}

// option is a change of a member of UpdateGroup.Options.
func option(field string, declared, changed intent.GroupOptions) drifts {
	d := update(field, func(*world) step.UpdateGroup {
		return step.UpdateGroup{GroupSettings: intent.GroupSettings{Options: changed}}
	})
	d.declare = declares(declared)
	return d
}

func declares(o intent.GroupOptions) func(*world, *intent.Pool, *intent.Pool) {
	return func(_ *world, web, _ *intent.Pool) { web.Group.Options = o }
}

// byOwnCall is a change of an option by the call that it has of its own.
func byOwnCall(field, action string, declared intent.GroupOptions, change step.Action) drifts {
	return drifts{field: field, action: action, declare: declares(declared), change: func(w *world) {
		w.check(newScope(w).Cloud.Execute(context.Background(), change))
	}}
}

// optionMembers are the members of step.UpdateGroup.Options, by name.
func optionMembers() map[string]drifts {
	type o = intent.GroupOptions
	healthy := func(low, high int32) *intent.HealthyPercentages {
		return &intent.HealthyPercentages{MinHealthyPercentage: aws.Int32(low), MaxHealthyPercentage: aws.Int32(high)}
	}
	const arn = "arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/"
	target, other := intent.TrafficSource{Identifier: arn + "a/1", Type: "elbv2"}, intent.TrafficSource{Identifier: arn + "b/2", Type: "elbv2"}
	small, larger := intent.UsualWarmPool(), intent.UsualWarmPool()
	larger.MinSize = 2
	return map[string]drifts{
		"CapacityReservationSpecification": option("autoScalingGroup.capacityReservationSpecification", o{CapacityReservationSpecification: &intent.GroupReservation{CapacityReservationPreference: "none"}},
			o{CapacityReservationSpecification: &intent.GroupReservation{CapacityReservationPreference: "default"}}),
		"HealthCheckGracePeriod":    option("autoScalingGroup.healthCheckGracePeriod", o{HealthCheckGracePeriod: aws.Int32(60)}, o{HealthCheckGracePeriod: aws.Int32(90)}),
		"HealthCheckType":           option("autoScalingGroup.healthCheckType", o{HealthCheckType: "EC2"}, o{HealthCheckType: "EC2,ELB"}),
		"InstanceMaintenancePolicy": option("autoScalingGroup.instanceMaintenancePolicy", o{InstanceMaintenancePolicy: healthy(90, 110)}, o{InstanceMaintenancePolicy: healthy(50, 100)}),
		"TargetGroupARNs":           byOwnCall("autoScalingGroup.targetGroupARNs", "SetTrafficSources", o{TargetGroupARNs: []string{target.Identifier}}, step.SetTrafficSources{Group: "web", Detach: []intent.TrafficSource{target}}),
		"TrafficSources":            byOwnCall("autoScalingGroup.trafficSources", "SetTrafficSources", o{TrafficSources: []intent.TrafficSource{target}}, step.SetTrafficSources{Group: "web", Attach: []intent.TrafficSource{other}}),
		"WarmPool":                  byOwnCall("autoScalingGroup.warmPool", "PutWarmPool", o{WarmPool: &small}, step.PutWarmPool{Group: "web", WarmPool: larger}),
		"DeleteWarmPool":            byOwnCall("autoScalingGroup.warmPool", "DeleteWarmPool", o{DeleteWarmPool: true}, step.PutWarmPool{Group: "web", WarmPool: small, New: true}),
		"MetricsCollection": byOwnCall("autoScalingGroup.metricsCollection", "SetMetrics", o{MetricsCollection: &intent.MetricsCollection{Granularity: "1Minute", Metrics: []string{"GroupMinSize"}}},
			step.SetMetrics{Group: "web", Granularity: "1Minute", Enable: []string{"GroupMaxSize"}}),
	}
}

// others are the things beside the members of step.UpdateGroup.
func others() map[string]drifts {
	ctx := context.Background()
	hook := func(_ *world, web, ng *intent.Pool) {
		web.Group.LifecycleHooks, ng.Nodegroup.LifecycleHooks = []intent.LifecycleHook{drainHook(60)}, []intent.LifecycleHook{drainHook(60)}
	}
	process := func(suspended bool) func(*world, *intent.Pool, *intent.Pool) {
		return func(_ *world, web, _ *intent.Pool) {
			web.Group.SuspendedProcesses = []intent.Process{{Name: "AZRebalance", Suspended: suspended}}
		}
	}
	tag := func(group string) *autoscaling.CreateOrUpdateTagsInput {
		return &autoscaling.CreateOrUpdateTagsInput{Tags: []astypes.Tag{{Key: aws.String("Name"), Value: aws.String("mine"), ResourceId: aws.String(group),
			ResourceType: aws.String("auto-scaling-group"), PropagateAtLaunch: aws.Bool(false)}}}
	}
	processes := &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String("web"), ScalingProcesses: []string{"AZRebalance"}}
	ng := &eks.UpdateNodegroupConfigInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("ng")}
	return map[string]drifts{
		"the group deleted": {action: "CreateGroup", cause: "force deleted", change: func(w *world) {
			w.check(w.groups().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), ForceDelete: aws.Bool(true)}))
			w.clock.Advance(10 * time.Minute)
		}},
		"machines on another version": {action: "StartRefresh", field: "launchTemplate.version", cause: "an instance was started", change: func(w *world) {
			w.setVersion("web", w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.InstanceType = types.InstanceTypeT3Large }))
			w.replaceInstances("web")
		}},
		"a process resumed": {declare: process(true), field: "suspendProcesses.AZRebalance", action: "SetProcesses", change: func(w *world) {
			w.check(w.groups().ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: aws.String("web"), ScalingProcesses: processes.ScalingProcesses}))
		}},
		"a process suspended": {declare: process(false), field: "suspendProcesses.AZRebalance", action: "SetProcesses", change: func(w *world) {
			w.check(w.groups().SuspendProcesses(ctx, processes))
		}},
		"a tag changed":         {field: "tags", action: "TagGroup", change: func(w *world) { w.check(w.groups().CreateOrUpdateTags(ctx, tag("web"))) }},
		"a tag behind changed":  {field: "tags", action: "TagGroup", change: func(w *world) { w.check(w.groups().CreateOrUpdateTags(ctx, tag(w.behind()))) }},
		"a hook removed":        {declare: hook, field: "lifecycleHooks.drain", action: "PutHook", change: func(w *world) { w.deleteHook("web", "drain"); w.clock.Advance(11 * time.Minute) }},
		"a hook changed":        {declare: hook, field: "lifecycleHooks.drain.heartbeatTimeout", action: "PutHook", change: func(w *world) { w.putHook("web", "drain", 90); w.clock.Advance(11 * time.Minute) }},
		"a hook behind removed": {declare: hook, field: "lifecycleHooks.drain", action: "PutHook", change: func(w *world) { w.deleteHook(w.behind(), "drain"); w.clock.Advance(11 * time.Minute) }},
		"the default moved": {action: "SetDefaultVersion", change: func(w *world) {
			w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.KeyName = aws.String("evil") })
			w.moveDefault("web", "2")
		}},
		"a template tag":       {field: "tags", action: "TagLaunchTemplate", change: func(w *world) { w.tagTemplate("web", "Name", "mine") }},
		"the template deleted": {action: "CreateLaunchTemplate", change: func(w *world) { w.deleteTemplate("web") }},
		"the nodegroup deleted": {action: "CreateNodegroup", change: func(w *world) {
			w.check(w.eks().DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: ng.ClusterName, NodegroupName: ng.NodegroupName}))
			w.clock.Advance(time.Hour)
		}},
		"a nodegroup's label": {field: "labels", action: "UpdateNodegroupConfig", change: func(w *world) {
			in := *ng
			in.Labels = &ekstypes.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{"a": "b"}}
			w.check(w.eks().UpdateNodegroupConfig(ctx, &in))
			w.clock.Advance(time.Hour)
		}},
		"a nodegroup's tag": {field: "tags", action: "TagNodegroup", change: func(w *world) { w.untagNodegroup("ng", observed.TagPool) }},
		"a nodegroup's version": {field: "launchTemplate.version", action: "UpdateNodegroupVersion", change: func(w *world) {
			w.byHand("cp-ng", func(d *types.RequestLaunchTemplateData) { d.InstanceType = types.InstanceTypeT3Large })
			w.check(w.eks().UpdateNodegroupVersion(ctx, &eks.UpdateNodegroupVersionInput{ClusterName: ng.ClusterName, NodegroupName: ng.NodegroupName,
				LaunchTemplate: &ekstypes.LaunchTemplateSpecification{Name: aws.String("cp-ng"), Version: aws.String("2")}}))
			w.clock.Advance(time.Hour)
		}},
	}
}

// nothing says of an action why no change from outside asks for it.
var nothing = map[string]string{
	"DeleteGroup": "what Git does not want is an orphan", "DeleteNodegroup": "what Git does not want is an orphan", "DeleteLaunchTemplate": "what Git does not want is an orphan",
	"DeleteLaunchTemplateVersions": "pruning follows from a number", "CreateLaunchTemplateVersion": "TestDriftOfATemplateIsPutRight has versions deleted", "CancelRefresh": "a refresh of somebody else's is no change of what is wanted", "RollbackRefresh": "a stopped change goes back",
	"HoldMachine":    "no plan has it: a machine that waits is looked after beside the steps",
	"ReleaseMachine": "no plan has it: a machine that waits is looked after beside the steps",
	"DeleteHook":     "a hook that Git never declared is left alone",
}

// Each managed member of a group has its test: a new member or a new action that
// none of them covers fails here.
func TestEveryMemberAndActionHasADrift(t *testing.T) {
	known, covered := members(), map[string]bool{}
	rows := map[string]bool{} // TestEveryRowOfAGroupIsHeld changes these by hand
	for _, m := range field.GroupMembers() {
		rows[strings.ToLower(m.AWS)] = !m.Special && m.Call == field.UpdateGroup
	}
	need := func(f reflect.StructField, name string) {
		if _, ok := known[name]; !ok && !rows[strings.ToLower(field.JSONKey(f))] {
			t.Errorf("step.UpdateGroup.%s: no test changes it outside Git; add one to members", name)
		}
		delete(known, name)
	}
	for _, d := range []map[string]drifts{members(), others()} {
		for _, v := range d {
			covered[v.action] = true
		}
	}
	of := reflect.TypeFor[step.UpdateGroup]()
	for i := range of.NumField() {
		switch f := of.Field(i); {
		case f.Name == "Name":
		case f.Type.Kind() == reflect.Struct:
			for _, inner := range reflect.VisibleFields(f.Type) {
				if inner.Type.Kind() != reflect.Struct {
					need(inner, inner.Name)
				}
			}
			for _, inner := range reflect.VisibleFields(reflect.TypeFor[intent.GroupOptions]()) {
				if name := "Options." + inner.Name; notDrift[name] == "" {
					need(inner, name)
				}
			}
		default:
			need(f, f.Name)
		}
	}
	for name := range known {
		t.Errorf("step.UpdateGroup has no member %s", name)
	}
	for _, action := range actions(t) {
		if !covered[action] && nothing[action] == "" {
			t.Errorf("step.%s: no change outside Git is put right by it; add one to others", action)
		}
	}
}

// notDrift says of members of requests why they cannot be changed outside Git.
var notDrift = map[string]string{
	"Options.SkipZonalShiftValidation": "it is of requests, and groups have none",
	"Options.LoadBalancerNames":        "the emulator has no classic load balancers; they go the way of TargetGroupARNs",
	"Options.DesiredCapacityType":      "AWS counts otherwise only for policies by attributes, which a rollout brings",
}

// actions are the types of package step that are actions.
func actions(t *testing.T) (out []string) {
	files, err := filepath.Glob("step/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "About" && fn.Recv != nil && fn.Recv.List[0].Type.(*ast.Ident).Name != "Step" {
				out = append(out, fn.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	if len(out) < 20 {
		t.Fatalf("found %d actions", len(out))
	}
	return out
}

// The plan shows a change by hand with the value before it. A target that corrects puts
// it right, one that reports only says so.
func TestDriftIsCorrectedOrReported(t *testing.T) {
	all := members()
	for name, d := range others() {
		all[name] = d
	}
	for name, d := range all {
		for _, report := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s report=%v", name, report), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				web, ng := groupPool("web", "m5.large", 2), nodegroupPool("ng", 1)
				for _, p := range []*intent.Pool{&web, &ng} {
					p.LaunchTemplate.Tags = map[string]string{"Name": "it"}
				}
				web.Group.Tags, ng.Nodegroup.Tags = map[string]string{"Name": "it"}, map[string]string{"Name": "it"}
				if d.declare != nil {
					d.declare(w, &web, &ng)
				}
				blue := target("blue", web, ng)
				w.settle(blue)
				d.change(w)
				w.clock.Advance(time.Minute) // AWS acts on it
				blue.Policy.ReportOnly = report
				w.srv.ResetCalls()
				w.checkDrift(d, report, w.must(reconciler.Apply, blue)[0])
				if !report {
					w.settle(blue)
					if r := w.must(reconciler.PlanOnly, blue)[0]; !r.Plan.Empty() || hasCode(r, "drift") {
						t.Errorf("left over: %+v, %v", r.Plan.Steps, r.Diagnostics)
					}
					return
				}
				for range 3 {
					w.clock.Advance(time.Minute)
					w.checkDrift(d, report, w.must(reconciler.Apply, blue)[0])
				}
				reads := w.srv.CallCounts()["autoscaling:DescribeScalingActivities"]
				if d.cause != "" && reads != 1 || reads > 1 {
					t.Errorf("scaling activities were read %d times for one finding", reads)
				}
				w.restart()
				w.checkDrift(d, report, w.must(reconciler.Apply, blue)[0])
				if wrote := w.wrote(); len(wrote) > 0 {
					t.Errorf("a target that reports wrote %v", wrote)
				}
			})
		}
	}
}

// checkDrift looks at the first report after a change.
func (w *world) checkDrift(d drifts, report bool, r *plan.Report) {
	w.t.Helper()
	i := slices.IndexFunc(r.Plan.Steps, func(s step.Step) bool {
		named := d.field == "" || slices.ContainsFunc(s.Changes, func(c step.Change) bool {
			return strings.HasPrefix(c.Field, d.field) && !reflect.DeepEqual(c.From, c.To)
		})
		return named && strings.TrimPrefix(fmt.Sprintf("%T", s.Do), "step.") == d.action
	})
	if i < 0 {
		w.t.Fatalf("no step %s of %q: %+v, %v", d.action, d.field, r.Plan.Steps, r.Diagnostics)
	}
	s := r.Plan.Steps[i]
	if s.Drift == nil {
		w.t.Fatalf("the step is not called drift: %+v", s)
	}
	if !strings.Contains(s.Drift.Cause, d.cause) || (d.cause != "") == s.Drift.At.IsZero() {
		w.t.Errorf("the cause is %q at %s, want %q", s.Drift.Cause, s.Drift.At, d.cause)
	}
	told := slices.IndexFunc(r.Diagnostics, func(g diag.Diagnostic) bool { return g.Code == "drift" })
	if told < 0 || (r.Diagnostics[told].Severity == diag.Warning) != report || !strings.Contains(r.Diagnostics[told].Summary, d.cause) {
		w.t.Errorf("told of: %v", r.Diagnostics)
	}
	if (s.Held == step.HeldSuspended) != report {
		w.t.Errorf("held: %q", s.Held)
	}
	drifted := slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool {
		return slices.ContainsFunc(p.Conditions, func(c plan.Condition) bool { return c.Type == "Drifted" && c.Status == "True" })
	})
	if !drifted {
		w.t.Error("no pool has the condition Drifted")
	}
}

// A change of Git is no drift, nor is an answer of AWS that changed.
func TestAChangeOfGitIsNoDrift(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 2)))
	next := groupPool("web", "m5.large", 2)
	next.Group.MaxSize = 7
	for range 2 { // and stays none while it is held
		held := target("blue", next)
		held.Policy.Suspended = true
		r := w.must(reconciler.Apply, held)[0]
		if len(r.Plan.Steps) != 1 || r.Plan.Steps[0].Drift != nil || hasCode(r, "drift") {
			t.Errorf("steps %+v, diagnostics %v", r.Plan.Steps, r.Diagnostics)
		}
	}
	w.settle(target("blue", next))
	if n := w.srv.CallCounts()["autoscaling:DescribeScalingActivities"]; n != 0 {
		t.Errorf("scaling activities were read %d times", n)
	}
}
