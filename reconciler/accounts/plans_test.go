package accounts

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
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
	asked := preflight.Plan{Followed: true,
		Plan: &plan.Plan{Steps: []step.Step{{Pool: pool.Key.String(), Do: step.CreateLaunchTemplate{Data: data}}}},
		Input: basis.Input{Set: &intent.Set{Pools: []intent.Pool{pool}}, State: &observed.State{},
			Answers: observed.Answers{pool.Group.Subnets: {Subnets: []string{"subnet-0123456789abcdef0"}}}},
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
		x.Scope.Preflight.Ask(t.Context(), []preflight.Plan{asked})
		if n := emu.CallCounts(); n["ec2:RunInstances"] != tt.runs || n["ec2:DescribeKeyPairs"] != 1 {
			t.Errorf("%s: %v", name, n)
		}
	}
}
