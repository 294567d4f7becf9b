package resolve_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

// fleet is many pools' questions: of 50 EKS clusters, 20 self-managed ones and
// 30 images.
func fleet(f *fakeCloud) []resolve.Request {
	var requests []resolve.Request
	for i := range 50 {
		name := fmt.Sprintf("eks%d", i)
		f.clusters[name] = observed.EKSCluster{Name: name, Status: "ACTIVE", Endpoint: "https://e", CertificateAuthority: "Y2E=",
			SubnetIDs: []string{"subnet-" + name}, ClusterSecurityGroupID: "sg-" + name}
		f.subnets = append(f.subnets, subnet("subnet-"+name, "vpc-web", "eu-west-1a", false))
		c := intent.Cluster{TagName: name, EKSName: name}
		requests = append(requests, resolve.Request{Lookup: intent.Lookup{Kind: intent.Subnets}, Cluster: c},
			resolve.Request{Lookup: intent.Lookup{Kind: intent.CoreSecurityGroups}, Cluster: c},
			resolve.Request{Lookup: intent.Lookup{Kind: intent.EKSCluster, Name: name}, Cluster: c},
			resolve.Request{Lookup: intent.Lookup{Kind: intent.Role, Name: "nodes"}, Cluster: c})
	}
	for i := range 20 {
		name := fmt.Sprintf("capa%d", i)
		f.subnets = append(f.subnets, subnet("subnet-"+name, "vpc-web", "eu-west-1a", false, k8sTag+name, "owned"))
		f.groups = append(f.groups, resolve.SecurityGroup{ID: "sg-" + name, Tags: map[string]string{capaTag + name: "owned", roleTag: "node"}})
		c := intent.Cluster{TagName: name}
		requests = append(requests, resolve.Request{Lookup: intent.Lookup{Kind: intent.Subnets}, Cluster: c},
			resolve.Request{Lookup: intent.Lookup{Kind: intent.CoreSecurityGroups}, Cluster: c})
	}
	for i := range 30 {
		id := fmt.Sprintf("ami-%d", i)
		f.images = append(f.images, image(id, id, "x86_64", "2026-01-01"))
		f.parameters["/p/"+id] = id
		requests = append(requests, resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByParameter, Name: "/p/" + id}},
			resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "1.31", InstanceType: "m5.large"}})
	}
	return requests
}

func TestQuestionsAreAskedTogether(t *testing.T) {
	f := world()
	c := newClock()
	r := resolve.New(f, c.now)
	requests := fleet(f)
	ask := func() map[string]int {
		t.Helper()
		answers, err := r.Answer(context.Background(), requests)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			if a.Problem != "" {
				t.Fatalf("%s: %s", requests[i].Lookup, a.Problem)
			}
		}
		return f.take()
	}
	want := map[string]int{
		"Parameters":     2, // the second for what the instance type decides
		"Images":         2,
		"Architectures":  1,
		"Cluster":        50,
		"Subnets":        2, // by tag, and by id once the clusters are known
		"SecurityGroups": 1,
		"Role":           1,
	}
	if d := cmp.Diff(want, ask()); d != "" {
		t.Errorf("first calls (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int(nil), ask()); d != "" {
		t.Errorf("calls while everything is fresh (-want +got):\n%s", d)
	}
	steps := []struct {
		after time.Duration
		want  map[string]int
	}{
		{time.Minute, map[string]int{"Cluster": 50}},
		{5 * time.Minute, map[string]int{"Cluster": 50, "Subnets": 1, "SecurityGroups": 1}},
		{10 * time.Minute, map[string]int{"Cluster": 50, "Subnets": 1, "SecurityGroups": 1, "Parameters": 1}},
		{time.Hour, map[string]int{"Cluster": 50, "Subnets": 1, "SecurityGroups": 1, "Parameters": 1, "Role": 1}},
		{24 * time.Hour, map[string]int{"Cluster": 50, "Subnets": 2, "SecurityGroups": 1, "Parameters": 2, "Role": 1, "Images": 2, "Architectures": 1}},
	}
	for _, s := range steps {
		c.t = c.t.Add(s.after)
		got := ask()
		for op, n := range s.want {
			if got[op] == 0 || (op == "Cluster" && got[op] != n) {
				t.Errorf("after %s: %d calls of %s, want %d", s.after, got[op], op, n)
			}
		}
		for op := range got {
			if s.want[op] == 0 {
				t.Errorf("after %s: %d calls of %s although its facts are fresh", s.after, got[op], op)
			}
		}
	}
}

func BenchmarkAnswerFromFacts(b *testing.B) {
	f := world()
	r := resolve.New(f, newClock().now)
	requests := fleet(f)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Answer(context.Background(), requests); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(requests)), "ns/answer")
}
