package reconciler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/importer"
	"github.com/weir-gitops/weir/reconciler/importer/factor"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/tree"
)

// TestImportOfManyPools holds the figures of an import: 500 pools of eight shapes in eight
// clusters, in few calls, as a fifth of the lines that a file for each would have, with
// nothing to do once they are adopted.
func TestImportOfManyPools(t *testing.T) {
	t.Parallel()
	const groups, nodegroups = 470, 30
	ctx := context.Background()
	w := newWorld(t)
	mixedFleet(t, w, groups, nodegroups)
	w.clock.Advance(10 * time.Minute)
	w.srv.ResetCalls()
	cloud, err := awscloud.Open(ctx, sdk.Options{Region: testRegion, EndpointURL: w.url, Embedded: true, Attempts: 1, Now: w.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	state, err := cloud.Survey(ctx, nil, func(*observed.State) {}, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for _, c := range w.srv.Calls() {
		calls[c.Operation]++
	}
	want := map[string]int{
		"DescribeAutoScalingGroups": 6,      // a page each 100, and the groups behind nodegroups
		"DescribeLifecycleHooks":    groups, // AWS has no other way
		"ListClusters":              1, "ListNodegroups": 1, "DescribeNodegroup": nodegroups,
	}
	for name, n := range want {
		if calls[name] > n+nodegroups*boolInt(name == "DescribeLifecycleHooks") {
			t.Errorf("%d calls of %s, want at most %d", calls[name], name, n)
		}
	}
	start := time.Now()
	pools := importer.Make(state, importer.Options{})
	flat, err := importer.Files(state, pools)
	if err != nil {
		t.Fatal(err)
	}
	r := importer.Repository(state, pools, nil)
	took := time.Since(start)
	again := importer.Repository(state, pools[1:], nil)
	for _, b := range again.Bases {
		if !slices.ContainsFunc(r.Bases, func(x factor.Base) bool { return x.Name == b.Name }) {
			t.Errorf("with one pool more, the base %s has another name", b.Name)
		}
	}
	lines := func(files map[string][]byte) (n int) {
		for _, text := range files {
			n += strings.Count(string(text), "\n")
		}
		return n
	}
	have, all := lines(r.Files), lines(flat)
	refused := 0
	for _, p := range pools {
		if p.State == importer.Refused {
			refused++
			t.Errorf("%s: %s", p.Name, p.Reason)
		}
	}
	t.Logf("%d pools, %d bases, %d overlays: %d lines of %d (%d %%), in %v; calls %v", len(pools), len(r.Bases), len(r.Overlays), have, all, have*100/all, took, calls)
	if len(pools) != groups+nodegroups || have*1000 > all*205 || len(r.Overlays) != 8 || len(r.Bases) < 6 || len(r.Bases) > 12 {
		var names []string
		for _, b := range r.Bases {
			names = append(names, fmt.Sprint(b.Name, " ", len(b.Pools)))
		}
		t.Errorf("%d pools, bases %v, overlays %v", len(pools), names, r.Overlays)
		for _, name := range slices.Sorted(maps.Keys(r.Files)) {
			if strings.Contains(name, "-web-1/") || strings.HasPrefix(name, "bases") || strings.HasSuffix(name, "dev-eu/kustomization.yaml") {
				t.Logf("## %s\n%s", name, r.Files[name])
			}
		}
	}
	// All overlays together are what the flat manifests are, and nothing is to be done.
	in, whole := tree.Map{}, tree.Map{}
	for name, text := range r.Files {
		in[name] = string(text)
	}
	for name, text := range flat {
		whole[name] = string(text)
	}
	objects := func(m tree.Map, dir string, to map[string]string) *render.Result {
		out, err := render.Render(ctx, m, dir, render.Options{})
		if err != nil || out.Diags.HasErrors() {
			t.Fatalf("%s: %v %v", dir, err, out.Diags)
		}
		for _, o := range out.Objects {
			var v any
			if err := o.Node.Decode(&v); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			to[o.Ref.String()] = string(text)
		}
		return out
	}
	wanted, got := map[string]string{}, map[string]string{}
	objects(whole, ".", wanted)
	var adopt, then []reconciler.Desired
	planned := 0
	for _, dir := range r.Overlays {
		out := objects(in, dir, got)
		d := target(strings.TrimPrefix(dir, "overlays/"), out.Set.Pools...)
		d.Set = &out.Set
		planned += len(out.Set.Pools)
		adopt, then = append(adopt, adopting(d, "")), append(then, d)
	}
	if !maps.Equal(wanted, got) {
		t.Error("the overlays are something else than a file for each pool")
	}
	w.restart()
	for _, report := range w.must(reconciler.Apply, adopt...) {
		if report.Diagnostics.HasErrors() {
			t.Fatal(report.Diagnostics)
		}
	}
	empty := planned
	for _, report := range w.must(reconciler.PlanOnly, then...) {
		for _, st := range report.Plan.Steps {
			empty--
			t.Errorf("%s %s %s: %v", st.Verb, st.Resource, st.Name, st.Changes)
		}
	}
	if empty != groups+nodegroups {
		t.Errorf("%d of %d pools have nothing to do", empty, planned)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// mixedFleet makes groups of five shapes in eight clusters, and nodegroups of three.
func mixedFleet(t *testing.T, w *world, groups, nodegroups int) {
	t.Helper()
	ctx := context.Background()
	images, err := w.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []ec2types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}}}})
	if err != nil || len(images.Images) == 0 {
		t.Fatalf("no image: %v", err)
	}
	subnets := w.subnets()
	clusters := []string{"demo", "dev-eu", "dev-us", "stage-eu", "stage-us", "prod-eu", "prod-us", "tools"}
	made := map[string]bool{}
	template := func(name string) *astypes.LaunchTemplateSpecification {
		if !made[name] {
			made[name] = true
			w.check(w.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name, LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: images.Images[0].ImageId, InstanceType: "m5.large"}}))
		}
		return &astypes.LaunchTemplateSpecification{LaunchTemplateName: &name, Version: aws.String("1")}
	}
	tag := func(k, v string) astypes.Tag {
		return astypes.Tag{Key: &k, Value: &v, PropagateAtLaunch: aws.Bool(false)}
	}
	for i := range groups {
		cluster := clusters[i%len(clusters)]
		shape := []string{"web", "batch", "db", "gpu", "ingress"}[i/len(clusters)%5]
		name := fmt.Sprintf("%s-%s-%d", cluster, shape, i)
		own := []string{strings.Join(subnets, ","), subnets[0], subnets[1], strings.Join(subnets[1:], ",")}[i%len(clusters)/2]
		in := &autoscaling.CreateAutoScalingGroupInput{
			AutoScalingGroupName: &name, MinSize: aws.Int32(0), MaxSize: aws.Int32(int32(3 + i%7)), DefaultInstanceWarmup: aws.Int32(120), VPCZoneIdentifier: &own, //nolint:gosec // small
			Tags: []astypes.Tag{tag("kubernetes.io/cluster/"+cluster, "owned"), tag("team", shape), tag("cost-center", "0"+cluster), tag("k8s.io/cluster-autoscaler/enabled", "true")},
		}
		switch shape {
		case "web", "ingress":
			in.LaunchTemplate = template(name) // each has its own
			in.HealthCheckType, in.HealthCheckGracePeriod, in.DefaultCooldown = aws.String("ELB"), aws.Int32(90), aws.Int32(60)
			in.TerminationPolicies = []string{"OldestLaunchTemplate", "Default"}
		case "db":
			in.LaunchTemplate = template("db-" + cluster)
			in.NewInstancesProtectedFromScaleIn, in.MaxInstanceLifetime = aws.Bool(true), aws.Int32(864000)
		default:
			var overrides []astypes.LaunchTemplateOverrides
			for _, size := range []string{"large", "xlarge", "2xlarge", "4xlarge"} {
				for _, family := range map[string][]string{"batch": {"c5", "c6i"}, "gpu": {"g4dn", "g5"}}[shape] {
					if shape == "gpu" && size == "large" {
						continue
					}
					overrides = append(overrides, astypes.LaunchTemplateOverrides{InstanceType: aws.String(family + "." + size)})
				}
			}
			in.CapacityRebalance = aws.Bool(true)
			in.MixedInstancesPolicy = &astypes.MixedInstancesPolicy{LaunchTemplate: &astypes.LaunchTemplate{LaunchTemplateSpecification: template(shape + "-" + cluster), Overrides: overrides},
				InstancesDistribution: &astypes.InstancesDistribution{OnDemandBaseCapacity: aws.Int32(1), OnDemandPercentageAboveBaseCapacity: aws.Int32(20), SpotAllocationStrategy: aws.String("price-capacity-optimized")}}
		}
		w.check(w.groups().CreateAutoScalingGroup(ctx, in))
		for _, hook := range map[string][]string{"web": {"drain", "register"}, "ingress": {"drain"}, "db": {"drain"}}[shape] {
			w.check(w.groups().PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: &name, LifecycleHookName: aws.String(hook), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_TERMINATING"), HeartbeatTimeout: aws.Int32(300)}))
		}
		if shape == "db" {
			w.check(w.groups().SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: &name, ScalingProcesses: []string{"AZRebalance", "ReplaceUnhealthy"}}))
		}
	}
	for i := range nodegroups {
		shape := []string{"general", "spot", "gpu"}[i%3]
		in := &eks.CreateNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String(fmt.Sprintf("%s-%d", shape, i)), Subnets: subnets,
			NodeRole:      aws.String("arn:aws:iam::000000000000:role/eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io"),
			ScalingConfig: &ekstypes.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(int32(2 + i%5)), DesiredSize: aws.Int32(0)}, //nolint:gosec // small
			Labels:        map[string]string{"tier": shape, "team": "x"}, DiskSize: aws.Int32(50), UpdateConfig: &ekstypes.NodegroupUpdateConfig{MaxUnavailablePercentage: aws.Int32(33)},
			InstanceTypes: map[string][]string{"general": {"m5.large"}, "spot": {"m5.large", "m5a.large", "m6i.large", "m5.xlarge"}, "gpu": {"g4dn.xlarge"}}[shape], Tags: map[string]string{"team": shape},
		}
		if shape == "spot" {
			in.CapacityType = ekstypes.CapacityTypesSpot
		}
		if shape == "gpu" {
			in.Taints = []ekstypes.Taint{{Key: aws.String("nvidia.com/gpu"), Value: aws.String("yes"), Effect: ekstypes.TaintEffectNoSchedule}}
		}
		w.check(w.eks().CreateNodegroup(ctx, in))
	}
}
