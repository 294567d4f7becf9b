package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/tree"
)

// sharedPool is a MachinePool and its pool object, which names the declaration
// "workers". The arguments are name, kind, cluster and the rest of its spec.
const sharedPool = `---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: %[1]s}
spec:
  clusterName: %[3]s
  replicas: 1
  template:
    spec:
      clusterName: %[3]s
      version: v1.33.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: %[2]s, name: %[1]s}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: %[2]s
metadata: {name: %[1]s}
spec: {%[4]s, launchConfigRef: {kind: AWSLaunchConfigTemplate, name: workers}}
`

const sharedClusters = `---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: AWSManagedControlPlane, name: demo}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: AWSManagedControlPlane
metadata: {name: demo}
spec: {eksClusterName: demo}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: edge}
spec: {}
`

// sharing renders a target in which pools of both kinds and of two clusters
// launch by one declaration. Those named in without are left out.
func (w *world) sharing(key string, without ...string) reconciler.Desired {
	t := w.t
	t.Helper()
	images, err := w.ec2().DescribeImages(context.Background(), &ec2.DescribeImagesInput{Filters: []types.Filter{
		{Name: aws.String("name"), Values: []string{"amazon-eks-node-al2023-x86_64-standard-1.33-*"}}}})
	if err != nil || len(images.Images) == 0 {
		t.Fatal("no image: ", err)
	}
	text := sharedClusters + fmt.Sprintf(`---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSLaunchConfigTemplate
metadata: {name: workers, annotations: {weir.dev/keep-versions: "1"}}
spec: {template: {spec: {instanceType: m5.large, iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io, ami: {id: %s}, sshKeyName: %s, rootVolume: {size: 40, type: gp3}}}}
`, aws.ToString(images.Images[0].ImageId), key)
	for _, p := range [][4]string{
		{"web", "AWSMachinePool", "demo", "minSize: 0, maxSize: 3"}, {"api", "AWSMachinePool", "demo", "minSize: 0, maxSize: 3"},
		{"nodes", "AWSManagedMachinePool", "demo", "amiType: AL2023_x86_64_STANDARD"}, {"edge", "AWSMachinePool", "edge", "minSize: 0, maxSize: 3"},
	} {
		if !slices.Contains(without, p[0]) {
			text += fmt.Sprintf(sharedPool, p[0], p[1], p[2], p[3])
		}
	}
	r, err := render.Render(context.Background(), tree.Map{"pools.yaml": text}, "pools.yaml", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Diags.HasErrors() || len(r.Set.Pools) != 4-len(without) {
		t.Fatalf("the manifests give %d pools: %v", len(r.Set.Pools), r.Diags)
	}
	d := target("blue", r.Set.Pools...)
	d.Set.Clusters, d.Origins = r.Set.Clusters, r.Origins
	d.Policy.Prune.Count = 9
	return d
}

// templates returns the launch templates of the account by name, without those that
// EKS makes for its nodegroups.
func (w *world) templates() map[string]types.LaunchTemplate {
	w.t.Helper()
	out, err := w.ec2().DescribeLaunchTemplates(context.Background(), &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]types.LaunchTemplate{}
	for _, lt := range out.LaunchTemplates {
		if name := aws.ToString(lt.LaunchTemplateName); !strings.HasPrefix(name, "eks-") { // those are of EKS itself
			all[name] = lt
		}
	}
	return all
}

// shared describes all launch templates: what is left of the name before its
// hash, how many of them, their newest and default versions.
func (w *world) shared() string {
	var out []string
	for name, lt := range w.templates() {
		out = append(out, fmt.Sprintf("%s latest=%d default=%d", name[:strings.LastIndex(name, "-")], aws.ToInt64(lt.LatestVersionNumber), aws.ToInt64(lt.DefaultVersionNumber)))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func TestOneDeclarationServesBothKindsAndTwoClusters(t *testing.T) {
	w := newWorld(t)
	first := w.sharing("one")
	w.settle(first)
	want := "demo-workers latest=1 default=1\ndemo-workers latest=1 default=1\nedge-workers latest=1 default=1"
	if got := w.shared(); got != want {
		t.Fatalf("templates:\n%s", got)
	}
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, first)[0]
	if _, writes := w.calls(); writes != 0 || len(r.LaunchConfigs) != 3 {
		t.Errorf("at rest: %v, %d launch configs", w.srv.CallCounts(), len(r.LaunchConfigs))
	}
	for _, s := range r.LaunchConfigs {
		if !s.Ready || s.LaunchTemplateID == "" || s.LatestVersion != 1 || s.Conditions[1].Status != "True" {
			t.Errorf("status: %+v", s)
		}
	}

	// An edit makes one version of each template in the pass that starts the
	// rollouts, and says where it comes from.
	second := w.sharing("two")
	w.srv.ResetCalls()
	r = w.must(reconciler.Apply, second)[0]
	n := w.srv.CallCounts()
	if n["ec2:CreateLaunchTemplateVersion"] != 3 || n["autoscaling:StartInstanceRefresh"] != 3 || n["eks:UpdateNodegroupVersion"] != 1 || n["ec2:ModifyLaunchTemplate"] != 0 {
		t.Errorf("the edit: %v", n)
	}
	for _, s := range r.Plan.Steps {
		if s.LaunchConfig == "" {
			continue
		}
		ch := s.Changes[0]
		if ch.Field != "template.spec.sshKeyName" || ch.Origin == nil || ch.Origin.File != "pools.yaml" || len(s.Pools) == 0 {
			t.Errorf("step of %s: %+v", s.LaunchConfig, ch)
		}
	}
	w.settle(second)
	want = strings.ReplaceAll(want, "=1", "=2")
	if got := w.shared(); got != want {
		t.Errorf("after the edit:\n%s", got)
	}

	// Pruning keeps one earlier version; drift of default and tags is put right.
	w.settle(w.sharing("three"))
	third := w.sharing("three")
	for name, lt := range w.templates() {
		if got := w.numbers(name); !slices.Equal(got, []int64{2, 3}) {
			t.Errorf("versions of %s: %v", name, got)
		}
		w.check(w.ec2().ModifyLaunchTemplate(context.Background(), &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: lt.LaunchTemplateName, DefaultVersion: aws.String("2")}))
		w.check(w.ec2().DeleteTags(context.Background(), &ec2.DeleteTagsInput{Resources: []string{aws.ToString(lt.LaunchTemplateId)}, Tags: []types.Tag{{Key: aws.String(observed.TagLaunchConfig)}}}))
	}
	w.settle(third)
	want = strings.ReplaceAll(want, "=2", "=3")
	if got := w.shared(); got != want {
		t.Errorf("after drift:\n%s", got)
	}

	// One pool goes and the template stays; with the last one it goes too.
	w.settle(w.sharing("three", "web"))
	if got := w.shared(); got != want {
		t.Errorf("without one pool:\n%s", got)
	}
	w.settle(w.sharing("three", "web", "api", "nodes"))
	if got := w.shared(); got != "edge-workers latest=3 default=3" {
		t.Errorf("without a cluster's pools:\n%s", got)
	}
}

// A target never takes the shared template of another one, whatever their names.
func TestTwoTargetsDoNotShareATemplate(t *testing.T) {
	w := newWorld(t)
	blue, green := w.sharing("one", "web", "nodes", "edge"), w.sharing("one", "api", "nodes", "edge")
	green.Policy.Target = "green"
	for _, r := range w.must(reconciler.Apply, blue, green) {
		if !hasCode(r, "contested-name") || len(r.LaunchConfigs) != 1 || r.LaunchConfigs[0].Ready {
			t.Errorf("%s: %v %+v", r.Target, r.Diagnostics, r.LaunchConfigs)
		}
	}
	if got := w.templates(); len(got) != 0 {
		t.Errorf("templates: %v", got)
	}
}

// A rollout that fails leaves the default version where every pool has run it,
// and a version that is refused starts no rollout.
func TestOneFailedRolloutKeepsTheDefaultVersion(t *testing.T) {
	w := newWorld(t)
	both := func(key string) reconciler.Desired { return w.sharing(key, "nodes", "edge") }
	w.settle(both("one"))
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateLaunchTemplateVersion", Code: "UnauthorizedOperation", Status: 403, Times: -1})
	w.srv.ResetCalls()
	w.must(reconciler.Apply, both("two"))
	if n := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"]; n != 0 {
		t.Errorf("%d rollouts of a version that was not made", n)
	}
	w.srv.Faults().Clear()
	w.clock.Advance(11 * 60e9)
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "StartInstanceRefresh", Resource: "web", Code: "AccessDenied", Status: 403, Times: -1})
	for range 20 {
		w.must(reconciler.Apply, both("two"))
		w.clock.Advance(10e9)
	}
	if got := w.shared(); got != "demo-workers latest=2 default=1" {
		t.Errorf("while one does not roll: %s", got)
	}
	w.srv.Faults().Clear()
	w.clock.Advance(11 * 60e9)
	w.settle(both("two"))
	if got := w.shared(); got != "demo-workers latest=2 default=2" {
		t.Errorf("afterwards: %s", got)
	}
}

// Stopped at any call of an edit and a deletion, before or after its effect, what
// is shared ends the same.
func TestStoppedAtAnyCallSharedTemplatesConverge(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set, as make race does: hundreds of fleets take minutes under the race detector")
	}
	start := func(t testing.TB) *world {
		w := newWorld(t)
		w.settle(w.sharing("one", "edge"))
		w.settle(w.sharing("two", "edge"))
		return w
	}
	sameWhateverFails(t, start, start(t).sharing("three", "web"), (*world).shared)
}
