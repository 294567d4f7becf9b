package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// full names something of every kind.
func full() intent.Pool {
	p := webPool()
	p.LaunchTemplate.Data.Placement = &intent.Placement{GroupName: "wide"}
	p.LaunchTemplate.Data.BlockDeviceMappings[0].Ebs.KmsKeyID = "alias/good"
	p.Group.Options.TargetGroupARNs = []string{tg("web")}
	return p
}

var everyCall = map[string]int{
	"iam:GetInstanceProfile": 1, "ec2:DescribeKeyPairs": 1, "ec2:DescribeSecurityGroups": 1, "ec2:DescribeSubnets": 1, "elasticloadbalancing:DescribeTargetGroups": 1,
	"ec2:DescribePlacementGroups": 1, "kms:DescribeKey": 1, "ec2:DescribeInstanceTypes": 1, "ec2:DescribeInstanceTypeOfferings": 1,
	"servicequotas:GetServiceQuota": 1, "ec2:DescribeInstances": 1, "ec2:RunInstances": 1,
}

// TestEachKindIsAskedOnce: for however many pools, and again only when the answer is old.
func TestEachKindIsAskedOnce(t *testing.T) {
	var pools []intent.Pool
	for i := range 20 {
		p := full()
		p.Key.Name, p.Replicas.Value = fmt.Sprint("web", i), 1
		pools = append(pools, p)
	}
	f, now := newFake(), time.Unix(0, 0)
	a := New(f, f, func() time.Time { return now })
	both := []Request{creation([]string{"subnet-a", "subnet-b"}, pools[:10]...), creation([]string{"subnet-a", "subnet-b"}, pools[10:]...)}
	for _, tt := range []struct {
		after time.Duration
		want  map[string]int
	}{
		{0, everyCall}, {30 * time.Second, map[string]int{}}, {31 * time.Second, map[string]int{"ec2:DescribeSubnets": 1, "ec2:DescribeInstances": 1}},
		{time.Hour, map[string]int{
			"iam:GetInstanceProfile": 1, "ec2:DescribeKeyPairs": 1, "ec2:DescribeSecurityGroups": 1, "ec2:DescribeSubnets": 1, "elasticloadbalancing:DescribeTargetGroups": 1, "ec2:DescribePlacementGroups": 1,
			"kms:DescribeKey": 1, "ec2:DescribeInstanceTypeOfferings": 1, "servicequotas:GetServiceQuota": 1, "ec2:DescribeInstances": 1, "ec2:RunInstances": 1,
		}},
	} {
		now = now.Add(tt.after)
		for _, found := range a.Findings(context.Background(), both) {
			if len(found) > 0 {
				t.Fatal(found)
			}
		}
		if d := cmp.Diff(tt.want, f.counts()); d != "" {
			t.Errorf("after %s (-want +got):\n%s", tt.after, d)
		}
	}
}

// TestWhatIsMissingIsAskedForSoon: somebody makes it and looks whether the finding goes.
func TestWhatIsMissingIsAskedForSoon(t *testing.T) {
	f, now := newFake(), time.Unix(0, 0)
	delete(f.keyPairs, "ops")
	a := New(f, f, func() time.Time { return now })
	p := []Request{creation([]string{"subnet-a"}, full())}
	if found := a.Findings(context.Background(), p)[0]; len(found) != 1 || found[0].Code != codeUnknown {
		t.Fatal(found)
	}
	f.keyPairs["ops"] = true
	now = now.Add(negativeTTL)
	if found := a.Findings(context.Background(), p)[0]; len(found) != 0 {
		t.Error(found)
	}
}

// TestAQuestionThatFailsIsSaidOnce: whichever it is and however it fails, there is one
// note for the target, and what the others find is found.
func TestAQuestionThatFailsIsSaidOnce(t *testing.T) {
	for op := range everyCall {
		for _, kind := range []observed.ErrorKind{observed.Denied, observed.Throttled, observed.Transient, observed.Invalid, observed.Unknown, observed.Credentials} {
			if op == "ec2:RunInstances" && kind == observed.Invalid {
				continue // an answer
			}
			f := newFake()
			service, operation, _ := strings.Cut(op, ":")
			f.fails[op] = &observed.Error{Kind: kind, Service: service, Operation: operation, Code: "Code"}
			first, second := full(), full()
			second.Key.Name = "second"
			want := "AWS did not answer " + op + " (Code)"
			if kind == observed.Denied {
				want = "the role may not call " + op
			}
			want = "info preflight-unasked  : weir does not know for everything that the manifests name whether AWS accepts it: " + want
			if d := cmp.Diff([]string{want}, ask(f, creation([]string{"subnet-a", "subnet-b"}, first, second))); d != "" {
				t.Errorf("%s is %s (-want +got):\n%s", op, kind, d)
			}
		}
	}
}

// TestNoAnswerAtAll: the plan waits for a while, and goes on with a note.
func TestNoAnswerAtAll(t *testing.T) {
	f := newFake()
	for op := range everyCall {
		service, operation, _ := strings.Cut(op, ":")
		f.fails[op] = &observed.Error{Kind: observed.Denied, Service: service, Operation: operation}
	}
	got := ask(f, creation([]string{"subnet-a"}, full()))
	if len(got) != 1 || !strings.Contains(got[0], "the role may not call ec2:DescribeInstanceTypeOfferings, ec2:DescribeInstanceTypes, ec2:DescribeKeyPairs") {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a := New(f, f, nil)
	<-a.turn // somebody else asks for ever
	if found := a.Findings(ctx, []Request{creation([]string{"subnet-a"}, full())}); len(found) != 1 || len(found[0]) != 0 {
		t.Error(found)
	}
}

// TestOnlyChangesAreAskedAbout: what a plan leaves as it is, and what will not be done
// soon, costs nothing.
func TestOnlyChangesAreAskedAbout(t *testing.T) {
	group := observed.Group{Name: "web", DesiredCapacity: 3}
	for name, tt := range map[string]struct {
		step step.Step
		want []string
	}{
		"none":               {step.Step{}, nil},
		"drift":              {step.Step{Verb: step.Update, Drift: &step.Drift{}, Do: step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(9))}}, nil},
		"tags":               {step.Step{Verb: step.Update, Do: step.TagGroup{Group: "web"}}, nil},
		"smaller":            {step.Step{Verb: step.Update, Do: step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(1))}}, nil},
		"deletion":           {step.Step{Verb: step.Delete, Do: step.DeleteGroup{Name: "web"}}, nil},
		"paused":             {step.Step{Verb: step.Update, Held: step.HeldPaused, Do: step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(9))}}, nil},
		"suspended":          {step.Step{Verb: step.Update, Held: step.HeldSuspended, Do: step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(9))}}, nil},
		"held by a window":   {step.Step{Verb: step.Update, Held: step.HeldWindow, Do: step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(9))}}, sized},
		"larger":             {step.Step{Verb: step.Update, Do: step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(9))}}, sized},
		"subnets":            {step.Step{Verb: step.Update, Do: step.UpdateGroup{Name: "web", SubnetIDs: []string{"subnet-a"}}}, []string{"ec2:DescribeInstanceTypeOfferings", "ec2:DescribeSubnets"}},
		"target groups":      {step.Step{Verb: step.Update, Do: step.SetTrafficSources{Group: "web", Attach: []intent.TrafficSource{{Identifier: tg("web"), Type: "elbv2"}}}}, []string{"elasticloadbalancing:DescribeTargetGroups"}},
		"rollout in place":   {step.Step{Verb: step.Rollout, Do: step.StartRefresh{Group: "web"}}, []string{"ec2:DescribeInstanceTypeOfferings", "ec2:DescribeKeyPairs", "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "iam:GetInstanceProfile"}},
		"rollout with surge": {step.Step{Verb: step.Rollout, Do: step.StartRefresh{Group: "web", Preferences: intent.Refresh{MaxHealthyPercentage: new(int32(200))}}}, append([]string{"ec2:DescribeInstanceTypeOfferings", "ec2:DescribeKeyPairs", "ec2:DescribeSecurityGroups", "iam:GetInstanceProfile"}, sized...)},
	} {
		f, p := newFake(), creation([]string{"subnet-a"}, webPool())
		p.Input.State.Groups = map[string]observed.Group{"web": group}
		tt.step.Pool = "default/web"
		p.Steps = []step.Step{tt.step}
		if got := ask(f, p); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
		var calls []string
		for op := range f.counts() {
			calls = append(calls, op)
		}
		slices.Sort(calls)
		slices.Sort(tt.want)
		if d := cmp.Diff(tt.want, calls); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// sized are the calls for further machines.
var sized = []string{"ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeSubnets", "servicequotas:GetServiceQuota"}

// TestADryRunIsWhereAWSOffersTheType: elsewhere EC2 refuses although the group launches.
func TestADryRunIsWhereAWSOffersTheType(t *testing.T) {
	mixed := func(types ...string) func(*fake, *intent.Pool) {
		return func(_ *fake, p *intent.Pool) {
			p.Group.MixedInstancesPolicy = &intent.MixedInstances{OnDemandPercentageAboveBaseCapacity: 100}
			for _, name := range types {
				p.Group.MixedInstancesPolicy.Overrides = append(p.Group.MixedInstancesPolicy.Overrides, intent.Override{InstanceType: name})
			}
		}
	}
	for name, tt := range map[string]struct {
		change func(*fake, *intent.Pool)
		want   string
	}{
		"the first type in the zone that has it": {mixed("p5.48xlarge", "m5.large"), "p5.48xlarge subnet-b"},
		"a zone that offers none":                {func(f *fake, _ *intent.Pool) { f.offerings["m5.large"] = []string{"eu-west-1b"} }, ""},
		"another type": {func(f *fake, p *intent.Pool) {
			mixed("t3.micro", "m5.large")(f, p)
			f.offerings["t3.micro"] = nil
		}, ""}, // both are findings, and there is no dry run beside one
		"a subnet without a free address": {func(f *fake, _ *intent.Pool) { f.subnets["subnet-a"] = Subnet{Zone: "eu-west-1a"} }, "m5.large subnet-b"},
		"offerings unknown": {func(f *fake, _ *intent.Pool) {
			f.fails["ec2:DescribeInstanceTypeOfferings"] = &observed.Error{Kind: observed.Denied, Service: "ec2", Operation: "DescribeInstanceTypeOfferings"}
		}, ""},
		"the subnet of a network interface": {func(_ *fake, p *intent.Pool) {
			p.LaunchTemplate.Data.NetworkInterfaces = []intent.NetworkInterface{{SubnetID: "subnet-b"}}
		}, "m5.large subnet-b"},
		"reserved capacity": {func(f *fake, p *intent.Pool) {
			p.LaunchTemplate.Data.CapacityReservationSpecification = &intent.CapacityReservation{TargetID: "cr-1"}
			f.reserved = []Reservation{{ID: "cr-1", Type: "m5.large", Zone: "eu-west-1b", Free: 9}}
			f.subnets["subnet-a"], f.subnets["subnet-c"] = f.subnets["subnet-b"], f.subnets["subnet-a"]
		}, "m5.large subnet-a"},
	} {
		f, pool := newFake(), webPool()
		tt.change(f, &pool)
		ask(f, creation([]string{"subnet-a", "subnet-b"}, pool))
		got := ""
		if len(f.dry) > 0 {
			got = f.dry[0].Type + " " + f.dry[0].Subnet
		}
		if got != tt.want {
			t.Errorf("%s: a dry run of %q, want %q", name, got, tt.want)
		}
	}
}

// TestDryRunsAreForFollowedCommits: no other plan makes one, and none has an asker without
// the means. One that is made holds no user data, and its type and subnet are the pool's.
func TestDryRunsAreForFollowedCommits(t *testing.T) {
	p := creation([]string{"subnet-a", "subnet-b"}, full())
	f := newFake()
	if ask(f, p); len(f.dry) != 1 || f.dry[0].Type != "m5.large" || f.dry[0].Subnet != "subnet-a" || f.dry[0].Data.ImageID != "ami-1" {
		t.Fatalf("a followed commit: %+v", f.dry)
	}
	if text := f.dry[0].key(); strings.Contains(text, "c2VjcmV0") || f.dry[0].Data.TagSpecifications != nil {
		t.Errorf("%s", text)
	}
	f = newFake()
	proposed := p
	proposed.Followed = false
	if got := ask(f, proposed); len(f.dry) != 0 || f.counts()["ec2:RunInstances"] != 0 {
		t.Errorf("a proposal: %v, %+v", got, f.dry)
	}
	New(f, nil, nil).Findings(context.Background(), []Request{p})
	if len(f.dry) != 0 {
		t.Errorf("without a launcher: %+v", f.dry)
	}
	f = newFake()
	old := creation([]string{"subnet-a"}, full())
	old.Steps = old.Steps[1:]
	if ask(f, old); len(f.dry) != 0 {
		t.Errorf("of a version that exists: %+v", f.dry)
	}
	f = newFake()
	delete(f.keyPairs, "ops")
	if ask(f, p); len(f.dry) != 0 {
		t.Errorf("of what is refused anyway: %+v", f.dry)
	}
}

// TestDryRunsAreFew: pools that differ in nothing that EC2 looks at share one, and of the
// others some are tried.
func TestDryRunsAreFew(t *testing.T) {
	var alike, different []intent.Pool
	for i := range 20 {
		p := webPool()
		p.Key.Name, p.Replicas.Value = fmt.Sprint("web", i), 1
		p.LaunchTemplate.Data.UserData = fmt.Sprint(i)
		alike = append(alike, p)
		other := *p.LaunchTemplate
		other.Data.EbsOptimized, other.Data.KernelID = new(true), fmt.Sprint("aki-", i)
		p.LaunchTemplate = &other
		different = append(different, p)
	}
	for want, pools := range map[int][]intent.Pool{1: alike, mostDryRuns: different} {
		f := newFake()
		if got := ask(f, creation([]string{"subnet-a", "subnet-b"}, pools...)); len(f.dry) != want || len(got) > 0 {
			t.Errorf("%d dry runs, want %d: %v", len(f.dry), want, got)
		}
	}
}

// TestSharedTemplatesAreBlamedWhereTheyAreWritten, once for all of their pools.
func TestSharedTemplatesAreBlamedWhereTheyAreWritten(t *testing.T) {
	source := intent.ObjectRef{Kind: "AWSLaunchConfigTemplate", Namespace: "default", Name: "common"}
	var pools []intent.Pool
	for i := range 3 {
		p := webPool()
		p.Key.Name = fmt.Sprint("web", i)
		p.LaunchConfig = &intent.LaunchConfig{Key: intent.Key{Namespace: "default", Name: "demo-common"}, Source: source}
		p.LaunchTemplate.Data.KeyName, p.LaunchTemplate.Data.EnclaveOptions = "gone", &intent.EnclaveOptions{Enabled: new(true)}
		pools = append(pools, p)
	}
	p := creation([]string{"subnet-a"}, pools...)
	made := step.Step{LaunchConfig: "default/demo-common", Pools: []string{"default/web0", "default/web1", "default/web2"}, Do: p.Steps[0].Do}
	p.Steps = slices.DeleteFunc(p.Steps, func(s step.Step) bool { _, makes := s.Do.(step.CreateLaunchTemplate); return makes })
	p.Steps = append([]step.Step{made}, p.Steps...)
	want := []string{
		"warning unknown-name AWSLaunchConfigTemplate default/common spec.template.spec.sshKeyName: AWS knows no key pair gone",
		"warning would-be-refused AWSLaunchConfigTemplate default/common spec.template.spec.enclaveOptions.enabled: machines of the type m5.large do not have enclaves, so AWS launches none",
	}
	if d := cmp.Diff(want, ask(newFake(), p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestTemplatesThatPoolsBringAlong are blamed where the pool names them.
func TestTemplatesThatPoolsBringAlong(t *testing.T) {
	pool := webPool()
	pool.LaunchTemplate = nil
	pool.ForeignTemplate = &intent.ForeignTemplate{Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: "theirs"}, NameField: intent.Path{"metadata", "annotations", "node.k8s.aws/launch-template-name"}}
	p := creation([]string{"subnet-a"}, pool)
	p.Input.Answers[pool.ForeignTemplate.Lookup] = observed.Answer{Template: &observed.ForeignTemplate{Data: intent.TemplateData{
		InstanceType: "m7g.large", KeyName: "gone", HibernationOptions: &intent.HibernationOptions{Configured: new(true)},
	}, Image: &observed.Image{ID: "ami-2", Architecture: "x86_64"}}}
	f := newFake()
	got := New(f, f, nil).Findings(context.Background(), []Request{p})[0]
	if len(got) != 3 || slices.ContainsFunc(got, func(d diag.Diagnostic) bool { return d.Field != pool.ForeignTemplate.NameField.String() }) || len(f.dry) != 0 {
		t.Errorf("%v", got)
	}
}
