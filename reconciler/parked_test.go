package reconciler_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/eks"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

// paced makes passes for a time as the loop does: soon where something moves, else
// at the interval. It returns how many, and the last reports.
func (w *world) paced(d time.Duration, targets ...reconciler.Desired) (passes int, last []*plan.Report) {
	w.t.Helper()
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); passes++ {
		last = w.must(reconciler.Apply, targets...)
		wait := reconciler.DefaultInterval
		for _, r := range last {
			if reconciler.Moving(r) {
				wait = reconciler.DefaultMovingDelay
			}
		}
		w.clock.Advance(wait)
	}
	return passes, last
}

// changed is the pool with another instance type, and what else f does to it.
func changed(p intent.Pool, f func(*intent.Pool)) reconciler.Desired {
	template := *p.LaunchTemplate
	template.Data.InstanceType = "m5.xlarge"
	p.LaunchTemplate = &template
	if p.Group != nil {
		group := *p.Group
		p.Group = &group
	}
	if f != nil {
		f(&p)
	}
	return target("blue", p)
}

// weir looks at a change that AWS will not take, and at a rollout that failed, once an
// interval like at a pool at rest, and not every few seconds: nothing changes by
// itself.
func TestAParkedPoolIsAtRest(t *testing.T) {
	t.Parallel()
	refuse := func(operation, code string, status int) func(*world) {
		return func(w *world) {
			w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: operation, Code: code, Status: status, Times: -1})
		}
	}
	noCapacity := func(w *world) { w.srv.Faults().Launches.Add(ec2.LaunchFault{Code: "InsufficientInstanceCapacity"}) }
	web := func() intent.Pool { return groupPool("web", "m5.large", 2) }
	larger := func(p *intent.Pool) { p.Group.MaxSize = 20 }
	rollback := func(p *intent.Pool) { p.Group.Refresh.AutoRollback = aws.Bool(true) }
	tests := map[string]struct {
		before, after reconciler.Desired
		fault         func(*world)
	}{
		"a new pool, invalid":          {target("blue"), target("blue", web()), refuse("CreateAutoScalingGroup", "ValidationError", 400)},
		"a new pool, denied":           {target("blue"), target("blue", web()), refuse("CreateLaunchTemplate", "UnauthorizedOperation", 403)},
		"a new pool, over a quota":     {target("blue"), target("blue", web()), refuse("CreateAutoScalingGroup", "LimitExceeded", 400)},
		"a change, denied":             {target("blue", web()), changed(web(), larger), refuse("UpdateAutoScalingGroup", "AccessDenied", 403)},
		"a version, denied":            {target("blue", web()), changed(web(), nil), refuse("CreateLaunchTemplateVersion", "UnauthorizedOperation", 403)},
		"a refresh, denied":            {target("blue", web()), changed(web(), nil), refuse("StartInstanceRefresh", "AccessDenied", 403)},
		"the default, denied":          {target("blue", web()), changed(web(), nil), refuse("ModifyLaunchTemplate", "UnauthorizedOperation", 403)},
		"a refresh that failed":        {target("blue", web()), changed(web(), nil), noCapacity},
		"a refresh that rolled back":   {target("blue", web()), changed(web(), rollback), noCapacity},
		"a nodegroup's failed update":  {target("blue", nodegroupPool("ng", 2)), changed(nodegroupPool("ng", 2), nil), func(w *world) { w.srv.Faults().Nodegroups.Add(eks.NodegroupFault{Evictions: true}) }},
		"a nodegroup's denied update":  {target("blue", nodegroupPool("ng", 2)), changed(nodegroupPool("ng", 2), nil), refuse("UpdateNodegroupVersion", "AccessDeniedException", 403)},
		"a nodegroup, invalid":         {target("blue"), target("blue", nodegroupPool("ng", 2)), refuse("CreateNodegroup", "InvalidParameterException", 400)},
		"a nodegroup that cannot come": {target("blue"), target("blue", nodegroupPool("ng", 2)), noCapacity},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(tt.before)
			tt.fault(w)
			w.paced(30*time.Minute, tt.after) // it fails
			w.srv.ResetCalls()
			n, last := w.paced(time.Hour, tt.after)
			if converged(last) {
				t.Fatal("nothing is parked")
			}
			if n > 60 {
				t.Errorf("%d passes in an hour, want 60: %v\n%v", n, w.srv.CallCounts(), last[0].Diagnostics)
			}
			if asked := w.srv.CallCounts()[polls]; asked > 14 {
				t.Errorf("%d questions about instance refreshes in an hour", asked)
			}
			// Each kind of refusal is tried again after a while, at most each ten minutes.
			if _, writes := w.calls(); writes > 7 {
				t.Errorf("%d writes in an hour: %v", writes, w.srv.CallCounts())
			}
		})
	}
}

// A pool that is parked does not hide one that moves.
func TestAParkedPoolBesideOneThatMoves(t *testing.T) {
	w := newWorld(t)
	web, api := groupPool("web", "m5.large", 2), groupPool("api", "m5.large", 2)
	w.settle(target("blue", web, api))
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "UpdateAutoScalingGroup", Resource: "web", Code: "AccessDenied", Status: 403, Times: -1})
	web.Group.MaxSize, api.LaunchTemplate.Data.InstanceType = 20, "m5.xlarge"
	both := target("blue", web, api)
	w.must(reconciler.Apply, both)
	if r := w.must(reconciler.Apply, both)[0]; !reconciler.Moving(r) {
		t.Errorf("api rolls, and nobody looks soon: %+v", r.Outcomes)
	}
	w.paced(10*time.Minute, both)
	if r := w.must(reconciler.Apply, both)[0]; reconciler.Moving(r) {
		t.Errorf("api has rolled and web is parked: %+v", r.Outcomes)
	}
}

// A rollout that AWS refuses takes no turn from the others.
func TestAParkedRolloutTakesNoTurn(t *testing.T) {
	w := newWorld(t)
	wish := func(api, web string) reconciler.Desired {
		d := target("blue", groupPool("api", api, 2), groupPool("web", web, 2))
		d.Policy.MaxRollouts = 1
		return d
	}
	w.settle(wish("m5.large", "m5.large"))
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "StartInstanceRefresh", Resource: "api", Code: "AccessDenied", Status: 403, Times: -1})
	w.paced(5*time.Minute, wish("m5.xlarge", "m5.large"))
	w.srv.ResetCalls()
	w.must(reconciler.Apply, wish("m5.xlarge", "m5.xlarge"))
	if n := w.writes()["autoscaling:StartInstanceRefresh"]; n != 1 {
		t.Errorf("%d refreshes were started behind the one that is refused, want 1", n)
	}
}

// A parked step says so and how to lift it, with the step and in its pools, in the
// output for programs too; once it is lifted and done weir says nothing.
func TestAParkedPoolSaysHowItIsLifted(t *testing.T) {
	for name, tt := range map[string]struct {
		operation, code string
		status          int
		wait            string
	}{
		"invalid": {"UpdateAutoScalingGroup", "ValidationError", 400, "for an hour"},
		"denied":  {"UpdateAutoScalingGroup", "AccessDenied", 403, "for 10 minutes"},
		"version": {"CreateLaunchTemplateVersion", "UnauthorizedOperation", 403, "for 10 minutes"},
	} {
		w := newWorld(t)
		web, api := groupPool("web", "m5.large", 2), groupPool("api", "m5.large", 2)
		w.settle(target("blue", web, api))
		w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: tt.operation, Code: tt.code, Status: tt.status, Times: -1})
		d := changed(web, func(p *intent.Pool) { p.Group.MaxSize = 20 })
		d.Set.Pools = append(d.Set.Pools, api)
		for pass := range 2 {
			r := w.must(reconciler.Apply, d)[0]
			var lift string
			for _, o := range r.Failures() {
				lift = o.Lift
			}
			if !strings.Contains(lift, tt.wait) || !strings.Contains(lift, "weir reconcile blue --retry") || !strings.Contains(lift, "a commit") {
				t.Errorf("%s, pass %d: the step says %q", name, pass, lift)
			}
			for _, p := range r.Pools {
				text, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				if said := strings.Contains(string(text), lift); said != (p.Name == "web") || said != (p.FailureReason == plan.FailureRefused) || said && !strings.Contains(p.FailureMessage, tt.code) {
					t.Errorf("%s, pass %d: pool %s says %s", name, pass, p.Name, text)
				}
				if ready := p.Conditions[0]; p.Name == "web" && (ready.Reason != "StepRefused" || ready.Severity != "Error" || ready.Message != p.FailureMessage) {
					t.Errorf("%s, pass %d: the condition %+v", name, pass, ready)
				}
			}
		}
		path := d
		path.Policy.OwnTargetOnly = true
		if r := w.must(reconciler.Apply, path)[0]; len(r.Failures()) == 0 || r.Failures()[0].Lift != "" {
			t.Errorf("%s: of a PATH %+v", name, r.Failures())
		}
		w.srv.Faults().Clear()
		if r := w.must(reconciler.Apply, d)[0]; len(r.Failures()) == 0 {
			t.Errorf("%s: it is tried again unasked", name)
		}
		w.scope.Retry([]string{"default/web"})
		w.settle(d)
		if r := w.must(reconciler.Apply, d)[0]; r.Pools[0].FailureMessage != "" || r.Pools[1].FailureMessage != "" {
			t.Errorf("%s: done, and it says %+v", name, r.Pools)
		}
	}
}
