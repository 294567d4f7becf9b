package reconciler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/preflight"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/tree"
)

// asks has the world's scope ask AWS about its plans.
func (w *world) asks() *world {
	cloud := w.scope.Cloud.(*awscloud.Cloud)
	w.scope.Preflight = preflight.New(cloud, cloud, w.clock.Now)
	return w
}

// seed adds to the region of tests.
func (w *world) seed(region string) {
	w.t.Helper()
	if err := w.srv.Seed(strings.NewReader(fmt.Sprintf(`{"regions": {%q: %s}}`, testRegion, region))); err != nil {
		w.t.Fatal(err)
	}
}

// written is the target of a pool web as Git writes it, and what is written.
func (w *world) written(text string) reconciler.Desired {
	w.t.Helper()
	r, err := render.Render(context.Background(), tree.Map{"pool.yaml": text}, "pool.yaml", render.Options{})
	if err != nil || len(r.Set.Pools) != 1 || r.Diags.HasErrors() {
		w.t.Fatal(err, r.Diags)
	}
	d := target("demo", r.Set.Pools...)
	d.Origins = r.Origins
	return d
}

const webSpec = "awsLaunchTemplate:\n  instanceType: m5.large\n  ami: {eksLookupType: AmazonLinux2023}\n"

// optionsOfWeb are those of the pool web.
func optionsOfWeb(spec string) string {
	return "\n---\napiVersion: weir.dev/v1alpha1\nkind: PoolOptions\nmetadata: {name: web}\nspec:\n  poolRef: {kind: AWSMachinePool, name: web}\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")
}

// refusalsOf returns the findings of a plan but for the network that tests have.
func refusalsOf(r *plan.Report) (out diag.List) {
	for _, d := range r.Diagnostics {
		if d.Code != "default-network" {
			out = append(out, d)
		}
	}
	return out
}

// TestWhatAWSWouldRefuseHasItsLine: each kind of finding, as the wire answers, is a
// warning where the manifest names the thing, and the plan is as it would be without.
func TestWhatAWSWouldRefuseHasItsLine(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t).asks()
	all, err := w.ec2().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	here := all.Subnets[0]
	network := resolve.Network{VPCID: *here.VpcId}
	for _, s := range all.Subnets {
		network.SubnetIDs = append(network.SubnetIDs, *s.SubnetId)
	}
	groups, err := w.ec2().DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{*here.VpcId}}}})
	if err != nil {
		t.Fatal(err)
	}
	network.SecurityGroupIDs = []string{*groups.SecurityGroups[0].GroupId}
	vpc, err := w.ec2().CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.9.0.0/16")})
	if err != nil {
		t.Fatal(err)
	}
	small, err := w.ec2().CreateSubnet(ctx, &ec2.CreateSubnetInput{VpcId: here.VpcId, CidrBlock: aws.String("172.31.240.0/28"), AvailabilityZone: here.AvailabilityZone})
	if err != nil {
		t.Fatal(err)
	}
	w.seed(fmt.Sprintf(`{"placementGroups": [{"name": "tight", "strategy": "cluster"}], "notOffered": {"c5.large": [%q]}, "quotas": {"vcpus-standard": 1000}, "capacityReservations": [{"id": "cr-0123456789abcdef0", "type": "m5.large", "zone": %[1]q, "count": 4, "match": "targeted"}],
		"targetGroups": [{"name": "web", "vpc": %q}, {"name": "far", "vpc": %q}, {"name": "pods", "vpc": %q, "type": "ip"}]}`, *here.AvailabilityZone, *here.VpcId, *vpc.Vpc.VpcId, *here.VpcId))
	keys := kms.NewFromConfig(w.sdk)
	made, err := keys.CreateKey(ctx, &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.DisableKey(ctx, &kms.DisableKeyInput{KeyId: made.KeyMetadata.KeyId}); err != nil {
		t.Fatal(err)
	}
	tg := func(name string) string {
		return "arn:aws:elasticloadbalancing:" + testRegion + ":000000000000:targetgroup/" + name
	}
	arns := targetGroupARNs(t, w)
	for name, tt := range map[string]struct {
		text string
		// code and at: the finding's, and what stands in its line.
		code, at, says string
	}{
		"nothing":           {text: writtenText("web", "", webSpec)},
		"instance profile":  {writtenText("web", "", webSpec+"  iamInstanceProfile: gone"), "unknown-name", "iamInstanceProfile: gone", "instance profile gone"},
		"key pair":          {writtenText("web", "", webSpec+"  sshKeyName: gone"), "unknown-name", "sshKeyName: gone", "key pair gone"},
		"security group":    {writtenText("web", "", webSpec+"  additionalSecurityGroups:\n  - id: sg-0123456789abcdef0"), "unknown-name", "additionalSecurityGroups", "sg-0123456789abcdef0"},
		"KMS key":           {writtenText("web", "", webSpec+"  rootVolume:\n    size: 30\n    encrypted: true\n    encryptionKey: "+*made.KeyMetadata.KeyId), "would-be-refused", "encryptionKey", "is Disabled"},
		"KMS key gone":      {writtenText("web", "", webSpec+"  rootVolume:\n    size: 30\n    encrypted: true\n    encryptionKey: alias/gone"), "would-be-refused", "encryptionKey", "there is no KMS key"},
		"enclaves":          {writtenText("web", "", webSpec+"  enclaveOptions:\n    enabled: true"), "would-be-refused", "enabled: true", "enclaves"},
		"offering":          {strings.ReplaceAll(writtenText("web", "", "subnets: [{id: "+*here.SubnetId+"}]\n"+webSpec), "m5.large", "c5.large"), "not-offered", "instanceType: c5.large", *here.AvailabilityZone},
		"placement group":   {writtenText("web", "", webSpec) + optionsOfWeb("launchTemplate:\n  placement:\n    groupName: gone"), "unknown-name", "groupName: gone", "placement group gone"},
		"its strategy":      {writtenText("web", "", webSpec) + optionsOfWeb("autoScalingGroup:\n  placementGroup: tight"), "would-be-refused", "placementGroup: tight", "strategy is cluster"},
		"target group":      {writtenText("web", "", webSpec) + optionsOfWeb("autoScalingGroup:\n  targetGroupARNs:\n  - "+tg("gone/0123456789abcdef")+"\n  - "+arns["web"]), "would-be-refused", "targetgroup/gone", "no target group gone"},
		"of another VPC":    {writtenText("web", "", webSpec) + optionsOfWeb("autoScalingGroup:\n  targetGroupARNs:\n  - "+arns["web"]+"\n  - "+arns["far"]), "would-be-refused", "targetgroup/far", *vpc.Vpc.VpcId},
		"of another type":   {writtenText("web", "", webSpec) + optionsOfWeb("autoScalingGroup:\n  trafficSources:\n  - identifier: "+arns["pods"]), "would-be-refused", "targetgroup/pods", "of the type ip"},
		"addresses":         {strings.NewReplacer("replicas: 2", "replicas: 12", "maxSize: 10", "maxSize: 12").Replace(writtenText("web", "", "subnets: [{id: "+*small.Subnet.SubnetId+"}]\n"+webSpec)), "capacity-short", "subnets:", "11 free addresses, and the plan puts 12"},
		"quota":             {strings.NewReplacer("replicas: 2", "replicas: 600", "maxSize: 10", "maxSize: 600").Replace(writtenText("web", "", webSpec)), "capacity-short", "replicas: 600", "may run 1000 vCPUs"},
		"reservation":       {strings.NewReplacer("replicas: 2", "replicas: 5").Replace(writtenText("web", "", "subnets: [{id: "+*here.SubnetId+"}]\n"+webSpec+"  capacityReservationId: cr-0123456789abcdef0")), "capacity-short", "replicas: 5", "room for 4, and the plan wants 5"},
		"reservation gone":  {writtenText("web", "", webSpec) + optionsOfWeb("autoScalingGroup:\n  capacityReservationSpecification:\n    capacityReservationPreference: capacity-reservations-only\n    capacityReservationTarget:\n      capacityReservationIds:\n      - cr-0123456789abcdef1"), "unknown-name", "cr-0123456789abcdef1", "no active capacity reservation"},
		"root device twice": {writtenText("web", "", webSpec+"  rootVolume: {size: 30}\n  nonRootVolumes:\n  - deviceName: /dev/sda1\n    size: 10"), "would-be-refused", "/dev/sda1", "two volumes"},
	} {
		d := w.written(tt.text)
		d.Network = network
		r := w.must(reconciler.PlanOnly, d)[0]
		found := refusalsOf(r)
		if tt.code == "" {
			if len(found) > 0 {
				t.Errorf("%s: %v", name, found)
			}
			continue
		}
		lines, severity := strings.Split(tt.text, "\n"), diag.Warning
		if name == "root device twice" { // which AWS is sure to refuse
			severity = diag.Error
		}
		if len(found) != 1 || found[0].Code != tt.code || found[0].Severity != severity || !strings.Contains(found[0].Summary, tt.says) {
			t.Errorf("%s: %v", name, found)
		} else if line := found[0].Line; line == 0 || !strings.Contains(lines[line-1], tt.at) {
			t.Errorf("%s: it stands at line %d: %v", name, line, found)
		}
		if r.Plan.Runnable() == 0 || r.Plan.Runnable() != len(r.Plan.Steps) || r.Diagnostics.HasErrors() != (severity == diag.Error) {
			t.Errorf("%s: it holds the plan: %v", name, r.Plan.Steps)
		}
	}
}

// targetGroupARNs are those of the target groups that exist, by name.
func targetGroupARNs(t *testing.T, w *world) map[string]string {
	t.Helper()
	found, err := elb.NewFromConfig(w.sdk).DescribeTargetGroups(context.Background(), &elb.DescribeTargetGroupsInput{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, g := range found.TargetGroups {
		out[aws.ToString(g.TargetGroupName)] = aws.ToString(g.TargetGroupArn)
	}
	return out
}

// defaultVPC is the id of the region's only one.
func (w *world) defaultVPC() string {
	w.t.Helper()
	out, err := w.ec2().DescribeVpcs(context.Background(), &ec2.DescribeVpcsInput{})
	if err != nil {
		w.t.Fatal(err)
	}
	return aws.ToString(out.Vpcs[0].VpcId)
}

// dryRuns are the calls of RunInstances since the last reset. One that is no dry run
// fails the test.
func (w *world) dryRuns() (n int) {
	for _, c := range w.srv.Calls() {
		if c.Operation == "RunInstances" {
			n++
			if c.Form().Get("DryRun") != "true" || c.Write || c.Form().Get("UserData") != "" {
				w.t.Errorf("weir launches: %s", c.Body)
			}
		}
	}
	return n
}

// TestEC2RefusesADryRun: what EC2 alone knows is found before the merge, and said where
// the manifest names it.
func TestEC2RefusesADryRun(t *testing.T) {
	w := newWorld(t).asks()
	d := w.written(writtenText("web", "", webSpec))
	if r := w.must(reconciler.PlanOnly, d)[0]; len(refusalsOf(r)) > 0 || w.dryRuns() != 1 {
		t.Fatalf("%d dry runs: %v", w.dryRuns(), r.Diagnostics)
	}
	for code, want := range map[string]string{"InvalidParameterCombination": "dry-run-refused", "Unsupported": "dry-run-refused", "UnauthorizedOperation": "preflight-unasked", "RequestLimitExceeded": "preflight-unasked", "InternalError": "preflight-unasked"} {
		w.restart()
		w.asks()
		remove := w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "RunInstances", Code: code, Message: "not so", Times: -1})
		r := w.must(reconciler.PlanOnly, d)[0]
		remove()
		found := refusalsOf(r)
		if len(found) != 1 || found[0].Code != want || r.Plan.Runnable() != len(r.Plan.Steps) {
			t.Errorf("%s: %v", code, found)
		}
		if want == "dry-run-refused" && (found[0].Line == 0 || !strings.Contains(found[0].Summary, code+": not so")) {
			t.Errorf("%s: %v", code, found)
		}
	}
}

// TestAProposalIsNeverTried: plans of commits that are not followed ask all else, and
// those that only report, or of a suspended target, launch nothing in thought either.
func TestAProposalIsNeverTried(t *testing.T) {
	for name, change := range map[string]func(*reconciler.Desired){
		"proposed":    func(d *reconciler.Desired) { d.Proposed = true },
		"report only": func(d *reconciler.Desired) { d.Policy.ReportOnly = true },
		"suspended":   func(d *reconciler.Desired) { d.Policy.Suspended = true },
	} {
		w := newWorld(t).asks()
		d := w.written(writtenText("web", "", webSpec+"  sshKeyName: gone"))
		change(&d)
		r := w.must(reconciler.PlanOnly, d)[0]
		if n := w.dryRuns(); n != 0 {
			t.Errorf("%s: %d dry runs", name, n)
		}
		if name == "proposed" && (len(refusalsOf(r)) != 1 || refusalsOf(r)[0].Code != "unknown-name") {
			t.Errorf("%s: %v", name, r.Diagnostics)
		}
	}
}

// TestQuestionsCostWhatTheyCost: a change of many pools asks each question once, the
// passes that follow and a pass at rest ask nothing.
func TestQuestionsCostWhatTheyCost(t *testing.T) {
	w := newWorldWith(t, map[string]int{"vcpus-standard": 10000}).asks()
	blue := fleet(50)
	w.srv.ResetCalls()
	w.must(reconciler.Apply, blue)
	with := w.srv.CallCounts()
	other := newWorldWith(t, map[string]int{"vcpus-standard": 10000})
	other.srv.ResetCalls()
	other.must(reconciler.Apply, fleet(50))
	extra := map[string]int{}
	for op, n := range with {
		if more := n - other.srv.CallCounts()[op]; more != 0 {
			extra[op] = more
		}
	}
	want := map[string]int{
		"iam:GetInstanceProfile": 1, "ec2:DescribeSubnets": 1, "ec2:DescribeInstanceTypes": 1, "ec2:DescribeInstanceTypeOfferings": 1,
		"servicequotas:GetServiceQuota": 1, "ec2:DescribeInstances": 1, "ec2:RunInstances": 1,
	}
	if d := cmp.Diff(want, extra); d != "" {
		t.Errorf("beside what a plan asks (-want +got):\n%s", d)
	}
	w.srv.ResetCalls()
	w.settle(blue)
	for op := range w.srv.CallCounts() {
		if _, asked := want[op]; asked && op != "ec2:DescribeInstances" {
			t.Errorf("while machines start weir calls %s", op)
		}
	}
	if d := cmp.Diff(map[string]int{"autoscaling:DescribeAutoScalingGroups": 1, "ec2:DescribeLaunchTemplates": 1}, w.silent(blue)); d != "" {
		t.Errorf("at rest (-want +got):\n%s", d)
	}
	// Somebody changes a size by hand: that is put right, and nothing is asked.
	if _, err := w.groups().SetDesiredCapacity(context.Background(), &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("p00000"), DesiredCapacity: aws.Int32(3)}); err != nil {
		t.Fatal(err)
	}
	w.srv.ResetCalls()
	w.must(reconciler.Apply, blue)
	if n := w.srv.CallCounts()["ec2:DescribeSubnets"] + w.srv.CallCounts()["servicequotas:GetServiceQuota"] + w.dryRuns(); n != 0 {
		t.Errorf("for drift: %v", w.srv.CallCounts())
	}
}

// TestEveryQuestionMayFail: however AWS fails one of them, the plan is the same, is
// applied, and says once what it does not know.
func TestEveryQuestionMayFail(t *testing.T) {
	t.Parallel()
	questions := []string{"GetInstanceProfile", "DescribeKeyPairs", "DescribeInstanceTypeOfferings", "DescribePlacementGroups", "DescribeTargetGroups", "DescribeKey", "GetServiceQuota", "RunInstances"}
	for _, op := range questions {
		for name, fault := range map[string]awsemu.Fault{
			"denied": {Kind: awsemu.FailBefore, Code: "AccessDenied"}, "throttled": {Kind: awsemu.Throttled}, "fails": {Kind: awsemu.FailBefore, Code: "InternalFailure"}, "cut": {Kind: awsemu.CutBefore},
		} {
			w := newWorld(t).asks()
			w.seed(`{"keyPairs": ["ours"], "placementGroups": [{"name": "wide", "strategy": "spread"}]}`)
			made, err := kms.NewFromConfig(w.sdk).CreateKey(context.Background(), &kms.CreateKeyInput{})
			if err != nil {
				t.Fatal(err)
			}
			w.seed(fmt.Sprintf(`{"targetGroups": [{"name": "web", "vpc": %q}]}`, w.defaultVPC()))
			d := w.written(writtenText("web", "", webSpec+"  iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n  sshKeyName: ours\n  rootVolume:\n    size: 30\n    encryptionKey: "+*made.KeyMetadata.KeyId) +
				optionsOfWeb("launchTemplate:\n  placement:\n    groupName: wide\nautoScalingGroup:\n  targetGroupARNs: ["+targetGroupARNs(t, w)["web"]+"]"))
			fault.Operation, fault.Times = op, -1
			w.srv.Faults().Add(fault)
			r := w.must(reconciler.Apply, d)[0]
			found := refusalsOf(r)
			if len(found) != 1 || found[0].Code != "preflight-unasked" || found[0].Severity != diag.Info || !strings.Contains(found[0].Summary, op) {
				t.Errorf("%s %s: %v", op, name, found)
			}
			if len(r.Failures()) > 0 || len(r.Outcomes) != len(r.Plan.Steps) {
				t.Errorf("%s %s: %v", op, name, r.Outcomes)
			}
		}
	}
}

// TestARolloutWaitsWhileNoMachineCanStart: a typo in a name costs no machine. The version is
// made, the rollout is held, and the group keeps what it runs. Once the resource is there, the
// rollout goes on by itself; an approval with the reason in sight starts it before.
func TestARolloutWaitsWhileNoMachineCanStart(t *testing.T) {
	for name, tt := range map[string]struct {
		release func(w *world, d *reconciler.Desired, p *plan.Plan)
		starts  bool
	}{
		"held":             {func(*world, *reconciler.Desired, *plan.Plan) {}, false},
		"the key is there": {func(w *world, _ *reconciler.Desired, _ *plan.Plan) { w.seed(`{"keyPairs": ["late"]}`) }, true},
		"approved": {func(_ *world, d *reconciler.Desired, p *plan.Plan) {
			insists := map[string]bool{}
			for _, k := range p.Insists() {
				insists[k] = true
			}
			d.Policy.Gates.Grant = &model.Grant{Digest: p.Digest(), Exact: true, Insists: insists}
		}, true},
		"approved before it was held": {func(_ *world, d *reconciler.Desired, p *plan.Plan) {
			d.Policy.Gates.Grant = &model.Grant{Digest: p.Digest(), Exact: true}
		}, false},
		"insisted on": {func(_ *world, d *reconciler.Desired, _ *plan.Plan) { d.Policy.Gates.Insists = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).asks()
			w.settle(w.written(writtenText("web", "", webSpec)))
			before := w.instances("web")
			d := w.written(writtenText("web", "", webSpec+"  sshKeyName: late"))
			var r *plan.Report
			for range 3 {
				r = w.must(reconciler.Apply, d)[0]
				w.clock.Advance(time.Minute)
			}
			if s := r.Plan.Steps; len(s) != 1 || s[0].Held != step.HeldPreflight || !strings.Contains(s[0].HeldReason, "key pair late") || r.Converged() {
				t.Fatalf("the plan is %+v", s)
			}
			tt.release(w, &d, r.Plan)
			w.srv.ResetCalls()
			for range 2 {
				r = w.must(reconciler.Apply, d)[0]
				w.clock.Advance(time.Minute)
			}
			if started := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"] > 0; started != tt.starts {
				t.Errorf("started %v, want %v: %+v", started, tt.starts, r.Plan.Steps)
			}
			if now := w.instances("web"); !tt.starts && !cmp.Equal(before, now) {
				t.Errorf("machines %v, and before %v", now, before)
			}
		})
	}
}

// TestAHeldRolloutTakesNoTurn: where one rollout may run at a time, another pool's does.
func TestAHeldRolloutTakesNoTurn(t *testing.T) {
	w := newWorld(t).asks()
	both := func(web, api string) []reconciler.Desired {
		out := []reconciler.Desired{w.written(writtenText("web", "", web)), w.written(writtenText("api", "", api))}
		out[1].Policy.Target = "second"
		for i := range out {
			out[i].Policy.MaxRollouts = 1
		}
		return out
	}
	w.settle(both(webSpec, webSpec)...)
	targets := both(webSpec+"  sshKeyName: gone", strings.Replace(webSpec, "m5.large", "m5.xlarge", 1))
	w.must(reconciler.Apply, targets...)
	w.clock.Advance(time.Second)
	reports := w.must(reconciler.Apply, targets...)
	for _, r := range reports {
		for _, s := range r.Plan.Steps {
			if s.Held == step.HeldRolloutLimit {
				t.Errorf("%s waits for a turn: %s", s.Pool, s.HeldReason)
			}
		}
	}
}
