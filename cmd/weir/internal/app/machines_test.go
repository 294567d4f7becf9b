package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/status/instances"
)

// instance asks a daemon for an instance.
func (w *world) instance(a *App, id string) (out instances.Answer) {
	w.t.Helper()
	code, text := w.get(a, "/api/v1/instances/"+id)
	if err := json.Unmarshal([]byte(text), &out); err != nil || code != 200 {
		w.t.Fatalf("%d %s", code, text)
	}
	return out
}

// instanceIDs are the ids of the instances that a daemon knows.
func instanceIDs(a *App) (out []string) {
	for _, p := range a.current.Targets.Pools() {
		for _, i := range p.Instances {
			out = append(out, i.ID)
		}
	}
	return out
}

// A daemon reads facts about an instance when somebody asks, once. If AWS refuses, the rest is still there.
func TestInstanceWithFacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3), "api": pool("api", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 2)
	ids := instanceIDs(a)
	if len(ids) < 2 {
		t.Fatalf("instances %q", ids)
	}
	remove := w.aws.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "DescribeInstances", Code: "UnauthorizedOperation", Message: "no", Times: -1})
	got := w.instance(a, ids[0])
	if got.AWS != nil || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "UnauthorizedOperation") || got.Target != "prod" || got.Commit == nil || got.Commit.Subject != "first" {
		t.Errorf("refused: %+v", got)
	}
	remove()
	before := w.aws.CallCounts()["ec2:DescribeInstances"]
	for range 3 {
		got = w.instance(a, ids[1])
		if got.AWS == nil || got.AWS.PrivateIP == "" || got.AWS.Image == nil || got.AWS.Image.Name == "" || got.AWS.LaunchedAt.IsZero() || len(got.Notes) > 0 || got.Account == "" {
			t.Errorf("facts: %+v", got)
		}
	}
	if n := w.aws.CallCounts()["ec2:DescribeInstances"] - before; n != 1 {
		t.Errorf("%d reads for three requests", n)
	}
}

// A member answers for the accounts and regions of other members, too.
func TestInstanceOfAnotherMember(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	converged(t, a.App, first, 1)
	converged(t, b.App, first, 1)
	for _, m := range []*App{a.App, b.App} {
		if got := s.instance(m, instanceIDs(m)[0]); got.AWS == nil || got.AWS.PrivateIP == "" || got.Pool != "web" {
			t.Errorf("facts: %+v", got)
		}
	}
}
