package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
	"pgregory.net/rapid"
)

// The owner of a wanted name keeps it: the pool reports a conflict, weir writes,
// deletes and tags nothing that is there, and the other pools go on.
func TestACollisionIsReportedAndNothingIsTouched(t *testing.T) {
	ctx := context.Background()
	// made is what the pool would make, with other tags.
	made := func(w *world, d reconciler.Desired, tags map[string]string) {
		r := w.must(reconciler.PlanOnly, d)[0]
		versions := step.Made{}
		for _, s := range r.Plan.Steps {
			switch a := step.WithTemplate(s.Do, versions).(type) {
			case step.CreateLaunchTemplate:
				a.Tags = tags
				res, err := w.scope.Cloud.Execute(ctx, a)
				w.check(nil, err)
				versions.Add(a, res.Template)
			case step.CreateGroup:
				a.Group.Tags = map[string]observed.GroupTag{}
				for k, v := range tags {
					a.Group.Tags[k] = observed.GroupTag{Value: v}
				}
				w.check(w.scope.Cloud.Execute(ctx, a))
			case step.CreateNodegroup:
				if a.Nodegroup.Tags = tags; len(tags) == 0 {
					a.Nodegroup.Tags = nil // EKS refuses an empty map
				}
				w.check(w.scope.Cloud.Execute(ctx, a))
			}
		}
		w.clock.Advance(10 * time.Minute)
	}
	weirs := func(instance, source, target string) map[string]string {
		return map[string]string{observed.TagOwner: instance, observed.TagSource: source, observed.TagTarget: target, observed.TagPool: "default/web"}
	}
	for name, tags := range map[string]map[string]string{
		"by hand":           {},
		"by hand, tagged":   {"Name": "web", "team": "other"},
		"CAPA's":            {"sigs.k8s.io/cluster-api-provider-aws/cluster/elsewhere": "owned"},
		"another weir's":    weirs("next", testSource, "blue"),
		"another source's":  weirs(testInstance, "ffffffffffff", "blue"),
		"another cluster's": weirs("next", testSource, "green"),
	} {
		for kind, pool := range map[string]intent.Pool{"group": groupPool("web", "m5.large", 1), "nodegroup": nodegroupPool("web", 1)} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				made(w, target("blue", pool), tags)
				before := w.everything()
				changed := pool
				if pool.Group != nil {
					changed = groupPool("web", "m5.xlarge", 3)
				}
				blue := target("blue", changed, groupPool("other", "m5.large", 1))
				var r *plan.Report
				for range 6 {
					r = w.must(reconciler.Apply, blue)[0]
					w.clock.Advance(time.Minute)
				}
				if !hasCode(r, "conflict") || len(r.Failures()) > 0 {
					t.Errorf("diagnostics: got %v, failures %v", r.Diagnostics, r.Failures())
				}
				for _, p := range r.Pools {
					if p.Converged != (p.Name == "other") {
						t.Errorf("pool %s: converged %v", p.Name, p.Converged)
					}
				}
				// Nor does dropping the pool from Git touch it.
				gone := target("blue", groupPool("other", "m5.large", 1))
				gone.Policy.Prune.Count = 10
				w.must(reconciler.Apply, gone)
				w.must(reconciler.Apply, gone)
				after := slices.DeleteFunc(w.everything(), func(s string) bool { return strings.Contains(s, " other") })
				if d := cmp.Diff(before, after); d != "" {
					t.Errorf("what was there (-before +after):\n%s", d)
				}
			})
		}
	}
}

// everything is what the account holds with its tags and machines.
func (w *world) everything() []string {
	w.t.Helper()
	var out []string
	for _, line := range w.held() {
		kind, name, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, " ")
		switch kind {
		case "group":
			var tags []string
			for _, t := range w.group(name).Tags {
				tags = append(tags, aws.ToString(t.Key)+"="+aws.ToString(t.Value))
			}
			slices.Sort(tags)
			line += fmt.Sprint(" ", tags, w.instances(name))
		case "template":
			line += fmt.Sprint(" ", w.templateTags(name), w.numbers(name))
		}
		out = append(out, line)
	}
	return out
}

// Two weirs make one pool at once, the second wholly in between any two calls of
// the first. There is one template and one group; where the two are one instance
// twice both converge, else the one that was late reports a conflict.
func TestTwoWeirsMakeOnePool(t *testing.T) {
	for name, second := range map[string]string{"one instance twice": testInstance, "two instances": "next"} {
		for at := range 2 {
			t.Run(fmt.Sprintf("%s, before call %d", name, at+1), func(t *testing.T) {
				w := newWorld(t)
				blue := target("blue", groupPool("web", "m5.large", 1))
				a, b := newScope(w), newScope(w)
				late := owned(blue, second)
				n := 0
				a.Cloud = &gated{a.Cloud, func(step.Action) {
					if n == at {
						_, _ = b.Pass(context.Background(), []reconciler.Desired{late}, reconciler.Apply)
					}
					n++
				}}
				for range 6 {
					_, _ = a.Pass(context.Background(), []reconciler.Desired{blue}, reconciler.Apply)
					_, _ = b.Pass(context.Background(), []reconciler.Desired{late}, reconciler.Apply)
					w.clock.Advance(time.Hour)
				}
				if d := cmp.Diff([]string{"group web of 1", "template web"}, w.held()); d != "" {
					t.Errorf("held (-want +got):\n%s", d)
				}
				group, template := w.ownerOf()
				if group != template {
					t.Errorf("the group is %q's and the template %q's", group, template)
				}
				for _, d := range []reconciler.Desired{blue, late} {
					w.restart()
					if r := w.must(reconciler.PlanOnly, d)[0]; r.Converged() != (d.Policy.Instance == group) || hasCode(r, "conflict") == (d.Policy.Instance == group) {
						t.Errorf("%s: converged %v, %v", d.Policy.Instance, r.Converged(), r.Diagnostics)
					}
				}
			})
		}
	}
}

// Two weirs with one target race over one account while Git changes, calls fail and
// answers are lost. Whatever comes: a resource never changes hands, none is made
// twice, nothing leaks, and left alone both come to rest.
func TestTwoRacingWeirsConverge(t *testing.T) {
	t.Parallel()
	checks(t, 15)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		instances := []string{testInstance, rapid.SampledFrom([]string{testInstance, "next"}).Draw(rt, "second")}
		scopes := []*reconciler.Scope{newScope(w), newScope(w)}
		pools := map[string]intent.Pool{"keep": groupPool("keep", "m5.large", 1)}
		owners := map[string]string{}
		desired := func(i int) reconciler.Desired {
			var list []intent.Pool
			for _, p := range pools {
				list = append(list, p)
			}
			d := owned(target("blue", list...), instances[i])
			d.Policy.Prune.Count = 10
			return d
		}
		pass := func(i int) (*plan.Report, error) {
			r, err := scopes[i].Pass(context.Background(), []reconciler.Desired{desired(i)}, reconciler.Apply)
			if err != nil {
				return nil, err
			}
			return r[0], nil
		}
		// own checks that no group is another's than when it was made.
		watch := newScope(w).Cloud
		own := func() {
			state, err := watch.Fill(context.Background(), observed.State{}, observed.Needs{GroupNames: []string{"keep", "one", "two"}})
			if err != nil {
				rt.Fatal(err)
			}
			now := map[string]string{}
			for name, g := range state.Groups {
				now[g.ARN] = g.Tags[observed.TagOwner].Value
				if then, known := owners[g.ARN]; known && then != now[g.ARN] {
					rt.Fatalf("group %s changed hands from %s to %s", name, then, now[g.ARN])
				}
			}
			owners = now
		}
		which := rapid.IntRange(0, 1)
		rt.Repeat(map[string]func(*rapid.T){
			"a pool": func(rt *rapid.T) {
				p := groupPool(rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "name"), "m5.large", rapid.Int32Range(0, 2).Draw(rt, "size"))
				p.Drain = rapid.Bool().Draw(rt, "drain")
				if rapid.Bool().Draw(rt, "hook") {
					p.Group.LifecycleHooks = []intent.LifecycleHook{drainHook(rapid.Int32Range(60, 62).Draw(rt, "timeout"))}
				}
				pools[p.Key.Name] = p
			},
			"a pool goes": func(rt *rapid.T) { delete(pools, rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "name")) },
			"a pass":      func(rt *rapid.T) { _, _ = pass(which.Draw(rt, "weir")) },
			"a pass within a pass": func(rt *rapid.T) {
				i, at, n := which.Draw(rt, "weir"), rapid.IntRange(0, 3).Draw(rt, "call"), 0
				inner := scopes[i].Cloud
				scopes[i].Cloud = &gated{inner, func(step.Action) {
					if n++; n == at+1 {
						_, _ = pass(1 - i)
					}
				}}
				scopes[i].Concurrency = 1
				_, _ = pass(i)
				scopes[i].Cloud = inner
			},
			"a fault": func(rt *rapid.T) {
				f := awsemu.Fault{Kind: rapid.SampledFrom([]awsemu.FaultKind{awsemu.CutBefore, awsemu.LoseAnswer, awsemu.Throttled}).Draw(rt, "kind"), WritesOnly: rapid.Bool().Draw(rt, "write"),
					After: rapid.IntRange(0, 3).Draw(rt, "after")}
				remove := w.srv.Faults().Add(f)
				_, _ = pass(which.Draw(rt, "weir"))
				remove()
			},
			"a crash": func(rt *rapid.T) {
				i := which.Draw(rt, "weir")
				scopes[i].Cloud.(*awscloud.Cloud).Close()
				scopes[i] = newScope(w)
			},
			"time goes by": func(rt *rapid.T) {
				w.clock.Advance(time.Duration(rapid.IntRange(1, 900).Draw(rt, "seconds")) * time.Second)
			},
			"": func(*rapid.T) { own() },
		})
		w.clock.Advance(time.Hour)
		for range 12 {
			for i := range scopes {
				if _, err := pass(i); err != nil {
					rt.Fatal(err)
				}
				own()
			}
			w.clock.Advance(time.Minute)
		}
		var want []string
		for name, p := range pools {
			want = append(want, fmt.Sprintf("group %s of %d", name, p.Replicas.Value), "template "+name)
		}
		slices.Sort(want)
		if d := cmp.Diff(want, w.held()); d != "" {
			rt.Fatalf("held (-want +got):\n%s", d)
		}
		w.srv.ResetCalls()
		for i := range scopes {
			r, err := pass(i)
			if err != nil {
				rt.Fatal(err)
			}
			for _, p := range r.Pools {
				owner := w.groupTag(p.Name, observed.TagOwner)
				if p.Converged != (owner == instances[i]) {
					rt.Fatalf("%s: pool %s of %s: converged %v, %v", instances[i], p.Name, owner, p.Converged, r.Diagnostics)
				}
			}
		}
		if wrote := w.wrote(); len(wrote) > 0 {
			rt.Fatalf("writes at rest: %v", wrote)
		}
	})
}
