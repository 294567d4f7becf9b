package reconciler_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"pgregory.net/rapid"
)

// faultKinds are the ways in which a call goes wrong and nobody is to blame.
var faultKinds = map[string]awsemu.Fault{
	"refused":     {Kind: awsemu.FailBefore, Code: "InternalError", Status: 500},
	"cut before":  {Kind: awsemu.CutBefore},
	"answer lost": {Kind: awsemu.LoseAnswer},
	"throttled":   {Kind: awsemu.Throttled},
}

// sameWhateverFails has every write go wrong in each way, and the first of each kind of read;
// make test has every write lose its answer, and all of these in one of the other ways:
// passes that follow, of processes that remember nothing, end in the state of an undisturbed
// run, with nothing made twice. It returns how many faults each kind of call had, and the state.
func sameWhateverFails(t *testing.T, start func(testing.TB) *world, after reconciler.Desired, state func(*world) string) (faults map[string]int, end string) {
	t.Helper()
	begin := start(t).save()
	calm := begin.world(t)
	calm.srv.ResetCalls()
	calm.settle(after)
	all := calm.srv.Calls()
	end = state(calm)
	want := end + "\n" + calm.made()
	faults = map[string]int{}
	for i, name := range slices.Sorted(maps.Keys(faultKinds)) { // "answer lost" first
		fault := faultKinds[name]
		t.Run(name, func(t *testing.T) {
			calls := map[string]int{}
			for at, c := range all {
				key := c.Service + ":" + c.Operation
				n := calls[key]
				calls[key]++
				if n > 0 && !c.Write {
					continue // one fault for each kind of read is enough
				}
				if lost := i == 0; !soaking() && (lost && !c.Write || !lost && at%(len(faultKinds)-1) != i-1) {
					continue
				}
				faults[key]++
				w := begin.world(t)
				w.srv.ResetCalls()
				f := fault
				f.Service, f.Operation, f.After = c.Service, c.Operation, n
				w.srv.Faults().Add(f)
				w.cut = f.Kind == awsemu.CutBefore
				for range 3 {
					_, _ = w.pass(reconciler.Apply, after) // may fail: that is the point
					w.restart()
				}
				w.settle(after)
				if d := cmp.Diff(want, state(w)+"\n"+w.made()); d != "" {
					t.Errorf("%s %d of %s (-want +got):\n%s", name, n, key, d)
				}
			}
		})
	}
	return faults, end
}

// Each step of a version's life (prune, make, roll, move the default) may be
// stopped before or after its effect, lose its answer or be throttled: passes of
// processes that remember nothing end with the same versions.
func TestStoppedAtAnyCallOfAVersionsLifeTheVersionsAreTheSame(t *testing.T) {
	t.Parallel()
	faults, end := sameWhateverFails(t, func(t testing.TB) *world {
		w := newWorld(t)
		for i := range 3 {
			w.settle(keeping(1, i))
		}
		return w
	}, keeping(1, 3), func(w *world) string { return fmt.Sprint(w.numbers("web")) })
	if end != "[3 4]" {
		t.Errorf("undisturbed: %s", end)
	}
	for _, op := range []string{"DeleteLaunchTemplateVersions", "CreateLaunchTemplateVersion", "ModifyLaunchTemplate"} {
		if faults["ec2:"+op] == 0 {
			t.Errorf("no fault struck %s", op)
		}
	}
}

// checks limits rapid to n checks, because each of them takes many calls over HTTP. If more checks than rapid's
// default of 100 are requested, as by make soak, the limit is ten times as high.
func checks(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	before := f.Value.String()
	requested, err := strconv.Atoi(before)
	if err == nil && requested > 100 {
		n *= 10
	}
	if err != nil || requested <= n {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", before) })
}

// wish is what Git says in the test below.
type wish struct {
	step  int
	keep  int32
	size  int32
	extra string
}

func (g wish) desired() reconciler.Desired {
	d := keeping(g.keep, g.step)
	p := &d.Set.Pools[0]
	p.Replicas.Value = g.size
	tags := map[string]string{"Name": "web"}
	if g.extra != "" {
		tags[g.extra] = "v"
	}
	p.LaunchTemplate.Tags, p.Group.Tags = tags, tags
	return d
}

// Git, the console and the network do what they like; once they rest, AWS holds
// what Git says: one group on one version with the wanted content, which is the
// default, its instances on it, Git's tags beside foreign ones, no more versions
// than are kept or were in use, and then silence.
func TestWhateverHappensToATemplateItEndsAsGitSays(t *testing.T) {
	t.Parallel()
	checks(t, 12)
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		git := wish{keep: 2, size: 1}
		w.settle(git.desired())
		id := aws.ToString(w.template("web").LaunchTemplateId)
		have := func() bool { // somebody may have deleted the template
			out, err := w.ec2().DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"web"}})
			if err == nil {
				id = aws.ToString(out.LaunchTemplates[0].LaunchTemplateId)
			}
			return err == nil
		}
		version := func(rt *rapid.T) string {
			return fmt.Sprint(rapid.SampledFrom(w.numbers("web")).Draw(rt, "version"))
		}
		operations := []string{"", "CreateLaunchTemplateVersion", "DeleteLaunchTemplateVersions", "ModifyLaunchTemplate", "CreateTags",
			"StartInstanceRefresh", "DescribeLaunchTemplateVersions", "DescribeInstances", "CreateOrUpdateTags", "CancelInstanceRefresh"}
		rt.Repeat(map[string]func(*rapid.T){
			"another content": func(rt *rapid.T) { git.step = rapid.IntRange(0, 4).Draw(rt, "step") },
			"another number":  func(rt *rapid.T) { git.keep = rapid.Int32Range(1, 5).Draw(rt, "keep") },
			"another size":    func(rt *rapid.T) { git.size = rapid.Int32Range(0, 3).Draw(rt, "size") },
			"another tag":     func(rt *rapid.T) { git.extra = rapid.SampledFrom([]string{"", "team", "cost"}).Draw(rt, "extra") },
			"a pass":          func(*rapid.T) { _, _ = w.pass(reconciler.Apply, git.desired()) },
			"two passes": func(*rapid.T) {
				_, _ = w.pass(reconciler.Apply, git.desired())
				_, _ = w.pass(reconciler.Apply, git.desired())
			},
			"a crash": func(*rapid.T) { w.restart() },
			"time goes by": func(rt *rapid.T) {
				w.clock.Advance(time.Duration(rapid.IntRange(1, 600).Draw(rt, "seconds")) * time.Second)
			},
			"the template goes": func(*rapid.T) {
				_, _ = w.ec2().DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("web")})
			},
			"a foreign tag": func(*rapid.T) {
				_, _ = w.ec2().CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("foreign"), Value: aws.String("x")}}})
			},
			"a tag of ours goes": func(*rapid.T) {
				_, _ = w.ec2().DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("Name")}, {Key: aws.String(observed.TagKeep)}}})
			},
			"another default": func(rt *rapid.T) {
				if have() {
					_, _ = w.ec2().ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: aws.String("web"), DefaultVersion: aws.String(version(rt))})
				}
			},
			"a version goes": func(rt *rapid.T) {
				if have() {
					_, _ = w.ec2().DeleteLaunchTemplateVersions(ctx, &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateName: aws.String("web"), Versions: []string{version(rt)}})
				}
			},
			"a version by hand": func(*rapid.T) {
				if have() {
					w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.KeyName = aws.String("evil") })
				}
			},
			"the group on another version": func(rt *rapid.T) {
				if have() {
					_, _ = w.groups().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"),
						LaunchTemplate: &astypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("web"), Version: aws.String(version(rt))}})
				}
			},
			"a fault": func(rt *rapid.T) {
				f := faultKinds[rapid.SampledFrom([]string{"refused", "cut before", "answer lost", "throttled"}).Draw(rt, "kind")]
				f.Operation, f.After = rapid.SampledFrom(operations).Draw(rt, "operation"), rapid.IntRange(0, 2).Draw(rt, "after")
				remove := w.srv.Faults().Add(f)
				_, _ = w.pass(reconciler.Apply, git.desired())
				remove()
			},
			"": func(*rapid.T) {},
		})
		w.clock.Advance(time.Hour)
		foreign := have() && w.templateTags("web")["foreign"] != ""
		// A last change, so that pruning is due.
		git.step = 9
		if _, trouble := w.settled(git.desired()); trouble != "" {
			rt.Fatal(trouble)
		}
		w.endsAs(rt, git, foreign)
	})
}

// endsAs compares what AWS holds with what Git says.
func (w *world) endsAs(t *rapid.T, git wish, foreign bool) {
	tpl, group := w.template("web"), w.group("web")
	versions := w.versions("web").LaunchTemplateVersions
	wanted := fmt.Sprint(aws.ToInt64(tpl.DefaultVersionNumber))
	for _, v := range versions {
		if fmt.Sprint(aws.ToInt64(v.VersionNumber)) != wanted {
			continue
		}
		if got := aws.ToString(v.LaunchTemplateData.KeyName); got != "key-9" || !strings.HasPrefix(aws.ToString(v.VersionDescription), "weir:v1:") {
			t.Fatalf("the default version %s holds %q and says %q", wanted, got, aws.ToString(v.VersionDescription))
		}
	}
	if got := aws.ToString(group.LaunchTemplate.Version); got != wanted || aws.ToString(group.LaunchTemplate.LaunchTemplateId) != aws.ToString(tpl.LaunchTemplateId) {
		t.Fatalf("the group is on version %s, the default is %s", got, wanted)
	}
	if len(group.Instances) != int(git.size) {
		t.Fatalf("%d instances, want %d", len(group.Instances), git.size)
	}
	for _, i := range group.Instances {
		if aws.ToString(i.LaunchTemplate.Version) != wanted {
			t.Fatalf("an instance runs version %s, the default is %s", aws.ToString(i.LaunchTemplate.Version), wanted)
		}
	}
	// The kept ones, the wanted one, and what was in use when room was made: the
	// group's version, its default, a refresh's and an instance's.
	if most := int(git.keep) + 5; len(versions) > most {
		t.Fatalf("%d versions, want %d at most", len(versions), most)
	}
	tags := w.templateTags("web")
	for _, k := range []string{"team", "cost"} {
		if (tags[k] != "") != (git.extra == k) {
			t.Fatalf("Git's extra tag is %q, the template has %v", git.extra, tags)
		}
	}
	if tags["Name"] != "web" || foreign && tags["foreign"] == "" {
		t.Fatalf("the template has the tags %v", tags)
	}
	w.srv.ResetCalls()
	w.restart()
	if r := w.must(reconciler.Apply, git.desired())[0]; !r.Converged() {
		t.Fatalf("not converged any more: %v", r.Diagnostics)
	}
	if _, writes := w.calls(); writes != 0 {
		t.Fatalf("writes after convergence: %v", w.srv.CallCounts())
	}
}

// A refresh whose start AWS refuses, or does not answer to, is not taken for one that runs: the
// same process asks in the next pass.
func TestARefreshWhoseStartFailedIsAskedAbout(t *testing.T) {
	for name, f := range map[string]awsemu.Fault{"refused": {Kind: awsemu.FailBefore, Code: "InternalFailure", Status: 500}, "answer lost": {Kind: awsemu.LoseAnswer}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(target("blue", groupPool("web", "m5.large", 2)))
			f.Operation = "StartInstanceRefresh"
			w.srv.Faults().Add(f)
			w.srv.ResetCalls()
			for range 2 {
				_, _ = w.pass(reconciler.Apply, target("blue", groupPool("web", "m5.xlarge", 2)))
			}
			want := map[string]int{"refused": 2, "answer lost": 1}[name]
			if n := w.srv.CallCounts(); n["autoscaling:StartInstanceRefresh"] != want || n["autoscaling:DescribeInstanceRefreshes"] < 2 {
				t.Errorf("%v", n)
			}
		})
	}
}
