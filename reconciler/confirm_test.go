package reconciler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// racing has something happen after a pass has planned and before its first request
// that ends something of the given kind.
type racing struct {
	reconciler.Cloud
	ends  func(step.Resource, step.Action) bool
	event func()
	once  sync.Once
}

func (c *racing) Confirm(ctx context.Context, seen step.Seen) error {
	if c.ends(seen.Resource, nil) {
		c.once.Do(c.event)
	}
	return c.Cloud.Confirm(ctx, seen)
}

func (c *racing) Execute(ctx context.Context, a step.Action) (step.Result, error) {
	if c.ends("", a) {
		c.once.Do(c.event)
	}
	return c.Cloud.Execute(ctx, a)
}

func (w *world) tagGroup(name, key, value string) {
	w.t.Helper()
	w.check(w.groups().CreateOrUpdateTags(context.Background(), &autoscaling.CreateOrUpdateTagsInput{Tags: []astypes.Tag{
		{Key: aws.String(key), Value: aws.String(value), ResourceId: aws.String(name), ResourceType: aws.String("auto-scaling-group"), PropagateAtLaunch: aws.Bool(false)}}}))
}

// anew replaces the group by one of the same name, with the same tags and one machine.
func (w *world) anew(name string) {
	w.t.Helper()
	ctx, had := context.Background(), w.group(name)
	w.check(w.groups().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), ForceDelete: aws.Bool(true)}))
	w.clock.Advance(time.Hour)
	in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), MinSize: aws.Int32(1), MaxSize: aws.Int32(1),
		LaunchTemplate: &astypes.LaunchTemplateSpecification{LaunchTemplateId: had.LaunchTemplate.LaunchTemplateId, Version: had.LaunchTemplate.Version}, VPCZoneIdentifier: had.VPCZoneIdentifier}
	for _, t := range had.Tags {
		in.Tags = append(in.Tags, astypes.Tag{Key: t.Key, Value: t.Value, ResourceId: t.ResourceId, ResourceType: t.ResourceType, PropagateAtLaunch: aws.Bool(false)})
	}
	w.check(w.groups().CreateAutoScalingGroup(ctx, in))
}

// weir does not delete a resource that changes hands between the look and the deletion,
// whatever it is.
func TestADeletionLooksOnceMore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	group := func(r step.Resource, a step.Action) bool {
		switch a.(type) {
		case step.DeleteGroup, step.UpdateGroup, step.DeleteWarmPool:
			return true
		}
		return r == step.AutoScalingGroup
	}
	nodegroup := func(r step.Resource, a step.Action) bool {
		_, is := a.(step.DeleteNodegroup)
		return is || r == step.ManagedNodegroup
	}
	template := func(r step.Resource, a step.Action) bool {
		_, is := a.(step.DeleteLaunchTemplate)
		return is || r == step.LaunchTemplate
	}
	retag := func(key, value string) func(*world) {
		return func(w *world) {
			n, err := w.eks().DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("ng")})
			w.check(n, err)
			w.check(w.eks().TagResource(ctx, &eks.TagResourceInput{ResourceArn: n.Nodegroup.NodegroupArn, Tags: map[string]string{key: value}}))
		}
	}
	own := []string{"group old of 1", "template cp-ng", "template old", "nodegroup ng"}
	for name, tt := range map[string]struct {
		drain bool
		ends  func(step.Resource, step.Action) bool
		event func(*world)
		says  string
		stays string
	}{
		"a group of another owner": {ends: group, event: func(w *world) { w.tagGroup("old", observed.TagOwner, "other") },
			says: `its tag weir.dev/owner was "prod" and is now "other"`, stays: own[0]},
		"a group of another pool": {ends: group, event: func(w *world) { w.tagGroup("old", observed.TagPool, "default/new") },
			says: "weir.dev/pool"}, // nobody wants that either: the next pass, which has seen it, deletes it
		"a group that is to stay": {ends: group, event: func(w *world) { w.tagGroup("old", observed.TagPrune, "disabled") },
			says: "weir.dev/prune", stays: own[0]},
		"a group made anew": {ends: group, event: func(w *world) { w.anew("old") }, says: "another one of the same name"},
		"a group that is gone": {ends: group, event: func(w *world) {
			w.check(w.groups().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("old"), ForceDelete: aws.Bool(true)}))
			w.clock.Advance(time.Hour)
		}, says: "it is gone"},
		"a group to be drained":  {drain: true, ends: group, event: func(w *world) { w.tagGroup("old", observed.TagOwner, "other") }, says: "weir.dev/owner", stays: own[0]},
		"a nodegroup":            {ends: nodegroup, event: retag(observed.TagOwner, "other"), says: "weir.dev/owner", stays: own[3]},
		"a nodegroup that stays": {ends: nodegroup, event: retag(observed.TagPrune, "disabled"), says: "weir.dev/prune", stays: own[3]},
		"a template":             {ends: template, event: func(w *world) { w.tagTemplate("old", observed.TagOwner, "other") }, says: "weir.dev/owner", stays: own[2]},
		"a template without tags": {ends: template, event: func(w *world) {
			w.check(w.ec2().DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{aws.ToString(w.template("old").LaunchTemplateId)}, Tags: []types.Tag{{Key: aws.String(observed.TagOwner)}}}))
		}, says: "is now (none)", stays: own[2]},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			web, old, ng := groupPool("web", "m5.large", 1), groupPool("old", "m5.large", 1), nodegroupPool("ng", 1)
			old.Drain = tt.drain
			w.settle(target("blue", web, old, ng))
			blue := target("blue", web)
			blue.Policy.Prune.Count = 10
			happened, said := false, ""
			w.scope.Cloud = &racing{Cloud: w.scope.Cloud, ends: tt.ends, event: func() { happened = true; tt.event(w) }}
			for range 20 {
				for _, r := range w.must(reconciler.Apply, blue) {
					for _, o := range r.Outcomes {
						if o.Err != nil {
							said += o.Err.Error() + "\n"
						}
					}
				}
				w.clock.Advance(10 * time.Second)
			}
			if !happened || !strings.Contains(said, tt.says) {
				t.Errorf("happened %v, said %q", happened, said)
			}
			if held := fmt.Sprint(w.held()); tt.stays != "" && !strings.Contains(held, tt.stays) || !strings.Contains(held, "group web of 1") {
				t.Errorf("left: %s", held)
			}
		})
	}
}

// Versions of a template that changed hands stay too.
func TestVersionsOfATemplateThatChangedHandsStay(t *testing.T) {
	w := newWorld(t)
	w.settle(keeping(0, 0))
	w.copies(5)
	before := w.numbers("web")
	w.scope.Cloud = &racing{Cloud: w.scope.Cloud, ends: func(r step.Resource, a step.Action) bool {
		_, is := a.(step.DeleteLaunchTemplateVersions)
		return is || r == step.LaunchTemplate
	}, event: func() { w.tagTemplate("web", observed.TagOwner, "other") }}
	r := w.must(reconciler.Apply, keeping(1, 1))[0]
	if len(r.Outcomes) == 0 || r.Outcomes[0].Err == nil || r.Outcomes[0].Err.Kind != observed.Busy {
		t.Errorf("outcomes: got %+v", r.Outcomes)
	}
	if d := cmp.Diff(before, w.numbers("web")); d != "" {
		t.Errorf("versions (-before +now):\n%s", d)
	}
}

// slow is an AWS by whose limits a pass comes late to its steps.
type slow struct {
	reconciler.Cloud
	after *time.Duration
}

func (c slow) Observe(ctx context.Context, q observed.Query) (observed.State, error) {
	*c.after += 10 * time.Second
	return c.Cloud.Observe(ctx, q)
}

// Nor are machines replaced or ended of what changed hands since the pass observed it.
func TestMachinesOfWhatChangedHandsStay(t *testing.T) {
	ctx := context.Background()
	roll, nodegroupRoll, size := "Rolls", "UpdatesVersion", "Shrinks"
	for name, tt := range map[string]struct {
		how   string
		event func(*world)
		says  string
	}{
		"a group to roll, of another owner":   {roll, func(w *world) { w.tagGroup("web", observed.TagOwner, "other") }, "weir.dev/owner"},
		"a group to roll, made anew":          {roll, func(w *world) { w.anew("web") }, "another one of the same name"},
		"a group to shrink, of another owner": {size, func(w *world) { w.tagGroup("web", observed.TagOwner, "other") }, "weir.dev/owner"},
		"a group to shrink, made anew":        {size, func(w *world) { w.anew("web") }, "another one of the same name"},
		"a nodegroup": {nodegroupRoll, func(w *world) {
			n, err := w.eks().DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("ng")})
			w.check(n, err)
			w.check(w.eks().TagResource(ctx, &eks.TagResourceInput{ResourceArn: n.Nodegroup.NodegroupArn, Tags: map[string]string{observed.TagOwner: "other"}}))
		}, "weir.dev/owner"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			web, ng := groupPool("web", "m5.large", 2), nodegroupPool("ng", 1)
			w.settle(target("blue", web, ng))
			switch tt.how {
			case roll:
				web = groupPool("web", "m5.xlarge", 2)
			case size:
				web = groupPool("web", "m5.large", 1)
			default:
				ng.LaunchTemplate.Data.InstanceType = "m5.xlarge"
			}
			took, after := false, time.Duration(0)
			w.scope.Cloud, w.scope.Now = slow{w.scope.Cloud, &after}, func() time.Time { return w.clock.Now().Add(after) }
			w.scope.Cloud = &racing{Cloud: w.scope.Cloud, event: func() { tt.event(w) }, ends: func(r step.Resource, a step.Action) bool {
				switch a.(type) {
				case step.StartRefresh, step.UpdateGroup, step.UpdateNodegroupVersion:
					took = true
				}
				return r != "" && r != step.LaunchTemplate
			}}
			said := ""
			for _, r := range w.must(reconciler.Apply, target("blue", web, ng)) {
				for _, o := range r.Outcomes {
					if o.Err != nil {
						said += o.Err.Error() + "\n"
					}
				}
			}
			if took || !strings.Contains(said, tt.says) {
				t.Errorf("a call was made: %v; said %q", took, said)
			}
		})
	}
}
