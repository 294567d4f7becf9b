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
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

// byHand makes a version as somebody does in the console: from the newest one,
// its description copied, with something else in it.
func (w *world) byHand(name string, change func(*types.RequestLaunchTemplateData)) int64 {
	w.t.Helper()
	newest := w.versions(name).LaunchTemplateVersions[0]
	data := &types.RequestLaunchTemplateData{}
	change(data)
	out, err := w.ec2().CreateLaunchTemplateVersion(context.Background(), &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateName: aws.String(name), SourceVersion: aws.String(fmt.Sprint(aws.ToInt64(newest.VersionNumber))),
		VersionDescription: newest.VersionDescription, LaunchTemplateData: data,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return aws.ToInt64(out.LaunchTemplateVersion.VersionNumber)
}

// template reads a template with its tags.
func (w *world) template(name string) types.LaunchTemplate {
	w.t.Helper()
	out, err := w.ec2().DescribeLaunchTemplates(context.Background(), &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{name}})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.LaunchTemplates[0]
}

func (w *world) templateTags(name string) map[string]string {
	w.t.Helper()
	tags := map[string]string{}
	for _, t := range w.template(name).Tags {
		tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return tags
}

// groups is a client of Auto Scaling that is not weir's.
func (w *world) groups() *autoscaling.Client {
	return autoscaling.NewFromConfig(w.sdk)
}

func (w *world) group(name string) astypes.AutoScalingGroup {
	w.t.Helper()
	out, err := w.groups().DescribeAutoScalingGroups(context.Background(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	if err != nil || len(out.AutoScalingGroups) != 1 {
		w.t.Fatalf("group %s: %v, %v", name, out, err)
	}
	return out.AutoScalingGroups[0]
}

func (w *world) check(_ any, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func hasCode(r *plan.Report, code string) bool {
	for _, d := range r.Diagnostics {
		if d.Code == code {
			return true
		}
	}
	return false
}

// The next pass sees a change by hand to a template, in a process that remembers
// nothing, and puts it right at the cost of the writes that it takes.
func TestDriftOfATemplateIsPutRight(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	tests := []struct {
		name   string
		drift  func(w *world)
		writes map[string]int
		// versions are those that there are at the end.
		versions []int64
	}{
		{"another default version", func(w *world) {
			w.check(w.ec2().ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: aws.String("web"), DefaultVersion: aws.String("1")}))
		}, map[string]int{"ec2:ModifyLaunchTemplate": 1}, []int64{1, 2}},
		{"the template deleted", func(w *world) {
			w.check(w.ec2().DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("web")}))
		}, map[string]int{"ec2:CreateLaunchTemplate": 1, "autoscaling:UpdateAutoScalingGroup": 1, "autoscaling:StartInstanceRefresh": 1}, []int64{1}},
		{"the newest version deleted", func(w *world) {
			w.check(w.ec2().ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: aws.String("web"), DefaultVersion: aws.String("1")}))
			w.check(w.ec2().DeleteLaunchTemplateVersions(ctx, &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateName: aws.String("web"), Versions: []string{"2"}}))
		}, map[string]int{"ec2:CreateLaunchTemplateVersion": 2, "autoscaling:UpdateAutoScalingGroup": 1, "autoscaling:StartInstanceRefresh": 1, "ec2:ModifyLaunchTemplate": 1}, []int64{1, 3}},
		{"tags changed", func(w *world) {
			id := aws.ToString(w.template("web").LaunchTemplateId)
			w.check(w.ec2().CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("Name"), Value: aws.String("mine")}, {Key: aws.String("foreign"), Value: aws.String("x")}}}))
			w.check(w.ec2().DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String(observed.TagKeys)}}}))
		}, map[string]int{"ec2:CreateTags": 1}, []int64{1, 2}},
		{"a newer version by hand", func(w *world) {
			w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.InstanceType = types.InstanceTypeT3Large })
		}, map[string]int{}, []int64{1, 2, 3}},
		{"a version by hand in the group", func(w *world) {
			n := w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.InstanceType = types.InstanceTypeT3Large })
			w.setVersion("web", n)
			w.replaceInstances("web")
		}, map[string]int{"ec2:CreateLaunchTemplateVersion": 1, "autoscaling:StartInstanceRefresh": 1, "ec2:ModifyLaunchTemplate": 1}, []int64{1, 2, 3, 4}},
		{"a version by hand with something that weir does not set", func(w *world) {
			n := w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.EbsOptimized = aws.Bool(true) })
			w.setVersion("web", n)
			w.replaceInstances("web")
		}, map[string]int{"ec2:CreateLaunchTemplateVersion": 1, "autoscaling:StartInstanceRefresh": 1, "ec2:ModifyLaunchTemplate": 1}, []int64{1, 2, 3, 4}},
	}
	for _, tt := range tests {
		for _, process := range []string{"by a new process", "by the one that made it"} {
			t.Run(tt.name+" "+process, func(t *testing.T) {
				w := newWorld(t)
				w.settle(target("blue", groupPool("web", "m5.large", 2)))
				blue := target("blue", groupPool("web", "m5.xlarge", 2))
				w.settle(blue)
				w.clock.Advance(time.Hour) // whatever client tokens were sent before are old
				tt.drift(w)
				if process == "by a new process" {
					w.restart()
				}
				w.srv.ResetCalls()
				w.settle(blue)
				got := map[string]int{}
				for _, c := range w.srv.Calls() {
					if c.Write && c.ErrorCode == "" { // what is refused changes nothing
						got[c.Service+":"+c.Operation]++
					}
				}
				if d := cmp.Diff(tt.writes, got); d != "" {
					t.Errorf("writes (-want +got):\n%s", d)
				}
				if d := cmp.Diff(tt.versions, w.numbers("web")); d != "" {
					t.Errorf("versions (-want +got):\n%s", d)
				}
				for _, i := range w.group("web").Instances {
					if got := aws.ToString(i.InstanceType); got != "m5.xlarge" {
						t.Errorf("an instance is a %s", got)
					}
				}
				if tags := w.templateTags("web"); tags["Name"] != "web" || tags[observed.TagKeys] == "" {
					t.Errorf("tags: got %v", tags)
				}
				w.srv.ResetCalls()
				w.restart()
				w.must(reconciler.Apply, blue)
				if _, writes := w.calls(); writes != 0 {
					t.Errorf("writes after convergence: %v", w.srv.CallCounts())
				}
			})
		}
	}
}

// setVersion sets a group to a template version.
func (w *world) setVersion(name string, n int64) {
	w.t.Helper()
	w.check(w.groups().UpdateAutoScalingGroup(context.Background(), &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(name),
		LaunchTemplate:       &astypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String(name), Version: aws.String(fmt.Sprint(n))},
	}))
}

// replaceInstances ends all instances of a group and waits for their successors.
func (w *world) replaceInstances(name string) {
	w.t.Helper()
	for _, i := range w.group(name).Instances {
		w.check(w.groups().TerminateInstanceInAutoScalingGroup(context.Background(), &autoscaling.TerminateInstanceInAutoScalingGroupInput{
			InstanceId: i.InstanceId, ShouldDecrementDesiredCapacity: aws.Bool(false),
		}))
	}
	w.clock.Advance(10 * time.Minute)
}

func TestAVersionByHandWithACopiedDescriptionIsReported(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", groupPool("web", "m5.large", 1))
	w.settle(blue)
	w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.InstanceType = types.InstanceTypeT3Large })
	r := w.must(reconciler.Apply, blue)[0]
	if !hasCode(r, "foreign-version") || !r.Plan.Empty() {
		t.Errorf("got %d steps and %v", len(r.Plan.Steps), r.Diagnostics)
	}
	w.setVersion("web", 2)
	r = w.must(reconciler.PlanOnly, blue)[0]
	if len(r.Plan.Steps) == 0 || !strings.Contains(fmt.Sprint(r.Plan.Steps), "launchTemplate.version") {
		t.Errorf("the group is not put back: %v", r.Plan.Steps)
	}
}

// AWS may answer a version otherwise than it was sent, in ways that nobody knows
// of yet. Then there is one further version, not one at each pass.
func TestAnAnswerThatDiffersFromWhatWasSentMakesOneMoreVersionAtMost(t *testing.T) {
	w := newWorld(t)
	w.scope.Cloud = &rewriting{w.scope.Cloud}
	blue := target("blue", groupPool("web", "m5.large", 1))
	w.settle(blue)
	for range 10 {
		w.must(reconciler.Apply, blue)
		w.clock.Advance(time.Minute)
	}
	if got := w.numbers("web"); len(got) > 2 {
		t.Errorf("versions: got %v", got)
	}
	if r := w.must(reconciler.Apply, blue)[0]; !r.Converged() {
		t.Errorf("not converged: %v", r.Diagnostics)
	}
	// A change by hand is still seen behind it.
	w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.InstanceType = types.InstanceTypeT3Large })
	w.setVersion("web", 3)
	w.replaceInstances("web")
	w.settle(blue)
	for _, i := range w.group("web").Instances {
		if got := aws.ToString(i.InstanceType); got != "m5.large" {
			t.Errorf("an instance is a %s", got)
		}
	}
}

// rewriting answers the volume type of every version in capitals.
type rewriting struct{ reconciler.Cloud }

func (c *rewriting) Fill(ctx context.Context, s observed.State, n observed.Needs) (observed.State, error) {
	s, err := c.Cloud.Fill(ctx, s, n)
	return shouting(s), err
}

func (c *rewriting) Observe(ctx context.Context, q observed.Query) (observed.State, error) {
	s, err := c.Cloud.Observe(ctx, q)
	return shouting(s), err
}

func shouting(s observed.State) observed.State {
	for name, t := range s.Templates {
		versions := map[int64]observed.TemplateVersion{}
		for n, v := range t.Versions {
			v.Data.BlockDeviceMappings = append([]intent.BlockDeviceMapping(nil), v.Data.BlockDeviceMappings...)
			for i := range v.Data.BlockDeviceMappings {
				v.Data.BlockDeviceMappings[i].Ebs.VolumeType = strings.ToUpper(v.Data.BlockDeviceMappings[i].Ebs.VolumeType)
			}
			v.Body = ""
			versions[n] = v
		}
		if t.Versions != nil {
			t.Versions = versions
			s.Templates[name] = t
		}
	}
	return s
}

// A tag that Git drops goes, one of somebody else's stays.
func TestADroppedTagIsRemovedAndAForeignOneStays(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	tagged := func(keys ...string) reconciler.Desired {
		web, ng := groupPool("web", "m5.large", 1), nodegroupPool("ng", 1)
		tags := map[string]string{"Name": "x"}
		for _, k := range keys {
			tags[k] = "v"
		}
		web.Group.Tags, web.LaunchTemplate.Tags, ng.Nodegroup.Tags, ng.LaunchTemplate.Tags = tags, tags, tags, tags
		return target("blue", web, ng)
	}
	w.settle(tagged("team", "cost"))
	id := aws.ToString(w.template("web").LaunchTemplateId)
	foreign := []types.Tag{{Key: aws.String("foreign"), Value: aws.String("x")}}
	w.check(w.ec2().CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: foreign}))
	w.check(w.groups().CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []astypes.Tag{{Key: aws.String("foreign"), Value: aws.String("x"),
		ResourceId: aws.String("web"), ResourceType: aws.String("auto-scaling-group"), PropagateAtLaunch: aws.Bool(false)}}}))
	w.restart()
	fewer := tagged("team")
	w.settle(fewer)
	w.restart()
	state, err := w.scope.Cloud.Observe(ctx, observed.Query{Owner: testInstance, Groups: true, Templates: true, EKSClusters: []string{"demo"}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]map[string]bool{}
	for name, tpl := range state.Templates {
		seen["template "+name] = keys(tpl.Tags)
	}
	for name, g := range state.Groups {
		seen["group "+name] = keys(g.Tags)
	}
	for name, n := range state.Nodegroups {
		seen["nodegroup "+name.String()] = keys(n.Tags)
	}
	if len(seen) != 5 {
		t.Errorf("resources: got %v", seen)
	}
	for what, have := range seen {
		if have["cost"] || !have["team"] || !have["Name"] || !have[observed.TagOwner] {
			t.Errorf("%s has the tags %v", what, have)
		}
		if strings.HasSuffix(what, " web") && !have["foreign"] {
			t.Errorf("%s lost the foreign tag", what)
		}
	}
	w.srv.ResetCalls()
	w.must(reconciler.Apply, fewer)
	if _, writes := w.calls(); writes != 0 {
		t.Errorf("writes after convergence: %v", w.srv.CallCounts())
	}
}

func keys[V any](m map[string]V) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// What a commit changed that is taken back before it has converged is no drift: nobody but
// weir wrote it.
func TestACommitThatIsTakenBackIsNoDrift(t *testing.T) {
	w := newWorld(t)
	pool := func(instanceType string, maxSize int32) reconciler.Desired {
		p := groupPool("web", instanceType, 2)
		p.Group.MaxSize = maxSize
		return target("blue", p)
	}
	before := pool("m5.large", 4)
	w.settle(before)
	w.must(reconciler.Apply, pool("m5.xlarge", 6))
	if got := aws.ToInt32(w.group("web").MaxSize); got != 6 {
		t.Fatalf("the commit was not begun: %d", got)
	}
	r := w.must(reconciler.PlanOnly, before)[0]
	if r.Plan.Empty() {
		t.Error("nothing is to be taken back")
	}
	for _, s := range r.Plan.Steps {
		if s.Drift != nil {
			t.Errorf("it is drift to %s the %s: %s", s.Verb, s.Resource, s.Reason)
		}
	}
}
