package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
)

// TestGiteaAccept: somebody changed a size beside Git, weir opens a pull request that keeps it on
// Gitea, moves it on with AWS, and merging it leaves nothing to do.
func TestGiteaAccept(t *testing.T) {
	g := newGiteaProposals(t, "anna", "write:repository", "write:issue")
	g.clone.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := g.clone.Push("main", "first")
	a := g.run(g.pushes(config.Accept), "push", "pull_request")
	converged(t, a, first, 1)
	if _, err := gates.Suspend(a.recorder, a.daemon, gates.Request{Target: "prod", Pool: "web", Reason: "load", For: "1h", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	asked := func(size int) commands.Accepted {
		t.Helper()
		g.query("autoscaling", fmt.Sprint("UpdateAutoScalingGroup&AutoScalingGroupName=web&MaxSize=", size))
		var got commands.Accepted
		eventually(t, "a pull request", func() string {
			var err error
			if got, err = a.site.accept(t.Context(), commands.AcceptRequest{Target: "prod", Pool: "web", By: "ann", Fields: []string{"maxSize"}}); err != nil {
				return err.Error()
			}
			return ""
		})
		return got
	}
	got := asked(9)
	if again := asked(8); again.Number != got.Number || again.Branch != got.Branch {
		t.Errorf("%+v, and then %+v", got, again)
	}
	p := g.only()
	if p.Number != got.Number || p.Head.Ref != got.Branch || !strings.Contains(p.Body, "`maxSize` is `8`") || p.Title != "Keep AWS's values of pool default/web of prod" {
		t.Errorf("%+v", p)
	}
	merged := g.merge(got.Number)
	followed(t, a, merged)
	g.aws.ResetCalls()
	if _, err := gates.Resume(a.recorder, a.daemon, gates.Request{Target: "prod", Pool: "web", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	converged(t, a, merged, 1)
	for _, call := range g.writes() {
		if strings.Contains(call, "UpdateAutoScalingGroup") {
			t.Errorf("AWS was put right: %s", call)
		}
	}
}
