package reconciler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

// A finding about a pool as a whole, and not about a field of it, links to the file as
// well: to where the object's name stands.
func TestFindingsAboutAPoolHaveItsPlace(t *testing.T) {
	w := newWorld(t)
	theirs := capaGroupTarget(t, secretBootstrap, "", "m5.large")
	theirs.Policy.Instance = "theirs"
	w.settle(theirs)

	r := w.must(reconciler.PlanOnly, capaGroupTarget(t, secretBootstrap, "", "m5.large"))[0]
	if !hasCode(r, "conflict") || !hasCode(r, "default-network") {
		t.Fatalf("diagnostics: %v", r.Diagnostics)
	}
	for _, d := range r.Diagnostics {
		if !d.Known() || d.File != "all.yaml" {
			t.Errorf("without a place: %v", d)
		}
		if d.Code == "conflict" && !strings.HasSuffix(d.Detail, "weir adopt --config FILE blue --from theirs") {
			t.Errorf("the way out: %q", d.Detail)
		}
	}
}

// A pass that applies asks few renders for places, however many targets a commit changes: it
// builds each anew, and nothing is applied before. A plan has them all.
func TestAPassThatAppliesAsksFewRenders(t *testing.T) {
	w := newWorld(t)
	const many = 40
	built := 0
	var all []reconciler.Desired
	for i := range many {
		d := target(fmt.Sprintf("t%02d", i), written(t, fmt.Sprintf("pool-%02d", i), "", "awsLaunchTemplate:\n  instanceType: m5.large\n  ami: {eksLookupType: AmazonLinux2023}"))
		d.Origins = func(ctx context.Context, asked []intent.Question) []diag.Position {
			out := make([]diag.Position, len(asked))
			if len(asked) > 0 && intent.Spare(ctx) {
				built++
				for i := range out {
					out[i] = diag.Position{File: "pool.yaml", Line: 1}
				}
			}
			return out
		}
		all = append(all, d)
	}
	w.must(reconciler.PlanOnly, all...)
	if built != many {
		t.Errorf("a plan asked %d renders, want %d", built, many)
	}
	built = 0
	w.must(reconciler.Apply, all...)
	if built != 25 {
		t.Errorf("a pass that applies asked %d renders", built)
	}
}

// TestASecurityGroupOfAnotherVPCHasItsLine: what EC2 would refuse at each launch is said
// before, where the group is named; a pass at rest asks nothing about groups.
func TestASecurityGroupOfAnotherVPCHasItsLine(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	group := func(vpc string) string {
		t.Helper()
		out, err := w.ec2().DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{vpc}}, {Name: aws.String("group-name"), Values: []string{"default"}}}})
		if err != nil || len(out.SecurityGroups) != 1 {
			t.Fatal(err, out)
		}
		return aws.ToString(out.SecurityGroups[0].GroupId)
	}
	vpcs, err := w.ec2().DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
	if err != nil {
		t.Fatal(err)
	}
	here := group(aws.ToString(vpcs.Vpcs[0].VpcId))
	subnets, err := w.ec2().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := w.ec2().CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.9.0.0/16")})
	if err != nil {
		t.Fatal(err)
	}
	there := group(aws.ToString(made.Vpc.VpcId))
	of := func(ids ...string) reconciler.Desired {
		t.Helper()
		var list strings.Builder
		for _, id := range ids {
			list.WriteString("\n  - id: " + id)
		}
		text := writtenText("web", "", fmt.Sprintf("subnets: [{id: %s}]\nawsLaunchTemplate:\n  instanceType: m5.large\n  ami: {eksLookupType: AmazonLinux2023}\n  additionalSecurityGroups:%s", aws.ToString(subnets.Subnets[0].SubnetId), list.String()))
		r, err := render.Render(ctx, tree.Map{"pool.yaml": text}, "pool.yaml", render.Options{})
		if err != nil || len(r.Set.Pools) != 1 {
			t.Fatal(err, r.Diags)
		}
		d := target("demo", r.Set.Pools...)
		d.Origins, d.Network.SecurityGroupIDs = r.Origins, []string{here}
		return d
	}
	r := w.must(reconciler.PlanOnly, of(here, there))[0]
	if len(r.Diagnostics) != 1 || r.Diagnostics[0].Code != "network-mismatch" || r.Diagnostics[0].Line != 27 || !strings.Contains(r.Diagnostics[0].Summary, there) || !r.Plan.Empty() {
		t.Fatalf("%v, %+v", r.Diagnostics, r.Diagnostics)
	}
	w.settle(of(here))
	w.srv.ResetCalls()
	w.must(reconciler.Apply, of(here))
	if reads, writes := w.calls(); reads != 2 || writes != 0 {
		t.Errorf("%d reads and %d writes at rest", reads, writes)
	}
}
