package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/tree"
)

// differing renders pools that share a declaration which looks their images up, each
// "name kind version tag".
func (w *world) differing(pools ...string) reconciler.Desired {
	t := w.t
	t.Helper()
	text := sharedClusters + `---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSLaunchConfigTemplate
metadata: {name: workers, annotations: {weir.dev/keep-versions: "1"}}
spec: {template: {spec: {instanceType: m5.large, ami: {eksLookupType: AmazonLinux2023}}}}
`
	for _, p := range pools {
		f := strings.Fields(p)
		spec := "minSize: 0, maxSize: 3, additionalTags: {team: " + f[3] + "}"
		if f[1] == "AWSManagedMachinePool" {
			spec = "amiType: AL2023_x86_64_STANDARD, additionalTags: {team: " + f[3] + "}"
		}
		text += strings.ReplaceAll(fmt.Sprintf(sharedPool, f[0], f[1], "demo", spec), "v1.33.0", f[2])
	}
	r, err := render.Render(context.Background(), tree.Map{"pools.yaml": text}, "pools.yaml", render.Options{})
	if err != nil || r.Diags.HasErrors() || len(r.Set.Pools) != len(pools) {
		t.Fatalf("the manifests give %d pools: %v %v", len(r.Set.Pools), err, r.Diags)
	}
	d := target("blue", r.Set.Pools...)
	d.Set.Clusters, d.Origins = r.Set.Clusters, r.Origins
	d.Policy.Prune.Count = 9
	return d
}

// runs says what the versions hold that pools run: the image's Kubernetes version and
// the tag, and which templates there are.
func (w *world) runs(groups ...string) string {
	w.t.Helper()
	var out []string
	for _, name := range groups {
		lt := w.templateOf(name)
		v, err := w.ec2().DescribeLaunchTemplateVersions(context.Background(), &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: aws.String(lt.ID), Versions: []string{lt.Version}})
		w.check(nil, err)
		data := v.LaunchTemplateVersions[0].LaunchTemplateData
		image, err := w.ec2().DescribeImages(context.Background(), &ec2.DescribeImagesInput{ImageIds: []string{aws.ToString(data.ImageId)}})
		w.check(nil, err)
		team := ""
		for _, tag := range data.TagSpecifications[0].Tags {
			if aws.ToString(tag.Key) == "team" {
				team = aws.ToString(tag.Value)
			}
		}
		_, kubernetes, _ := strings.Cut(aws.ToString(image.Images[0].Name), "standard-")
		out = append(out, fmt.Sprintf("%s: %s of %s, %s %s", name, lt.Version, lt.Name, kubernetes[:4], team))
	}
	for name, lt := range w.templates() {
		out = append(out, fmt.Sprintf("%s: versions %v, default %d", name, w.numbers(name), aws.ToInt64(lt.DefaultVersionNumber)))
	}
	slices.Sort(out[len(groups):])
	return strings.Join(out, "\n")
}

// A version that somebody deletes while a pool is pinned to it is made anew once a launch
// fails for it, though the process knows its body; nothing is read for that at rest, and
// nothing more once machines come again.
func TestADeletedVersionThatAPoolRunsIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	w.settle(w.differing("web AWSMachinePool v1.33.0 x", "api AWSMachinePool v1.33.0 x"))
	d := w.differing("web AWSMachinePool v1.33.0 x", "api AWSMachinePool v1.34.0 x")
	w.settle(d)
	lt := w.templateOf("api")
	out, err := w.ec2().DeleteLaunchTemplateVersions(context.Background(), &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: aws.String(lt.ID), Versions: []string{lt.Version}})
	if err != nil || len(out.SuccessfullyDeletedLaunchTemplateVersions) != 1 {
		t.Fatal(err, out)
	}
	w.srv.ResetCalls()
	w.must(reconciler.Apply, d)
	if n := w.srv.CallCounts(); n["ec2:DescribeLaunchTemplateVersions"] != 0 {
		t.Errorf("at rest: %v", n)
	}
	w.endOne("api")
	w.paced(5*time.Minute, d)
	w.settle(d)
	now := w.templateOf("api")
	want := "web: 1 of demo-workers-group, 1.33 x\napi: " + now.Version + " of demo-workers-group, 1.34 x\ndemo-workers-group: versions [1 " + now.Version + "], default 1"
	if got := w.runs("web", "api"); got != want || now.Version == lt.Version {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	w.srv.ResetCalls()
	w.paced(5*time.Minute, d)
	if _, writes := w.calls(); writes != 0 || w.srv.CallCounts()["ec2:DescribeLaunchTemplateVersions"] != 0 {
		t.Errorf("afterwards: %v", w.srv.CallCounts())
	}
}

// One of two pools is upgraded, then the other: one template, whose versions they
// run, and no refusal.
func TestAPoolOfASharedTemplateIsUpgradedByItself(t *testing.T) {
	w := newWorld(t)
	w.settle(w.differing("web AWSMachinePool v1.33.0 x", "api AWSMachinePool v1.33.0 x", "nodes AWSManagedMachinePool v1.33.0 x"))
	const rest = "\ndemo-workers-nodegroup: versions [1], default 1"
	want := "web: 1 of demo-workers-group, 1.33 x\napi: 1 of demo-workers-group, 1.33 x\ndemo-workers-group: versions [1], default 1" + rest
	if got := w.runs("web", "api"); got != want {
		t.Fatalf("%s", got)
	}
	one := w.differing("web AWSMachinePool v1.33.0 x", "api AWSMachinePool v1.34.0 x", "nodes AWSManagedMachinePool v1.33.0 x")
	w.settle(one)
	want = "web: 1 of demo-workers-group, 1.33 x\napi: 2 of demo-workers-group, 1.34 x\ndemo-workers-group: versions [1 2], default 1" + rest
	if got := w.runs("web", "api"); got != want {
		t.Fatalf("one is upgraded:\n%s", got)
	}
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, one)[0]
	if reads, writes := w.calls(); writes != 0 || len(r.Plan.Steps) != 0 {
		t.Errorf("at rest: %d reads, %v", reads, w.srv.CallCounts())
	}
	if v := r.LaunchConfigs[0].Versions; len(v) != 2 || !slices.Equal(v[0].Pools, []string{"default/web"}) || !slices.Equal(v[1].Pools, []string{"default/api"}) {
		t.Errorf("who runs which: %+v", v)
	}
	w.restart()
	w.srv.ResetCalls()
	w.must(reconciler.Apply, one)
	if n := w.srv.CallCounts(); n["ec2:DescribeLaunchTemplateVersions"] > 2 {
		t.Errorf("a cold process: %v", n)
	}
	both := w.differing("web AWSMachinePool v1.34.0 x", "api AWSMachinePool v1.34.0 x", "nodes AWSManagedMachinePool v1.33.0 x")
	w.srv.ResetCalls()
	w.settle(both)
	if n := w.srv.CallCounts(); n["ec2:CreateLaunchTemplateVersion"] != 0 || n["autoscaling:StartInstanceRefresh"] != 1 {
		t.Errorf("the other: %v", n)
	}
	want = "web: 2 of demo-workers-group, 1.34 x\napi: 2 of demo-workers-group, 1.34 x\ndemo-workers-group: versions [1 2], default 2" + rest
	if got := w.runs("web", "api"); got != want {
		t.Errorf("both are upgraded:\n%s", got)
	}
	// A tag for one of them is a version too.
	w.settle(w.differing("web AWSMachinePool v1.34.0 x", "api AWSMachinePool v1.34.0 red", "nodes AWSManagedMachinePool v1.33.0 x"))
	want = "web: 2 of demo-workers-group, 1.34 x\napi: 3 of demo-workers-group, 1.34 red\ndemo-workers-group: versions [1 2 3], default 2" + rest
	if got := w.runs("web", "api"); got != want {
		t.Errorf("a tag:\n%s", got)
	}
}

// A managed pool goes from one Kubernetes version to the next by a version of the
// template that it shares, while another one stays.
func TestAManagedPoolOfASharedTemplateIsUpgraded(t *testing.T) {
	w := newWorld(t)
	pools := func(version, tag string) reconciler.Desired {
		return w.differing("nodes AWSManagedMachinePool v1.33.0 x", "more AWSManagedMachinePool "+version+" "+tag)
	}
	w.settle(pools("v1.33.0", "x"))
	after := pools("v1.34.0", "red")
	w.settle(after)
	got := w.shared()
	for _, p := range after.Set.Pools {
		got += fmt.Sprintf("; %s v%s", p.Key.Name, w.nodegroupVersion(p.Nodegroup.Name))
	}
	if want := "demo-workers latest=2 default=1; more v2; nodes v1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A version that AWS refuses for one pool holds up no other.
func TestARefusedVersionHoldsUpItsPoolsAlone(t *testing.T) {
	w := newWorld(t)
	w.settle(w.differing("api AWSMachinePool v1.33.0 x", "web AWSMachinePool v1.33.0 x"))
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateLaunchTemplateVersion", Code: "InvalidParameterValue", Status: 400, Times: 1})
	d := w.differing("api AWSMachinePool v1.33.0 red", "web AWSMachinePool v1.34.0 x")
	r := w.must(reconciler.Apply, d)[0]
	became := ""
	for _, o := range r.Outcomes {
		switch o.Step.Do.(type) {
		case step.CreateLaunchTemplateVersion:
			became += fmt.Sprint(o.Step.Pools, " ", o.Status, "; ")
		case step.StartRefresh:
			became += fmt.Sprint(o.Step.Name, " ", o.Status, "; ")
		}
	}
	if want := "[default/api] failed; [default/web] done; api skipped; web done; "; became != want {
		t.Errorf("got  %s\nwant %s", became, want)
	}
	w.srv.ResetCalls()
	w.must(reconciler.Apply, d)
	if n := w.srv.CallCounts()["ec2:CreateLaunchTemplateVersion"]; n != 0 {
		t.Errorf("the refused version is asked for again at once, %d times", n)
	}
	w.clock.Advance(3600e9)
	w.settle(d)
	if got := w.runs("web"); !strings.HasPrefix(got, "web: 2 of demo-workers-group, 1.34 x") {
		t.Errorf("%s", got)
	}
}

// A template that somebody deletes is made again, with a version for each content.
func TestASharedTemplateThatIsGoneIsMadeAgainWithAllContents(t *testing.T) {
	w := newWorld(t)
	d := w.differing("web AWSMachinePool v1.33.0 x", "api AWSMachinePool v1.34.0 red")
	w.settle(d)
	w.deleteTemplate("demo-workers-group")
	w.settle(d)
	want := "web: 2 of demo-workers-group, 1.33 x\napi: 1 of demo-workers-group, 1.34 red\ndemo-workers-group: versions [1 2], default 1"
	if got := w.runs("web", "api"); got != want {
		t.Errorf("%s", got)
	}
}

// A version that a pool wants and that somebody deletes is made again.
func TestAVersionThatIsGoneIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.settle(w.differing("web AWSMachinePool v1.33.0 x", "api AWSMachinePool v1.33.0 red"))
	w.settle(w.differing("web AWSMachinePool v1.34.0 x", "api AWSMachinePool v1.33.0 red"))
	w.check(w.ec2().DeleteLaunchTemplateVersions(context.Background(), &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateName: aws.String("demo-workers-group"), Versions: []string{"3"}}))
	w.restart() // this process has read it
	w.settle(w.differing("web AWSMachinePool v1.34.0 x", "api AWSMachinePool v1.33.0 red"))
	if got := w.runs("web"); !strings.HasPrefix(got, "web: 4 of demo-workers-group, 1.34 x") {
		t.Errorf("%s", got)
	}
}

// Stopped at any call while pools go to versions of their own, before or after its
// effect, each runs what it wants, and nothing is made twice.
func TestStoppedAtAnyCallPoolsRunTheirOwnVersions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set, as make race does: hundreds of fleets take minutes under the race detector")
	}
	start := func(t testing.TB) *world {
		w := newWorld(t)
		w.settle(w.differing("web AWSMachinePool v1.33.0 x", "api AWSMachinePool v1.33.0 x"))
		return w
	}
	after := start(t).differing("web AWSMachinePool v1.34.0 x", "api AWSMachinePool v1.33.0 red", "new AWSMachinePool v1.34.0 x")
	sameWhateverFails(t, start, after, func(w *world) string {
		out := w.runs("web", "api", "new")
		// Either of the two may be made first.
		return strings.NewReplacer("api: 2 of", "api: n of", "api: 3 of", "api: n of", "web: 2 of", "web: n of", "web: 3 of", "web: n of", "new: 2 of", "new: n of", "new: 3 of", "new: n of").Replace(out)
	})
}

// In an account at EC2's limit of versions, weir deletes those that nobody uses and makes the new ones, whatever the pools of a template pin.
func TestVersionsOfSharedTemplatesAtTheQuota(t *testing.T) {
	w := newWorldWith(t, map[string]int{"launch-template-versions": 5})
	for i := range 6 {
		w.settle(w.differing("web AWSMachinePool v1.33.0 x", fmt.Sprintf("api AWSMachinePool v1.33.0 t%d", i)))
	}
	if got := w.runs("web", "api"); !strings.Contains(got, "web: 2 of") || !strings.Contains(got, "api: 7 of") || !strings.Contains(got, "t5") {
		t.Errorf("%s", got)
	}
}

// nodegroupVersion is the version of its template that a nodegroup runs.
func (w *world) nodegroupVersion(name string) string {
	w.t.Helper()
	out, err := w.eks().DescribeNodegroup(context.Background(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String(name)})
	w.check(nil, err)
	return aws.ToString(out.Nodegroup.LaunchTemplate.Version)
}
