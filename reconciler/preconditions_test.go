package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// open is a fence that lets everything through, unless it is shut.
type open struct{ shut error }

func (o *open) MayBegin() error { return o.shut }

func (*open) Until() time.Time { return time.Now().Add(time.Hour) }

// inASharedScope makes the world's scope one that other weirs may take over.
func (w *world) inASharedScope(f sdk.Fence) {
	w.t.Helper()
	cloud, err := awscloud.Open(context.Background(), sdk.Options{Region: testRegion, EndpointURL: w.url, Embedded: true, Attempts: 1, Now: w.clock.Now, Fence: f})
	w.check(nil, err)
	w.scope = reconciler.NewScope(reconciler.Options{Cloud: cloud, Resolver: resolve.New(cloud, w.clock.Now), Now: w.clock.Now, Shared: true, Concurrency: 1})
}

// usurped is an AWS in which another owner takes each resource over between a pass's look
// and the first call of each kind of action about it.
type usurped struct {
	reconciler.Cloud
	w *world
	// late is how far the time went on between a step and the one before.
	late *time.Duration
	// said is what became of that call, by the action.
	said map[string]string
}

func (c *usurped) own(a step.About, owner string) bool {
	w, ctx := c.w, context.Background()
	switch {
	case a.Group != "":
		w.tagGroup(a.Group, observed.TagOwner, owner)
	case a.Nodegroup.Name != "":
		n, err := w.eks().DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &a.Nodegroup.Cluster, NodegroupName: &a.Nodegroup.Name})
		w.check(n, err)
		w.check(w.eks().TagResource(ctx, &eks.TagResourceInput{ResourceArn: n.Nodegroup.NodegroupArn, Tags: map[string]string{observed.TagOwner: owner}}))
	case a.Template.Name != "":
		w.tagTemplate(a.Template.Name, observed.TagOwner, owner)
	default:
		return false
	}
	return true
}

func (c *usurped) Execute(ctx context.Context, do step.Action) (step.Result, error) {
	name, a := strings.TrimPrefix(fmt.Sprintf("%T", do), "step."), do.About()
	*c.late += 3 * time.Second
	if c.said[name] != "" || a.Makes != "" || !c.own(a, "other") {
		return c.Cloud.Execute(ctx, do)
	}
	c.w.srv.ResetCalls()
	res, err := c.Cloud.Execute(ctx, do)
	wrote := c.w.wrote()
	var e *observed.Error
	switch errors.As(err, &e); {
	case len(wrote) > 0:
		c.said[name] = fmt.Sprintf("%v", wrote)
	case e == nil || e.Kind != observed.Busy:
		c.said[name] = fmt.Sprintf("%v", err)
	default:
		c.said[name] = "left alone"
	}
	c.own(a, testInstance)
	return res, err
}

// Where another weir may have been since the pass looked, no call that has no condition of
// its own is sent before it is known whose the resource still is, whatever kind it is of.
func TestNothingIsChangedThatChangedHandsInASharedScope(t *testing.T) {
	w := newWorld(t)
	w.golden("golden", "x86_64", "m5.large")
	w.inASharedScope(&open{})
	after := time.Duration(0)
	c := &usurped{w: w, late: &after, said: map[string]string{}}
	c.Cloud = slow{w.scope.Cloud, &after}
	w.scope.Cloud, w.scope.Now = c, func() time.Time { return w.clock.Now().Add(after) }
	ng := nodegroupPool("ng", 1)
	with := func(d reconciler.Desired, more ...intent.Pool) reconciler.Desired {
		d.Set.Pools = append(slices.Clone(d.Set.Pools), more...)
		return d
	}
	lives := chapters(t, w.subnets())
	less := lives[2]
	less.git = func() reconciler.Desired {
		d := lives[2].git()
		d.Set.Pools[0].Group.LifecycleHooks, d.Set.Pools[0].Group.Options.WarmPool = nil, nil
		return d
	}
	for i, ch := range slices.Insert(slices.Clone(lives), 3, less) {
		ch.before(w)
		d := ch.git()
		switch i {
		case 1:
			ng.LaunchTemplate.Data.InstanceType = "m5.xlarge"
			ng.LaunchTemplate.Data.KeyName = "another"
		case 2:
			ng.Replicas.Value = 3
			ng.Nodegroup.Labels = map[string]string{"a": "b"}
			ng.Nodegroup.Tags = map[string]string{"team": "platform"}
		}
		if i < 4 {
			d = with(d, ng)
		}
		if _, trouble := w.settled(d); trouble != "" {
			t.Fatalf("%s: %s (%v)", ch.name, trouble, c.said)
		}
	}
	want := map[string]string{}
	for _, name := range strings.Fields("DeleteGroup DeleteHook DeleteLaunchTemplate DeleteNodegroup PutHook PutWarmPool SetDefaultVersion SetMetrics SetProcesses SetTrafficSources StartRefresh TagGroup TagLaunchTemplate TagNodegroup UpdateGroup UpdateNodegroupConfig UpdateNodegroupVersion") {
		want[name] = "left alone"
	}
	if d := cmp.Diff(want, c.said); d != "" {
		t.Errorf("what was usurped (-want +got):\n%s\n%v", d, slices.Sorted(maps.Keys(c.said)))
	}
}

// sluggish is an AWS that takes a while to say what something is, the first times.
type sluggish struct {
	reconciler.Cloud
	late  *time.Duration
	times int
	takes time.Duration
}

func (c *sluggish) Execute(ctx context.Context, do step.Action) (step.Result, error) {
	*c.late += 3 * time.Second // for that long the step waited
	return c.Cloud.Execute(ctx, do)
}

func (c *sluggish) Confirm(ctx context.Context, seen step.Seen) error {
	err := c.Cloud.Confirm(ctx, seen)
	if c.times > 0 {
		c.times--
		*c.late += c.takes
	}
	return err
}

// A look that AWS took long to answer is as old as its question: it is asked again, and
// where AWS is always that slow nothing is changed.
func TestASlowLookIsNoLookInASharedScope(t *testing.T) {
	for name, tc := range map[string]struct {
		times  int
		takes  time.Duration
		writes bool
	}{
		"in time":    {100, 1700 * time.Millisecond, true},
		"late twice": {2, 1800 * time.Millisecond, true},
		"late":       {100, 1800 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.inASharedScope(&open{})
			w.settle(target("blue", groupPool("web", "m5.large", 1)))
			after := time.Duration(0)
			w.scope.Cloud = &sluggish{Cloud: w.scope.Cloud, late: &after, times: tc.times, takes: tc.takes}
			w.scope.Now = func() time.Time { return w.clock.Now().Add(after) }
			w.srv.ResetCalls()
			r := w.must(reconciler.Apply, target("blue", groupPool("web", "m5.large", 2)))[0]
			if got := len(w.wrote()) > 0; got != tc.writes {
				t.Errorf("wrote %v: %+v", w.wrote(), r.Outcomes)
			}
			for _, o := range r.Outcomes {
				if !tc.writes && !strings.Contains(fmt.Sprint(o.Err), "longer than 1.75s") {
					t.Errorf("%s %s: %v", o.Step.Name, o.Status, o.Err)
				}
			}
		})
	}
}

// A step that the fence keeps back has not failed. Nothing is parked, and the pass after
// it does what is left, which is nothing where another weir has done it meanwhile.
func TestWhatTheFenceKeepsBackIsPlannedAnew(t *testing.T) {
	w := newWorld(t)
	f := &open{shut: errors.New("another weir owns it now")}
	w.inASharedScope(f)
	web := target("blue", groupPool("web", "m5.large", 1))
	r := w.must(reconciler.Apply, web)[0]
	if len(r.Outcomes) == 0 || len(r.Failures()) > 0 || len(w.wrote()) > 0 {
		t.Fatalf("outcomes %+v, writes %v", r.Outcomes, w.wrote())
	}
	for _, o := range r.Outcomes {
		if o.Status != step.Skipped || o.Parked {
			t.Errorf("%s is %s, parked %v", o.Step.Name, o.Status, o.Parked)
		}
	}
	if !reconciler.Moving(r) {
		t.Error("the next look is not soon")
	}
	f.shut = nil
	w.settle(web)
}
