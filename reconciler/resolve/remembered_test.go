package resolve_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

func TestAbsenceIsForgottenSoon(t *testing.T) {
	f := world()
	c := newClock()
	r := resolve.New(f, c.now)
	requests := []resolve.Request{{Lookup: intent.Lookup{Kind: intent.Role, Name: "new"}}}
	ask := func() observed.Answer {
		t.Helper()
		a, err := r.Answer(context.Background(), requests)
		if err != nil {
			t.Fatal(err)
		}
		return a[0]
	}
	if a := ask(); a.Code != "role-not-found" {
		t.Fatalf("got %+v", a)
	}
	f.roles["new"] = resolve.Role{ARN: "arn:new"}
	c.t = c.t.Add(29 * time.Second)
	if a := ask(); a.Code != "role-not-found" {
		t.Errorf("asked again too soon: %+v", a)
	}
	c.t = c.t.Add(2 * time.Second)
	if a := ask(); a.RoleARN != "arn:new" {
		t.Errorf("still %+v", a)
	}
}

// The resolver asks soon again about a cluster that is being made, and once a minute about one that stands.
func TestAClusterThatIsBeingMadeIsAskedAboutSoon(t *testing.T) {
	f, clock := world(), newClock()
	r := resolve.New(f, clock.now)
	ask := func(name string) string {
		got, err := r.Answer(context.Background(), []resolve.Request{{Lookup: intent.Lookup{Kind: intent.EKSCluster, Name: name}}})
		if err != nil {
			t.Fatal(err)
		}
		return got[0].Cluster.Status
	}
	ask("young")
	ask("shop")
	for name, c := range f.clusters {
		c.Status = "DELETING"
		f.clusters[name] = c
	}
	clock.t = clock.t.Add(11 * time.Second)
	if got := ask("young"); got != "DELETING" {
		t.Errorf("the cluster that was being made: %s", got)
	}
	if got := ask("shop"); got == "DELETING" {
		t.Error("the cluster that stands was asked about again")
	}
}

func TestDeniedIsAProblemAndTransientAFailure(t *testing.T) {
	f := world()
	r := resolve.New(f, newClock().now)
	requests := []resolve.Request{
		{Lookup: intent.Lookup{Kind: intent.Role, Name: "nodes"}},
		{Lookup: intent.Lookup{Kind: intent.Subnets}, Cluster: web},
		{Lookup: intent.Lookup{Kind: intent.CoreSecurityGroups}, Cluster: web},
	}
	f.fail = map[string]error{"Subnets": &observed.Error{Kind: observed.Denied, Message: "needs ec2:DescribeSubnets"}}
	got, err := r.Answer(context.Background(), requests)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].RoleARN == "" || got[1].Code != "access-denied" || !strings.Contains(got[1].Problem, "ec2:DescribeSubnets") || len(got[2].SecurityGroups) != 2 {
		t.Errorf("got %+v", got)
	}
	c := newClock()
	r = resolve.New(f, c.now)
	f.fail = map[string]error{"SecurityGroups": &observed.Error{Kind: observed.Throttled, Service: "ec2", Code: "RequestLimitExceeded"}}
	if got, err := r.Answer(context.Background(), requests); err == nil {
		t.Errorf("throttling answered %+v", got)
	}
	f.fail = nil
	if _, err := r.Answer(context.Background(), requests); err != nil {
		t.Errorf("after the throttling: %v", err)
	}
}

func TestNetworkIsPartOfTheQuestion(t *testing.T) {
	r := resolve.New(world(), newClock().now)
	l := intent.Lookup{Kind: intent.Subnets, Cluster: shop.Key}
	got, err := r.Answer(context.Background(), []resolve.Request{
		{Lookup: l, Cluster: shop},
		{Lookup: l, Cluster: shop, Network: resolve.Network{SubnetIDs: []string{"subnet-a"}}},
		{Lookup: l, Cluster: web},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"subnet-d1", "subnet-d2"}, {"subnet-a"}, {"subnet-a", "subnet-b"}}
	for i := range want {
		if d := cmp.Diff(want[i], got[i].Subnets); d != "" {
			t.Errorf("answer %d (-want +got):\n%s", i, d)
		}
	}
}

// Renew has the resolver ask again for answers that can change, if they are older than the given time.
func TestWhatMovesIsAskedAnew(t *testing.T) {
	f, clock := world(), newClock()
	r := resolve.New(f, clock.now)
	requests := []resolve.Request{
		{Lookup: intent.Lookup{Kind: intent.EKSCluster, Name: "shop"}},
		{Lookup: intent.Lookup{Kind: intent.ImageByParameter, Name: "/ours/ami"}},
		{Lookup: intent.Lookup{Kind: intent.Role, Name: "nodes"}},
	}
	ask := func() map[string]int {
		t.Helper()
		f.mu.Lock()
		f.calls = nil
		f.mu.Unlock()
		if _, err := r.Answer(context.Background(), requests); err != nil {
			t.Fatal(err)
		}
		return f.calls
	}
	ask()
	asked := clock.t
	clock.t = clock.t.Add(10 * time.Second)
	r.Renew(asked)
	if got := ask(); len(got) > 0 {
		t.Errorf("asked at that time, it was asked again: %v", got)
	}
	r.Renew(asked.Add(time.Second))
	r.Renew(asked) // an earlier wish takes nothing back
	got := ask()
	if got["Parameters"] != 1 || got["Cluster"] != 1 || got["Role"] != 0 {
		t.Errorf("asked anew: %v", got)
	}
	if got := ask(); len(got) > 0 {
		t.Errorf("and again: %v", got)
	}
}
