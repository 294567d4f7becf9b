package plan

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"

	"pgregory.net/rapid"
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
		if got := standsFor(tt.name, tt.wanted); got != tt.want {
			t.Errorf("%s for %s: got %v", tt.name, tt.wanted, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.StringMatching(`[0-9A-Za-z][A-Za-z0-9_-]{0,62}`).Draw(t, "name")
		c := nodegroups{templates: templates{work: &work{in: Input{State: &observed.State{}}}}}
		pool := intent.Pool{Nodegroup: &intent.Nodegroup{ClusterName: "prod", Name: wanted}}
		name := c.replacementName(wantNodegroup{pool: &pool}, nil)
		if !standsFor(name.Name, wanted) || len(name.Name) > 63 {
			t.Fatalf("%s is no name of a replacement for %s", name.Name, wanted)
		}
	})
}

// A name that the pool has used already, for a nodegroup that differs, is passed over.
func TestReplacementNamesDoNotRepeat(t *testing.T) {
	pool := intent.Pool{Key: intent.Key{Namespace: "default", Name: "web"}, Nodegroup: &intent.Nodegroup{ClusterName: "prod", Name: "web"}}
	c := nodegroups{templates: templates{work: &work{in: Input{State: &observed.State{Nodegroups: map[observed.NodegroupName]observed.Nodegroup{}}}}}}
	seen := map[observed.NodegroupName]bool{}
	for range 5 {
		name := c.replacementName(wantNodegroup{pool: &pool}, nil)
		if seen[name] {
			t.Fatalf("%s twice", name)
		}
		seen[name] = true
		c.in.State.Nodegroups[name] = observed.Nodegroup{NodegroupName: name, Tags: map[string]string{observed.TagPool: pool.Key.String()}}
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
		if issueHint(observed.HealthIssue{Code: code}) == "" && code != "Unknown" {
			t.Errorf("%s has no hint", code)
		}
	}
	for code := range issueHints {
		if !known[code] {
			t.Errorf("EKS has no code %s", code)
		}
	}
}

// The nodegroup that serves comes first, then the older one.
func TestNodegroupsInOrder(t *testing.T) {
	pool := nodegroupPool("web", 1)
	s := &observed.State{Nodegroups: map[observed.NodegroupName]observed.Nodegroup{}}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	in := Input{State: s, Policy: Policy{Instance: "i"}}
	add := func(name, status, owner string, age time.Duration) {
		n := observed.NodegroupName{Cluster: pool.Nodegroup.ClusterName, Name: name}
		s.Nodegroups[n] = observed.Nodegroup{NodegroupName: n, Status: status, CreatedAt: at.Add(-age), Tags: map[string]string{observed.TagOwner: owner, observed.TagPool: pool.Key.String()}}
	}
	add("web-aaaaaa", "CREATING", "i", 5*time.Hour)
	add("web-bbbbbb", "ACTIVE", "i", time.Hour)
	add("web-cccccc", "UPDATING", "i", 2*time.Hour)
	add("web-dddddd", "ACTIVE", "somebody", 3*time.Hour)
	add("web-eeeeee", "DELETING", "i", 4*time.Hour)
	add("web-ffffff", "CREATE_FAILED", "i", 6*time.Hour)
	add("other", "ACTIVE", "i", 6*time.Hour)
	var got []string
	for _, n := range in.nodegroupsOf(&pool) {
		got = append(got, strings.TrimPrefix(n.Name, "web-"))
	}
	if want := []string{"cccccc", "bbbbbb", "aaaaaa", "ffffff", "eeeeee"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := RolloutsMoving(s, "i"); n != 3 {
		t.Errorf("%d rollouts are moving, want the update, the replacement and the one whose nodes are drained", n)
	}
}
