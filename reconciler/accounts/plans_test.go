package accounts

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/preflight"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// The set that plans pull requests cannot try a launch, whatever is said of the commit, and asks AWS everything else.
func TestPlansOfPullRequestsHaveNoMeansToTryALaunch(t *testing.T) {
	emu, err := awsemu.New(awsemu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emu)
	t.Cleanup(server.Close)
	own := New(Options{Logger: slog.New(slog.DiscardHandler), Getenv: func(string) string { return "" }})
	data := intent.TemplateData{ImageID: "ami-0123456789abcdef0", InstanceType: "m5.large", KeyName: "ops"}
	pool := intent.Pool{Key: intent.Key{Name: "web"}, LaunchTemplate: &intent.LaunchTemplate{Data: data}, Group: &intent.Group{Subnets: intent.Lookup{Kind: intent.Subnets}}}
	asked := preflight.Request{Followed: true,
		Plan: &plan.Plan{Steps: []step.Step{{Pool: pool.Key.String(), Do: step.CreateLaunchTemplate{Data: data}}}},
		Input: model.Input{Set: &intent.Set{Pools: []intent.Pool{pool}}, State: &observed.State{},
			Answers: observed.Answers{pool.Group.Subnets: {Subnets: []string{firstSubnet(t, server.URL)}}}},
	}
	for name, tt := range map[string]struct {
		set  *Set
		runs int
	}{"of pull requests": {own.ForPlans(), 0}, "of followed commits": {own, 1}} {
		emu.ResetCalls()
		if err := emu.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"keyPairs": ["ops"]}}}`)); err != nil {
			t.Fatal(err)
		}
		x := tt.set.Open(t.Context(), reconciler.ScopeKey{Region: "eu-west-1", Endpoint: server.URL})
		if x.Err != nil {
			t.Fatal(x.Err)
		}
		x.Scope.Preflight.Ask(t.Context(), []preflight.Request{asked})
		if n := emu.CallCounts(); n["ec2:RunInstances"] != tt.runs || n["ec2:DescribeKeyPairs"] != 1 {
			t.Errorf("%s: %v", name, n)
		}
	}
}

// firstSubnet returns the id of a subnet of eu-west-1.
func firstSubnet(t *testing.T, endpoint string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader("Action=DescribeSubnets&Version=2016-11-15"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20260101/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature=0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`subnet-[0-9a-f]+`).Find(body)
	if id == nil {
		t.Fatalf("no subnet: %s", body)
	}
	return string(id)
}
