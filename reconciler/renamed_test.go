package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// called is a pool whose group has another name than its manifests, as PoolOptions say it.
func called(name string) intent.Pool {
	p := groupPool("web", "m5.large", 2)
	p.Options = object("PoolOptions", "web")
	p.Group.Name = name
	return p
}

// said are the summaries of diagnostics with a code.
func said(list diag.List, code string) (out []diag.Diagnostic) {
	for _, d := range list {
		if d.Code == code {
			out = append(out, d)
		}
	}
	return out
}

// AWS renames no group and no nodegroup. Where Git gives a pool another name, nothing is
// made, deleted or called unwanted, with pruning or without, unless the pool allows it.
func TestAnotherNameForAGroupIsRefused(t *testing.T) {
	eks := func(name string) intent.Pool {
		p := nodegroupPool("ng", 1)
		p.Nodegroup.Name = name
		return p
	}
	for name, tt := range map[string]struct {
		before, after intent.Pool
		object, field string
	}{
		"another name":     {called("Team/Web"), called("Team/Web2"), "PoolOptions", "spec.autoScalingGroup.name"},
		"the name goes":    {called("Team/Web"), groupPool("web", "m5.large", 2), "AWSMachinePool", "metadata.name"},
		"a name comes":     {groupPool("web", "m5.large", 2), called("Team/Web"), "PoolOptions", "spec.autoScalingGroup.name"},
		"a nodegroup's":    {eks("One"), eks("Two"), "AWSManagedMachinePool", "spec.eksNodegroupName"},
		"back to its own":  {called("legacy-web"), groupPool("web", "m5.large", 2), "AWSMachinePool", "metadata.name"},
		"only upper cases": {called("web.1"), called("WEB.1"), "PoolOptions", "spec.autoScalingGroup.name"},
	} {
		for _, prune := range []bool{true, false} {
			w := newWorld(t)
			w.settle(target("blue", tt.before))
			w.srv.ResetCalls()
			blue := target("blue", tt.after)
			blue.Policy.Prune.Enabled = prune
			var last *plan.Report
			for range 5 {
				last = w.must(reconciler.Apply, blue)[0]
				w.clock.Advance(time.Minute)
			}
			if wrote := w.wrote(); len(wrote) > 0 {
				t.Errorf("%s, prune %t: wrote %v", name, prune, wrote)
			}
			found := said(last.Diagnostics, "pool-renamed")
			if len(found) != 1 || !strings.HasPrefix(found[0].Object, tt.object) || found[0].Field != tt.field || len(last.Plan.Steps) > 0 {
				t.Errorf("%s, prune %t: %v, %d steps", name, prune, last.Diagnostics, len(last.Plan.Steps))
			}
			for _, d := range last.Diagnostics {
				if strings.Contains(d.Summary, "nothing in Git") {
					t.Errorf("%s, prune %t: %s", name, prune, d.Summary)
				}
			}
			if st := last.Pools[0]; st.Phase != "Failed" || st.Replicas == 0 || st.FailureReason != "pool-renamed" {
				t.Errorf("%s, prune %t: %s, %d machines, %s", name, prune, st.Phase, st.Replicas, st.FailureReason)
			}
			w.settle(target("blue", tt.before)) // and back again
			if wrote := w.wrote(); len(wrote) > 0 {
				t.Errorf("%s, prune %t: going back wrote %v", name, prune, wrote)
			}
		}
	}
}

// A pool that allows it gets a new group, and the old one goes once that serves. What the
// plan says of the old one is true.
func TestAnotherNameForAGroupIsAllowed(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", called("Team/Web")))
	after := called("Team/Web2")
	after.AllowReplace = true
	blue := target("blue", after)
	report := w.must(reconciler.PlanOnly, blue)[0]
	var reasons []string
	for _, s := range report.Plan.Steps {
		reasons = append(reasons, string(s.Verb)+" "+s.Name+": "+s.Reason)
	}
	if text := strings.Join(reasons, "; "); !strings.Contains(text, "create Team/Web2: it does not exist") || !strings.Contains(text, "delete Team/Web: the pool has the auto-scaling-group Team/Web2 in Git") {
		t.Errorf("steps: %s", text)
	}
	w.srv.ResetCalls()
	for range 15 {
		w.must(reconciler.Apply, blue)
		w.clock.Advance(2 * time.Second)
	}
	if n := w.srv.CallCounts(); n["autoscaling:CreateAutoScalingGroup"] != 1 || n["autoscaling:DeleteAutoScalingGroup"] != 1 {
		t.Errorf("calls %v", n)
	}
	w.settle(blue)
}

// A pool takes no group of another pool by its name: not of one that Git drops in the same
// commit, and not in a swap or a chain of names, whether it may replace its own group or not.
func TestAPoolTakesNoGroupOfAnotherPool(t *testing.T) {
	named := func(key, group string, machines int32, replace bool) intent.Pool {
		p := groupPool(key, "m5.large", machines)
		p.Options, p.Group.Name, p.AllowReplace = object("PoolOptions", key), group, replace
		return p
	}
	for name, pools := range map[string][]intent.Pool{
		"dropped":              {named("web", "second", 5, false)},
		"dropped, may replace": {named("web", "second", 5, true)},
		"swapped":              {named("web", "second", 5, false), named("api", "first", 1, false)},
		"swapped, may replace": {named("web", "second", 5, true), named("api", "first", 1, true)},
		"chain":                {named("web", "second", 5, false), named("api", "third", 1, false)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(target("blue", named("web", "first", 5, false), named("api", "second", 1, false)))
			w.srv.ResetCalls()
			var last *plan.Report
			for range 5 {
				last = w.must(reconciler.Apply, target("blue", pools...))[0]
				w.clock.Advance(time.Minute)
			}
			if n := w.srv.CallCounts(); n["autoscaling:DeleteAutoScalingGroup"]+n["autoscaling:StartInstanceRefresh"]+n["autoscaling:UpdateAutoScalingGroup"]+n["autoscaling:CreateOrUpdateTags"] != 0 {
				t.Errorf("calls %v", n)
			}
			if found := said(last.Diagnostics, "pool-renamed"); len(found) == 0 {
				t.Errorf("%v", last.Diagnostics)
			}
		})
	}
}

// An earlier group is deleted once the new one has as many machines: Git may leave the size
// to an autoscaler, which has made the earlier group larger than a new one starts.
func TestAnEarlierGroupServesUntilTheNewOneIsAsLarge(t *testing.T) {
	w := newWorld(t)
	grown := called("Team/Web")
	grown.Replicas.Value = 5
	w.settle(target("blue", grown))
	renamed := called("Team/Web2")
	renamed.AllowReplace, renamed.ReplicasManagedExternally, renamed.Replicas.Written, renamed.Group.MinSize = true, true, false, 1
	w.srv.ResetCalls()
	for range 10 {
		w.must(reconciler.Apply, target("blue", renamed))
		w.clock.Advance(time.Minute)
	}
	if n := w.srv.CallCounts(); n["autoscaling:DeleteAutoScalingGroup"] != 0 || n["autoscaling:CreateAutoScalingGroup"] != 1 {
		t.Errorf("calls %v", n)
	}
}

// Two targets that want one group are an error at both names.
func TestTwoTargetsWithOneGroup(t *testing.T) {
	w := newWorld(t)
	for i, r := range w.must(reconciler.PlanOnly, target("blue", called("Team/Web")), target("green", called("Team/Web"))) {
		found := said(r.Diagnostics, "contested-name")
		at := false
		for _, d := range found {
			at = at || d.Object == object("PoolOptions", "web").String() && d.Field == "spec.autoScalingGroup.name"
		}
		if !at {
			t.Errorf("target %d: %v", i, r.Diagnostics)
		}
	}
}
