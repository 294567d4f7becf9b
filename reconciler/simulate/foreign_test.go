package simulate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/render/intent"
)

// ec2Client is a client of the fleet's AWS that is not weir's.
func (f *fleet) ec2Client(url string) *ec2.Client {
	f.t.Helper()
	c, err := sdk.Open(f.t.Context(), sdk.Options{Region: region, EndpointURL: url, Embedded: true})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	return ec2.NewFromConfig(c.Config, func(o *ec2.Options) { o.BaseEndpoint = c.Endpoint })
}

// bringing is a group that brings its launch template along.
func bringing(name, template string, replicas int32) intent.Pool {
	p := group(name, "m5.large", replicas, intent.Refresh{})
	p.LaunchTemplate = nil
	p.ForeignTemplate = &intent.ForeignTemplate{NameField: intent.Path{"metadata", "annotations", "node.k8s.aws/launch-template-name"},
		Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: template, Version: intent.LatestVersion}}
	return p
}

// TestPoolsThatBringTheirTemplate are simulated as they happen, beside pools of the same
// account that weir's own templates are for.
func TestPoolsThatBringTheirTemplate(t *testing.T) {
	f := newFleet(t, 0)
	client := f.ec2Client(f.url)
	create := func(name, instanceType string) {
		if _, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name),
			LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"), InstanceType: types.InstanceType(instanceType)}}); err != nil {
			t.Fatal(err)
		}
	}
	create("golden", "m5.large")
	create("other", "m5.large")
	before := []reconciler.Desired{target("prod", "a", bringing("web", "golden", 4), bringing("moves", "other", 2), group("own", "m5.large", 3, intent.Refresh{}))}
	f.apply(before...)
	f.clock.Advance(time.Hour)
	if _, err := client.CreateLaunchTemplateVersion(t.Context(), &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateName: aws.String("golden"), SourceVersion: aws.String("1"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: "m6i.large"}}); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(10 * time.Minute)
	// The pool moves drops its template, which nothing of the commit names any more.
	after := []reconciler.Desired{target("prod", "b", bringing("web", "golden", 4), group("moves", "m5.large", 2, intent.Refresh{}), group("own", "m6i.large", 3, intent.Refresh{}))}
	scene := f.plan(after...)
	got, err := simulate.Run(t.Context(), scene, simulate.Assumptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Outcome != timeline.Converged || len(got.Doubts) > 0 || got.Changed != 3 {
		t.Errorf("outcome %s %s, %d changed, doubts %q", got.Outcome, got.Why, got.Changed, got.Doubts)
	}
	f.apply(after...)
	if off := got.End - f.took().Seconds(); off < -60 || off > 60 {
		t.Errorf("it was said to take %.0f s, and took %s", got.End, f.took())
	}
}

// TestAGroupThatCannotBeCopied is left out and named; the rest of the account is simulated.
func TestAGroupThatCannotBeCopied(t *testing.T) {
	f := newFleet(t, 0)
	want := []reconciler.Desired{target("prod", "a", group("one", "m5.large", 2, intent.Refresh{}), group("two", "m5.large", 2, intent.Refresh{}))}
	f.apply(want...)
	f.clock.Advance(time.Hour)
	scene := f.plan(target("prod", "b", group("one", "m6i.large", 2, intent.Refresh{}), group("two", "m6i.large", 2, intent.Refresh{})))
	g := scene.Stages[0].Inputs.State.Groups["one"]
	g.MaxSize = -1
	scene.Stages[0].Inputs.State.Groups["one"] = g
	got, err := simulate.Run(t.Context(), scene, simulate.Assumptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(got.Doubts, "\n"); !strings.Contains(said, "not in the simulation: group one: ") || got.Changed != 1 || got.Outcome != timeline.Converged {
		t.Errorf("outcome %s, %d changed, doubts %q", got.Outcome, got.Changed, got.Doubts)
	}
}
