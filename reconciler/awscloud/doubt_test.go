package awscloud_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Answers without the members that AWS's models do not require end in an error that
// passes, or in a result that says less; none is taken for "not there", and none panics.
func TestAnswersThatLeaveMembersOut(t *testing.T) {
	_, c, _ := attack(t, func(h *hostile, w http.ResponseWriter, operation string) {
		switch {
		case operation == "eks" || strings.HasSuffix(operation, "Parameters"):
			_ = h.write(w, "{}")
		default:
			_ = h.write(w, "<"+operation+"Response><"+operation+"Result/></"+operation+"Response>")
		}
	})
	ctx, n := context.Background(), observed.NodegroupName{Cluster: "c", Name: "n"}
	template, data := observed.TemplateRef{ID: "lt-0123456789abcdef0"}, intent.TemplateData{InstanceType: "m5.large"}
	transient := map[string]func() error{
		"CreateLaunchTemplate": func() error { _, err := c.Execute(ctx, step.CreateLaunchTemplate{Name: "t12", Data: data}); return err },
		"CreateLaunchTemplateVersion": func() error {
			_, err := c.Execute(ctx, step.CreateLaunchTemplateVersion{Template: template, Data: data, Token: "k"})
			return err
		},
		"DescribeNodegroup": func() error {
			_, err := c.Fill(ctx, observed.State{}, observed.Needs{Nodegroups: []observed.NodegroupName{n}})
			return err
		},
		"DescribeCluster": func() error { _, _, err := c.Cluster(ctx, "c"); return err },
		"GetRole":         func() error { _, _, err := c.Role(ctx, "r"); return err },
	}
	for name, call := range transient {
		if got := kind(t, call()); got != observed.Transient {
			t.Errorf("%s: an answer without its content is %q", name, got)
		}
	}
	for _, a := range []step.Action{step.UpdateNodegroupConfig{NodegroupName: n}, step.UpdateNodegroupVersion{NodegroupName: n}} {
		if res, err := c.Execute(ctx, a); err != nil || res.UpdateID != "" {
			t.Errorf("%T: %+v, %v", a, res, err)
		}
	}
}

// A page without refreshes that is followed by another is no group without one: it would
// be rolled a second time.
func TestTheNewestRefreshBehindAnEmptyPage(t *testing.T) {
	pages := 0
	_, c, _ := attack(t, func(h *hostile, w http.ResponseWriter, operation string) {
		member := "<InstanceRefreshes/><NextToken>more</NextToken>"
		if pages++; pages > 1 {
			member = "<InstanceRefreshes><member><InstanceRefreshId>r-1</InstanceRefreshId><Status>InProgress</Status></member></InstanceRefreshes><NextToken>older</NextToken>"
		}
		_ = h.write(w, around(operation, member))
	})
	s, err := c.Fill(context.Background(), observed.State{}, observed.Needs{Refreshes: []string{"web"}})
	if err != nil || s.Refreshes["web"].ID != "r-1" || pages != 2 {
		t.Errorf("after %d pages: %+v, %v", pages, s.Refreshes["web"], err)
	}
}

// group makes a group, and a template for it.
func (e *env) group(name string) observed.Group {
	e.t.Helper()
	res := e.do(step.CreateLaunchTemplate{Name: name, Data: e.data(), Tags: tags(name)})
	g := observed.Group{Name: name, MaxSize: 1, SubnetIDs: e.subnets()[:1], Template: res.Template, Tags: groupTags(name)}
	e.do(step.CreateGroup{Group: g})
	return g
}

// Detaching twice succeeds, also if the first answer was lost or somebody else was faster with some of it. AWS refuses both.
func TestDetachedTwiceIsDetached(t *testing.T) {
	e := start(t)
	e.group("web")
	arn := func(name string) intent.TrafficSource {
		return intent.TrafficSource{Type: "vpc-lattice", Identifier: "arn:aws:vpc-lattice:eu-west-1:000000000000:targetgroup/tg-" + name}
	}
	one, two := arn("0123456789abcdef0"), arn("0123456789abcdef1")
	e.do(step.SetTrafficSources{Group: "web", Attach: []intent.TrafficSource{one, two}})
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.LoseAnswer, Operation: "DetachTrafficSources"})
	e.do(step.SetTrafficSources{Group: "web", Detach: []intent.TrafficSource{one}})
	e.do(step.SetTrafficSources{Group: "web", Detach: []intent.TrafficSource{one, two}})
	if left := e.observe(query()).Groups["web"].Options.TrafficSources; len(left) > 0 {
		t.Errorf("%v are attached", left)
	}
	// A refusal of what is attached stays one.
	e.do(step.SetTrafficSources{Group: "web", Attach: []intent.TrafficSource{one}})
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "DetachTrafficSources", Code: "ValidationError", Message: "no"})
	if _, err := e.cloud.Execute(t.Context(), step.SetTrafficSources{Group: "web", Detach: []intent.TrafficSource{one}}); kind(t, err) != observed.Invalid {
		t.Errorf("a refusal is %v", err)
	}
}

// A resource of an earlier attempt, whose answer was lost, is as new as if the answer
// had come: another service that does not know it yet will soon, and no pool is parked.
func TestWhatALostAnswerMadeIsNew(t *testing.T) {
	e := start(t)
	made := e.do(step.CreateLaunchTemplate{Name: "web", Data: e.data(), Tags: tags("web")})
	e.cloud = e.open() // the process ended before it read the answer
	again := e.do(step.CreateLaunchTemplate{Name: "web", Data: e.data(), Tags: tags("web")})
	if again.Template != made.Template {
		t.Fatalf("made %v, then %v", made.Template, again.Template)
	}
	g := observed.Group{Name: "web", MaxSize: 1, SubnetIDs: e.subnets()[:1], Template: again.Template, Tags: groupTags("web")}
	unseen := awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateAutoScalingGroup", Code: "ValidationError", Message: "The specified launch template, with template ID " + made.Template.ID + ", does not exist."}
	e.srv.Faults().Add(unseen)
	if _, err := e.cloud.Execute(t.Context(), step.CreateGroup{Group: g}); kind(t, err) != observed.Transient {
		t.Errorf("the template is not visible yet: %v", err)
	}
	e.do(step.CreateGroup{Group: g})
	e.cloud = e.open()
	e.do(step.CreateGroup{Group: g})
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateOrUpdateTags", Code: "ValidationError", Message: "Group web not found"})
	if _, err := e.cloud.Execute(t.Context(), step.TagGroup{Group: "web", Put: groupTags("web")}); kind(t, err) != observed.Transient {
		t.Errorf("the group is not visible yet: %v", err)
	}
}
