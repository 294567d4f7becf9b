package nodegroup

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/render/intent"
)

func TestNamesOfReplacements(t *testing.T) {
	long := strings.Repeat("x", 63)
	for _, tt := range []struct {
		name, wanted string
		want         bool
	}{
		{"web", "web", true}, {"web-0a1b2c", "web", true}, {"web-0A1B2C", "web", false}, {"web-0a1b2", "web", false}, {"web-0a1b2c3", "web", false},
		{"web2-0a1b2c", "web", false}, {"web-0a1b2c-0a1b2c", "web", false}, {long, long, true}, {long[:56] + "-0a1b2c", long, true}, {long[:57] + "-0a1b2c", long, false},
	} {
		if got := model.StandsFor(tt.name, tt.wanted); got != tt.want {
			t.Errorf("%s for %s: got %v", tt.name, tt.wanted, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.StringMatching(`[0-9A-Za-z][A-Za-z0-9_-]{0,62}`).Draw(t, "name")
		c := Planner{Planner: template.Planner{Work: &model.Work{In: &model.Input{State: &observed.State{}}}}}
		pool := intent.Pool{Nodegroup: &intent.Nodegroup{ClusterName: "prod", Name: wanted}}
		name := replacementName(c.In, wantNodegroup{pool: &pool}, nil)
		if !model.StandsFor(name.Name, wanted) || len(name.Name) > 63 {
			t.Fatalf("%s is not a name of a replacement for %s", name.Name, wanted)
		}
	})
}

// A name that the pool has used already, for a nodegroup that differs, is passed over.
func TestReplacementNamesDoNotRepeat(t *testing.T) {
	pool := intent.Pool{Key: intent.Key{Namespace: "default", Name: "web"}, Nodegroup: &intent.Nodegroup{ClusterName: "prod", Name: "web"}}
	c := Planner{Planner: template.Planner{Work: &model.Work{In: &model.Input{State: &observed.State{Nodegroups: map[observed.NodegroupName]observed.Nodegroup{}}}}}}
	seen := map[observed.NodegroupName]bool{}
	for range 5 {
		name := replacementName(c.In, wantNodegroup{pool: &pool}, nil)
		if seen[name] {
			t.Fatalf("%s twice", name)
		}
		seen[name] = true
		c.In.State.Nodegroups[name] = observed.Nodegroup{NodegroupName: name, Tags: map[string]string{observed.TagPool: pool.Key.String()}}
	}
}

// Every code that EKS has comes with what to do, but for the one that says nothing.
func TestEveryIssueHasAHint(t *testing.T) {
	var codes []string
	for _, c := range types.NodegroupIssueCode("").Values() {
		codes = append(codes, string(c))
	}
	for _, c := range types.ErrorCode("").Values() {
		codes = append(codes, string(c))
	}
	known := map[string]bool{}
	for _, code := range codes {
		known[code] = true
		if IssueHint(observed.HealthIssue{Code: code}) == "" && code != "Unknown" {
			t.Errorf("%s has no hint", code)
		}
	}
	for code := range issueHints {
		if !known[code] {
			t.Errorf("EKS has no code %s", code)
		}
	}
}
