package reconciler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// TestAdoptGroup takes over a group of Cluster API Provider AWS whose machines run
// older versions than the newest. Nothing but tags changes, then nothing at all.
func TestAdoptGroup(t *testing.T) {
	w := newWorld(t)
	d := capaGroupTarget(t, secretBootstrap, "", "m5.large")
	w.capaGroup(d, "first", "second", "third", capaSecret)
	before := w.instances("web")

	if r := w.must(reconciler.Apply, d)[0]; !hasCode(r, "conflict") || r.Plan.Runnable() != 0 {
		t.Fatalf("a group of another's was not left alone: %v", r.Plan.Steps)
	}
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, adopting(d, ""))[0]
	if diff := cmp.Diff([]string{"CreateOrUpdateTags", "CreateTags"}, w.wrote()); diff != "" {
		t.Errorf("adopting wrote something else (-want +got):\n%s\n%v\n%v", diff, r.Plan.Steps, r.Diagnostics)
	}
	w.clock.Advance(time.Minute)
	w.restart()
	r = w.must(reconciler.PlanOnly, d)[0]
	if !r.Plan.Empty() || !hasCode(r, "adopted-instances") {
		t.Errorf("the plan after adopting: %+v\n%v", r.Plan.Steps, r.Diagnostics)
	}
	w.srv.ResetCalls()
	w.settle(d)
	if wrote := w.wrote(); len(wrote) > 0 {
		t.Errorf("weir wrote after adopting: %v", wrote)
	}
	if diff := cmp.Diff(before, w.instances("web")); diff != "" {
		t.Errorf("machines (-before +after):\n%s", diff)
	}
	if n := aws.ToInt64(w.template("web").DefaultVersionNumber); n != 1 {
		t.Errorf("the default version moved to %d", n)
	}

	// The next change in Git is rolled out to all of them.
	w.settle(capaGroupTarget(t, secretBootstrap, "", "m5.xlarge"))
	for _, i := range w.group("web").Instances {
		if v := aws.ToString(i.LaunchTemplate.Version); v != "5" {
			t.Errorf("instance %s runs version %s", aws.ToString(i.InstanceId), v)
		}
	}
}

// TestAdoptKubeadmGroup has user data that no two makers write alike: there is one
// new version, to which the group is set, and no machine is replaced for it.
func TestAdoptKubeadmGroup(t *testing.T) {
	w := newWorld(t)
	d := capaGroupTarget(t, kubeadmBootstrap, "", "m5.large")
	w.capaGroup(d, "token 1", "token 2", "token 3")
	before := w.instances("web")
	r := w.must(reconciler.Apply, adopting(d, ""))[0]
	later := 0
	for _, s := range r.Plan.Steps {
		if s.Later {
			later++
		}
	}
	if later != 3 || len(r.Plan.Steps) != 5 {
		t.Errorf("the plan does not show what follows: %+v %v", r.Plan.Steps, r.Diagnostics)
	}
	r = w.must(reconciler.PlanOnly, d)[0]
	if len(r.Plan.Steps) != 3 || r.Plan.Steps[1].Resource != step.LaunchTemplate {
		t.Fatalf("want the group pinned, one new version, and the group set to it, got %+v\n%v", r.Plan.Steps, r.Diagnostics)
	}
	for _, ch := range r.Plan.Steps[1].Changes {
		if !strings.HasPrefix(ch.Field, "userData") && !strings.Contains(ch.Field, "/bootstrap-data-") {
			t.Errorf("the new version differs in %s: %v → %v", ch.Field, ch.From, ch.To)
		}
	}
	w.settle(d)
	w.restart()
	w.srv.ResetCalls()
	w.settle(d)
	if wrote := w.wrote(); len(wrote) > 0 {
		t.Errorf("weir wrote on: %v", wrote)
	}
	if diff := cmp.Diff(before, w.instances("web")); diff != "" {
		t.Errorf("machines (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{1, 3, 4}, w.numbers("web")); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if v := w.templateOf("web").Version; v != "4" {
		t.Errorf("the group launches version %s", v)
	}
	w.settle(capaGroupTarget(t, kubeadmBootstrap, "", "m5.xlarge"))
	for _, i := range w.group("web").Instances {
		if v := aws.ToString(i.LaunchTemplate.Version); v != "5" {
			t.Errorf("instance %s runs version %s", aws.ToString(i.InstanceId), v)
		}
	}
}

// TestAdoptNodegroup takes over a nodegroup with its template and its group.
func TestAdoptNodegroup(t *testing.T) {
	w := newWorld(t)
	d := fromManifests(t, capaNodegroupManifests)
	behind := w.capaNodegroup(d)
	before := w.instances(behind)
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, adopting(d, ""))[0]
	if diff := cmp.Diff([]string{"CreateOrUpdateTags", "CreateTags", "TagResource"}, w.wrote()); diff != "" {
		t.Errorf("adopting wrote something else (-want +got):\n%s\n%+v\n%v", diff, r.Plan.Steps, r.Diagnostics)
	}
	w.restart()
	if r := w.must(reconciler.PlanOnly, d)[0]; !r.Plan.Empty() {
		t.Errorf("the plan after adopting: %+v\n%v", r.Plan.Steps, r.Diagnostics)
	}
	w.settle(d)
	if diff := cmp.Diff(before, w.instances(behind)); diff != "" {
		t.Errorf("machines (-before +after):\n%s", diff)
	}
}

// TestMove hands a pool from one weir to another. The first then reports and
// deletes nothing, whether its Git still wants the pool or not.
func TestMove(t *testing.T) {
	for name, pool := range map[string]func() reconciler.Desired{
		"group":     func() reconciler.Desired { return target("blue", groupPool("web", "m5.large", 2)) },
		"nodegroup": func() reconciler.Desired { return target("blue", nodegroupPool("ng", 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			old := pool()
			w.settle(old)
			d := owned(pool(), "next")
			for _, from := range []string{"", "another"} {
				if r := w.must(reconciler.Apply, adopting(d, from))[0]; !hasCode(r, "conflict") || r.Plan.Runnable() != 0 {
					t.Fatalf("another weir's pool was adopted with --from %q: %+v", from, r.Plan.Steps)
				}
			}
			w.must(reconciler.Apply, adopting(d, testInstance))
			w.restart()
			if r := w.must(reconciler.PlanOnly, d)[0]; !r.Plan.Empty() {
				t.Errorf("the plan after moving: %+v\n%v", r.Plan.Steps, r.Diagnostics)
			}
			w.srv.ResetCalls()
			first := w
			first.restart()
			if r := first.must(reconciler.Apply, old)[0]; !hasCode(r, "conflict") {
				t.Errorf("the former owner reports no conflict: %v", r.Diagnostics)
			}
			gone := target("blue")
			gone.Policy.Prune.Count = 10
			first.must(reconciler.Apply, gone)
			if wrote := w.wrote(); len(wrote) > 0 {
				t.Errorf("the former owner wrote: %v", wrote)
			}
			w.settle(d)
		})
	}
}

// TestAdoptAnnotation adopts in the daemon's own passes, where the configuration
// allows it, and never from another weir.
func TestAdoptAnnotation(t *testing.T) {
	d := capaGroupTarget(t, secretBootstrap, `weir.dev/adopt: "true"`, "m5.large")
	w := newWorld(t)
	w.capaGroup(d, capaSecret)
	if r := w.must(reconciler.Apply, d)[0]; !hasCode(r, "conflict") || r.Plan.Runnable() != 0 {
		t.Fatalf("adopted although the configuration does not allow it: %+v", r.Plan.Steps)
	}
	d.Policy.Adoption.Annotated = true
	w.srv.ResetCalls()
	w.settle(d)
	if diff := cmp.Diff([]string{"CreateOrUpdateTags", "CreateTags"}, w.wrote()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	next := owned(d, "next")
	if r := w.must(reconciler.Apply, next)[0]; !hasCode(r, "conflict") || r.Plan.Runnable() != 0 {
		t.Errorf("an annotation took over another weir's pool: %+v", r.Plan.Steps)
	}
}

// ownerOf is whose the group and the template are.
func (w *world) ownerOf() (group, template string) {
	for _, t := range w.group("web").Tags {
		if aws.ToString(t.Key) == observed.TagOwner {
			group = aws.ToString(t.Value)
		}
	}
	return group, w.templateTags("web")[observed.TagOwner]
}

// TestAdoptCrash stops an adoption at each of its writes, before and after the
// effect. Starting again ends with the same tags, and nothing but tags written.
func TestAdoptCrash(t *testing.T) {
	makers := map[string]func(*world) reconciler.Desired{
		"group": func(w *world) reconciler.Desired {
			d := capaGroupTarget(t, secretBootstrap, "", "m5.large")
			w.capaGroup(d, capaSecret)
			return d
		},
		"nodegroup": func(w *world) reconciler.Desired {
			d := fromManifests(t, capaNodegroupManifests)
			w.capaNodegroup(d)
			return d
		},
	}
	writes := map[string]int{"group": 2, "nodegroup": 3}
	for name, prepare := range makers {
		for n := range writes[name] {
			for what, kind := range map[string]awsemu.FaultKind{"before": awsemu.CutBefore, "after": awsemu.LoseAnswer} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, n+1, what), func(t *testing.T) {
					w := newWorld(t)
					d := prepare(w)
					w.srv.ResetCalls()
					remove := w.srv.Faults().Add(awsemu.Fault{Kind: kind, WritesOnly: true, After: n})
					r, err := w.pass(reconciler.Apply, adopting(d, ""))
					if err != nil || len(r[0].Failures()) != 1 {
						t.Fatalf("want one failed step: %v, %+v", err, r[0].Outcomes)
					}
					remove()
					w.restart()
					w.must(reconciler.Apply, adopting(d, ""))
					w.settle(d)
					for _, op := range w.wrote() {
						if op != "CreateTags" && op != "CreateOrUpdateTags" && op != "TagResource" {
							t.Errorf("weir called %s", op)
						}
					}
					w.restart()
					if r := w.must(reconciler.PlanOnly, d)[0]; !r.Plan.Empty() {
						t.Errorf("left over: %+v", r.Plan.Steps)
					}
				})
			}
		}
	}
}

// gated is a cloud that is asked before each step.
type gated struct {
	reconciler.Cloud
	before func(step.Action)
}

func (g *gated) Execute(ctx context.Context, a step.Action) (step.Result, error) {
	g.before(a)
	return g.Cloud.Execute(ctx, a)
}

// TestTwoAdopters has two weirs adopt one pool at once, so that each writes one of
// the two resources last. No resource is marked for both, and neither goes on.
func TestTwoAdopters(t *testing.T) {
	w := newWorld(t)
	d := capaGroupTarget(t, secretBootstrap, "", "m5.large")
	w.capaGroup(d, capaSecret)
	a, b := newScope(w), newScope(w)
	bHasRead, aHasHalf, bIsDone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	a.Cloud = &gated{a.Cloud, func(do step.Action) {
		if _, second := do.(step.TagLaunchTemplate); second {
			close(aHasHalf)
			<-bIsDone
			return
		}
		<-bHasRead
	}}
	b.Cloud = &gated{b.Cloud, func(do step.Action) {
		if _, first := do.(step.TagGroup); first {
			close(bHasRead)
			<-aHasHalf
		}
	}}
	var g errgroup.Group
	g.Go(func() error {
		_, err := a.Pass(context.Background(), []reconciler.Desired{adopting(owned(d, "a"), "")}, reconciler.Apply)
		return err
	})
	g.Go(func() error {
		defer close(bIsDone)
		_, err := b.Pass(context.Background(), []reconciler.Desired{adopting(owned(d, "b"), "")}, reconciler.Apply)
		return err
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if group, template := w.ownerOf(); group != "b" || template != "a" {
		t.Fatalf("the group is %q's and the template %q's", group, template)
	}
	w.srv.ResetCalls()
	for _, instance := range []string{"a", "b"} {
		w.restart()
		if r := w.must(reconciler.Apply, owned(d, instance))[0]; !hasCode(r, "conflict") {
			t.Errorf("%s reports no conflict: %+v", instance, r.Plan.Steps)
		}
	}
	if wrote := w.wrote(); len(wrote) > 0 {
		t.Errorf("a half adopted pool was written to: %v", wrote)
	}
	w.restart()
	w.must(reconciler.Apply, adopting(owned(d, "b"), "a"))
	w.settle(owned(d, "b"))
}
