package doctor_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/reconciler/awscloud/doctor"
	"github.com/weir-gitops/weir/reconciler/awscloud/probe"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const region = "eu-west-1"

// patient is an emulator that a doctor visits, behind front where it is given.
type patient struct {
	t     *testing.T
	aws   *awsemu.Server
	clock *awsemu.ManualClock
	url   string
}

func newPatient(t *testing.T, front func(http.Handler) http.Handler) *patient {
	t.Helper()
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	clock := awsemu.NewManualClock(time.Now())
	srv, err := awsemu.New(awsemu.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	handler := http.Handler(srv)
	if front != nil {
		handler = front(srv)
	}
	hs := httptest.NewServer(handler)
	t.Cleanup(hs.Close)
	return &patient{t: t, aws: srv, clock: clock, url: hs.URL}
}

// open connects, and visit visits with whatever change makes of the options.
func (p *patient) open(clock *doctor.Clock) *sdk.Client {
	p.t.Helper()
	c, err := sdk.Open(p.t.Context(), sdk.Options{Region: region, EndpointURL: p.url, Embedded: true, OnCall: clock.OnCall, Attempts: 1})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(c.Close)
	return c
}

func (p *patient) visit(ctx context.Context, change func(*doctor.Options)) *doctor.Report {
	p.t.Helper()
	clock := &doctor.Clock{}
	o := doctor.Options{
		Number: "n1", Apply: true, Cluster: "demo", NodeRole: nodeRole,
		Now:  p.clock.Now,
		Wait: func(ctx context.Context, d time.Duration) error { p.clock.Advance(d); return ctx.Err() },
	}
	if change != nil {
		change(&o)
	}
	r, err := doctor.Visit(ctx, p.open(clock), clock, o)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func verdicts(r *doctor.Report) map[string]doctor.Verdict {
	out := map[string]doctor.Verdict{}
	for _, f := range r.Findings {
		out[f.Name] = f.Verdict
	}
	return out
}

// rows are the names of the page of assumptions, in its order.
func rows(t *testing.T) (names []string) {
	t.Helper()
	page, err := os.ReadFile("../../../deploy/docs/reference/assumptions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		names = append(names, m[1])
	}
	return names
}

func TestAVisitSaysSomethingOfEachAssumption(t *testing.T) {
	p := newPatient(t, nil)
	r := p.visit(t.Context(), nil)
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Name)
		t.Logf("%-10s %-34s %s", f.Verdict, f.Name, strings.Join(f.Evidence, "; "))
		if len(f.Evidence) == 0 || slices.Contains(f.Evidence, "") {
			t.Errorf("%s says nothing", f.Name)
		}
		if f.Verdict == doctor.Differs {
			t.Errorf("%s differs on the emulator", f.Name)
		}
	}
	if want := rows(t); !slices.Equal(got, want) {
		t.Errorf("findings\n%v\nrows of the page\n%v", got, want)
	}
	if len(r.Left) > 0 {
		t.Errorf("left: %v", r.Left)
	}
	if n := r.Count(doctor.AsAssumed); n < 25 {
		t.Errorf("%d assumptions were seen", n)
	}
	p.empty()
}

// empty checks that nothing of a visit is left, whatever a front says.
func (p *patient) empty() {
	p.t.Helper()
	for _, name := range p.bare().made() {
		p.t.Errorf("%s is left", name)
	}
}

// bare is the patient without its front.
func (p *patient) bare() *patient {
	hs := httptest.NewServer(p.aws)
	p.t.Cleanup(hs.Close)
	bare := *p
	bare.url = hs.URL
	return &bare
}

// made lists what has the prefix of visits.
func (p *patient) made() (names []string) {
	p.t.Helper()
	ctx := p.t.Context()
	client := p.open(&doctor.Clock{})
	groups, err := autoscaling.NewFromConfig(client.Config, func(o *autoscaling.Options) { o.BaseEndpoint = client.Endpoint }).DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, g := range groups.AutoScalingGroups {
		names = append(names, *g.AutoScalingGroupName)
	}
	templates, err := ec2.NewFromConfig(client.Config, func(o *ec2.Options) { o.BaseEndpoint = client.Endpoint }).DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, t := range templates.LaunchTemplates {
		names = append(names, *t.LaunchTemplateName)
	}
	nodegroups, err := eks.NewFromConfig(client.Config, func(o *eks.Options) { o.BaseEndpoint = client.Endpoint }).ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: aws.String("demo")})
	if err != nil {
		p.t.Fatal(err)
	}
	return slices.DeleteFunc(append(names, nodegroups.Nodegroups...), func(n string) bool { return !strings.HasPrefix(n, doctor.Prefix) })
}

// TestAVisitTriesEveryRead of package probe, so that no filter or page size is first tried in
// somebody's account.
func TestAVisitTriesEveryRead(t *testing.T) {
	r := newPatient(t, nil).visit(t.Context(), nil)
	tried := map[string]bool{}
	for name := range r.Calls {
		_, operation, _ := strings.Cut(name, ":")
		tried[operation] = true
	}
	for _, calls := range []any{probe.EC2Calls{}, probe.IAMCalls{}, probe.KMSCalls{}, probe.ElasticLoadBalancingCalls{}, probe.ServiceQuotasCalls{}} {
		for f := range reflect.TypeOf(calls).Fields() {
			if !tried[f.Name] {
				t.Errorf("%s is not tried", f.Name)
			}
		}
	}
	for _, f := range r.Findings {
		if f.Name == "full-filters" && len(f.Evidence) != 13 {
			t.Errorf("%d reads: %v", len(f.Evidence), f.Evidence)
		}
	}
}
