package reconciler_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/importer"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/tree"
)

// TestImportedContentsStayAsTheyAre makes groups on launch templates, launch configurations
// and mixed instances policies of any content, and imports them with what they launch. Once
// they are adopted and applied, each has a template of weir's own, no machine was replaced,
// and there is nothing left to do. What manifests cannot say is named instead, or refused.
func TestImportedContentsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		odd := launchingFleet(rt, w)
		w.clock.Advance(10 * time.Minute)
		before := w.machines()
		state := w.surveyed(rt)
		pools := importer.Make(state, importer.Options{Templates: importer.Own, Plain: true})
		d, text := w.proven(rt, state, pools)
		for _, p := range pools {
			switch {
			case odd[p.Name] && p.Owned:
				rt.Fatalf("%s is said to be whole, and holds what manifests cannot say\n%s", p.Name, text)
			case odd[p.Name]:
			case !p.Owned || p.State == importer.Refused:
				rt.Fatalf("%s is %s: %s %v\n%s", p.Name, p.State, p.Reason, p.Advice, text)
			}
		}
		if d.Set == nil {
			return
		}
		w.must(reconciler.Apply, adopting(d, ""))
		for _, st := range w.must(reconciler.PlanOnly, d)[0].Plan.Steps {
			if st.Disruptive || st.Verb == step.Rollout || st.Verb == step.Delete || st.Verb == step.Create && st.Resource != step.LaunchTemplate {
				rt.Fatalf("the plan has %s %s %s: %v\n%s", st.Verb, st.Resource, st.Name, st.Changes, text)
			}
		}
		if _, trouble := w.settled(d); trouble != "" {
			rt.Fatalf("%s\n%s", trouble, text)
		}
		w.restart()
		if r := w.must(reconciler.PlanOnly, d)[0]; !r.Plan.Empty() || r.Diagnostics.HasErrors() {
			rt.Fatalf("there is something left to do: %+v %v\n%s", r.Plan.Steps, r.Diagnostics, text)
		}
		if after := w.machines(); !slices.Equal(before, after) {
			rt.Fatalf("machines were %v and are %v\n%s", before, after, text)
		}
		for _, p := range pools {
			if p.Owned && p.State != importer.Refused && w.templateOf(p.Name).Name != p.Key {
				rt.Fatalf("%s launches from %+v\n%s", p.Name, w.templateOf(p.Name), text)
			}
		}
	})
}

// TestAnImportedNodegroupHasItsNames: Cluster API Provider AWS made the nodegroup's name of
// namespace and name. Manifests find it and its template again, and nothing changes but tags.
func TestAnImportedNodegroupHasItsNames(t *testing.T) {
	w := newWorld(t)
	w.capaNodegroupOf(fromManifests(t, capaNodegroupManifests), "demo-workers", "default_workers")
	state := w.surveyed(t)
	pools := importer.Make(state, importer.Options{Plain: true})
	d, text := w.proven(t, state, pools)
	if len(pools) != 1 || pools[0].Key != "workers" || !pools[0].Owned || pools[0].State != importer.Whole {
		t.Fatalf("%+v\n%s", pools, text)
	}
	w.restart()
	w.srv.ResetCalls()
	w.must(reconciler.Apply, adopting(d, ""))
	for _, call := range w.wrote() {
		if call != "CreateTags" && call != "TagResource" && call != "CreateOrUpdateTags" {
			t.Errorf("adopting called %s", call)
		}
	}
	if r := w.must(reconciler.PlanOnly, d)[0]; !r.Plan.Empty() || r.Diagnostics.HasErrors() {
		t.Errorf("%+v %v\n%s", r.Plan.Steps, r.Diagnostics, text)
	}
}

// machines are all that groups have.
func (w *world) machines() (out []string) {
	w.t.Helper()
	groups, err := w.groups().DescribeAutoScalingGroups(context.Background(), &autoscaling.DescribeAutoScalingGroupsInput{})
	w.check(nil, err)
	for _, g := range groups.AutoScalingGroups {
		for _, i := range g.Instances {
			out = append(out, aws.ToString(g.AutoScalingGroupName)+" "+aws.ToString(i.InstanceId))
		}
	}
	slices.Sort(out)
	return out
}

// proven are the manifests of pools as a target, once those whose plan would not do are
// said otherwise or refused, as weir import does; text is all of them. Its set is nil where
// none is left.
func (w *world) proven(rt rapid.TB, state observed.State, pools []importer.Pool) (d reconciler.Desired, text string) {
	for range 10 {
		files, err := importer.Files(state, pools)
		for name, s := range importer.Secrets(pools) {
			if err == nil {
				files[name], err = s.Plain()
			}
		}
		if err != nil {
			rt.Fatal(err)
		}
		in := tree.Map{}
		var all strings.Builder
		byKey := map[string]*importer.Pool{}
		for name, body := range files {
			in[name] = string(body)
			fmt.Fprintf(&all, "## %s\n%s", name, body)
		}
		text = all.String()
		for i := range pools {
			if p := &pools[i]; p.State != importer.Refused {
				byKey["default/"+p.Key] = p
			}
		}
		if len(byKey) == 0 {
			return reconciler.Desired{}, text
		}
		r, err := render.Render(context.Background(), in, ".", render.Options{})
		again := false
		for i := range pools {
			p := &pools[i]
			if p.State == importer.Refused || err != nil {
				continue
			}
			if at := slices.IndexFunc(r.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && d.File == p.File }); at >= 0 {
				*p, again = p.Refuse(r.Diags[at].Summary), true
			}
		}
		switch {
		case again:
			continue
		case err != nil || r.Diags.HasErrors() || len(r.Set.Pools) != len(byKey):
			rt.Fatalf("%v %v\n%s", err, r.Diags, text)
		}
		d = target("imported", r.Set.Pools...)
		d.Set = &r.Set
		w.restart()
		report := w.must(reconciler.PlanOnly, adopting(d, ""))[0]
		if !refuses(report, byKey) {
			if report.Diagnostics.HasErrors() {
				rt.Fatalf("%v\n%s", report.Diagnostics, text)
			}
			return d, text
		}
	}
	rt.Fatalf("it does not come to an end\n%s", text)
	return d, text
}

// refuses refuses the pools whose plan makes or replaces something.
func refuses(r *plan.Report, pools map[string]*importer.Pool) (refused bool) {
	for _, st := range r.Plan.Steps {
		p := pools[st.Pool]
		made, makes := st.Do.(step.CreateLaunchTemplate)
		if p == nil || p.State == importer.Refused || st.Verb == step.Adopt || st.Verb == step.Update && !st.Disruptive || makes && p.Owned && p.Gives(made.Data) {
			continue
		}
		*p, refused = p.Refuse(fmt.Sprintf("%s %s: %v", st.Verb, st.Resource, st.Changes)), true
		delete(pools, st.Pool)
	}
	return refused
}

// launchingFleet has up to three groups, each on a template, a launch configuration or a
// policy of its own. odd are those that hold what manifests cannot say.
func launchingFleet(rt *rapid.T, w *world) (odd map[string]bool) {
	ctx := context.Background()
	images, err := w.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []ec2types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}}}})
	if err != nil || len(images.Images) == 0 {
		rt.Fatalf("no image: %v", err)
	}
	groups, err := w.ec2().DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{})
	if err != nil || len(groups.SecurityGroups) == 0 {
		rt.Fatalf("no security group: %v", err)
	}
	image := images.Images[rapid.IntRange(0, len(images.Images)-1).Draw(rt, "image")]
	in := launched{image: image, group: aws.ToString(groups.SecurityGroups[0].GroupId)}
	subnets := w.subnets()
	odd = map[string]bool{}
	for i := range rapid.IntRange(1, 2).Draw(rt, "groups") {
		name := fmt.Sprint("group-", i)
		g := &autoscaling.CreateAutoScalingGroupInput{
			AutoScalingGroupName: &name, MinSize: aws.Int32(0), MaxSize: aws.Int32(3), DesiredCapacity: aws.Int32(rapid.Int32Range(0, 2).Draw(rt, "desired")), DefaultInstanceWarmup: aws.Int32(300),
			VPCZoneIdentifier: aws.String(strings.Join(subnets[:2], ",")),
			Tags:              []astypes.Tag{{Key: aws.String("kubernetes.io/cluster/self"), Value: aws.String("owned")}},
		}
		if rapid.Bool().Draw(rt, "launch configuration") {
			c := in.configuration(rt, name)
			odd[name] = slices.ContainsFunc(c.BlockDeviceMappings, func(b astypes.BlockDeviceMapping) bool {
				return b.Ebs.DeleteOnTermination != nil && !*b.Ebs.DeleteOnTermination // Auto Scaling's default is true
			})
			w.check(w.groups().CreateLaunchConfiguration(ctx, c))
			g.LaunchConfigurationName = c.LaunchConfigurationName
		} else {
			mixed := rapid.Bool().Draw(rt, "mixed")
			data := in.template(rt, !mixed)
			// Manifests say metadata options whole, and volumes that end with their machine, and
			// the tags of machines are none that their metadata could show.
			m := data.MetadataOptions
			odd[name] = m != nil && (m.HttpPutResponseHopLimit == nil || m.InstanceMetadataTags == "enabled") || slices.ContainsFunc(data.BlockDeviceMappings, func(b ec2types.LaunchTemplateBlockDeviceMappingRequest) bool {
				return !aws.ToBool(b.Ebs.DeleteOnTermination)
			})
			w.check(w.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("Of_" + name), LaunchTemplateData: data}))
			spec := &astypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("Of_" + name), Version: rapid.SampledFrom([]*string{nil, aws.String("1"), aws.String("$Latest")}).Draw(rt, "version")}
			if g.LaunchTemplate = spec; mixed {
				g.LaunchTemplate, g.MixedInstancesPolicy = nil, &astypes.MixedInstancesPolicy{LaunchTemplate: &astypes.LaunchTemplate{LaunchTemplateSpecification: spec}}
				for _, instanceType := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"m5.large", "m5.xlarge", "c5.large"}), 0, 3, rapid.ID).Draw(rt, "overrides") {
					o := astypes.LaunchTemplateOverrides{InstanceType: aws.String(instanceType)}
					if rapid.Bool().Draw(rt, "own template") {
						o.LaunchTemplateSpecification = &astypes.LaunchTemplateSpecification{LaunchTemplateName: spec.LaunchTemplateName, Version: aws.String("1")}
					}
					g.MixedInstancesPolicy.LaunchTemplate.Overrides = append(g.MixedInstancesPolicy.LaunchTemplate.Overrides, o)
				}
			}
		}
		w.check(w.groups().CreateAutoScalingGroup(ctx, g))
	}
	return odd
}

// launched draws what groups launch.
type launched struct {
	image ec2types.Image
	group string
}

// ends says whether a volume ends with its machine: nearly always, so that most can be said.
func ends(rt *rapid.T) *bool {
	return rapid.SampledFrom([]*bool{aws.Bool(true), aws.Bool(true), aws.Bool(true), aws.Bool(true), aws.Bool(true), aws.Bool(true), aws.Bool(true), nil, aws.Bool(false)}).Draw(rt, "ends")
}

func (c launched) userData(rt *rapid.T) *string {
	text := rapid.SampledFrom([]string{"", "#!/bin/sh\necho ${X} $${Y}\n", "#cloud-config\nruncmd: [a]\n", "no newline", "#!/bin/bash\n/etc/eks/bootstrap.sh self\n"}).Draw(rt, "user data")
	if text == "" {
		return nil
	}
	return aws.String(base64.StdEncoding.EncodeToString([]byte(text)))
}

// template draws members of launch templates that groups take; those of machines alone
// where a policy decides on them.
func (c launched) template(rt *rapid.T, alone bool) *ec2types.RequestLaunchTemplateData {
	d := &ec2types.RequestLaunchTemplateData{
		ImageId: c.image.ImageId, InstanceType: "m5.large", SecurityGroupIds: []string{c.group}, UserData: c.userData(rt), EbsOptimized: maybe(rt, rapid.Bool()),
		DisableApiStop: maybe(rt, rapid.Bool()),
	}
	for _, device := range []string{aws.ToString(c.image.RootDeviceName), "/dev/sdf"} {
		if rapid.Bool().Draw(rt, device) {
			d.BlockDeviceMappings = append(d.BlockDeviceMappings, ec2types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: aws.String(device), Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{
				VolumeSize: aws.Int32(rapid.Int32Range(100, 200).Draw(rt, "size")), VolumeType: "gp3", DeleteOnTermination: ends(rt), Encrypted: maybe(rt, rapid.Bool()),
				Iops: maybe(rt, rapid.Int32Range(3000, 4000)), Throughput: maybe(rt, rapid.Int32Range(125, 250)),
			}})
		}
	}
	if rapid.Bool().Draw(rt, "profile") {
		d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io")}
	}
	if rapid.Bool().Draw(rt, "monitoring") {
		d.Monitoring = &ec2types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(rapid.Bool().Draw(rt, "detailed"))}
	}
	if rapid.Bool().Draw(rt, "metadata") {
		d.MetadataOptions = &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint: "enabled", HttpTokens: rapid.SampledFrom([]ec2types.LaunchTemplateHttpTokensState{"required", "optional"}).Draw(rt, "tokens"),
			HttpPutResponseHopLimit: aws.Int32(rapid.Int32Range(1, 3).Draw(rt, "hops")), InstanceMetadataTags: rapid.SampledFrom([]ec2types.LaunchTemplateInstanceMetadataTagsState{"enabled", "disabled", "disabled", "disabled"}).Draw(rt, "tags"),
		}
		if rapid.IntRange(0, 5).Draw(rt, "part") == 0 {
			d.MetadataOptions.HttpPutResponseHopLimit = nil
		}
	}
	if alone && rapid.Bool().Draw(rt, "spot") {
		d.InstanceMarketOptions = &ec2types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: "spot"}
		if rapid.Bool().Draw(rt, "price") {
			d.InstanceMarketOptions.SpotOptions = &ec2types.LaunchTemplateSpotMarketOptionsRequest{MaxPrice: aws.String("0.5")}
		}
	}
	for _, of := range rapid.SampledFrom([][]ec2types.ResourceType{nil, {"instance"}, {"instance", "volume"}}).Draw(rt, "tagged") {
		d.TagSpecifications = append(d.TagSpecifications, ec2types.LaunchTemplateTagSpecificationRequest{ResourceType: of, Tags: []ec2types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}})
	}
	return d
}

// configuration draws members of launch configurations.
func (c launched) configuration(rt *rapid.T, name string) *autoscaling.CreateLaunchConfigurationInput {
	in := &autoscaling.CreateLaunchConfigurationInput{
		LaunchConfigurationName: aws.String("Of_" + name), ImageId: c.image.ImageId, InstanceType: aws.String("m5.large"), SecurityGroups: []string{c.group},
		UserData: c.userData(rt), EbsOptimized: maybe(rt, rapid.Bool()), SpotPrice: maybe(rt, rapid.SampledFrom([]string{"0.5"})),
		AssociatePublicIpAddress: maybe(rt, rapid.Bool()),
	}
	if rapid.Bool().Draw(rt, "monitoring") {
		in.InstanceMonitoring = &astypes.InstanceMonitoring{Enabled: aws.Bool(rapid.Bool().Draw(rt, "detailed"))}
	}
	if rapid.Bool().Draw(rt, "profile") {
		in.IamInstanceProfile = aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io")
	}
	if rapid.Bool().Draw(rt, "metadata") {
		in.MetadataOptions = &astypes.InstanceMetadataOptions{HttpTokens: rapid.SampledFrom([]astypes.InstanceMetadataHttpTokensState{"", "required", "optional"}).Draw(rt, "tokens"), HttpPutResponseHopLimit: maybe(rt, rapid.Int32Range(1, 3))}
	}
	for _, device := range []string{aws.ToString(c.image.RootDeviceName), "/dev/sdf"} {
		if rapid.Bool().Draw(rt, device) {
			in.BlockDeviceMappings = append(in.BlockDeviceMappings, astypes.BlockDeviceMapping{DeviceName: aws.String(device), Ebs: &astypes.Ebs{
				VolumeSize: aws.Int32(rapid.Int32Range(100, 200).Draw(rt, "size")), VolumeType: aws.String("gp3"), DeleteOnTermination: ends(rt), Encrypted: maybe(rt, rapid.Bool()),
			}})
		}
	}
	return in
}

// surveyed is what an account holds, with the contents of all that groups launch from.
func (w *world) surveyed(rt rapid.TB) observed.State {
	ctx := context.Background()
	cloud, err := awscloud.Open(ctx, sdk.Options{Region: testRegion, EndpointURL: w.url, Embedded: true, Attempts: 1, Now: w.clock.Now})
	if err != nil {
		rt.Fatal(err)
	}
	defer cloud.Close()
	state, err := cloud.Survey(ctx, nil, func(*observed.State) {}, func(int, int) {})
	needs := importer.ContentNeeds(state, importer.Own)
	for _, n := range []observed.Needs{{TemplateNames: needs.TemplateNames, LaunchConfigurations: needs.LaunchConfigurations}, {Versions: needs.Versions}} {
		if err == nil {
			state, err = cloud.Fill(ctx, state, n)
		}
	}
	if err != nil {
		rt.Fatal(err)
	}
	return state
}
