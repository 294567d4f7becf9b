package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/step"
)

// TestGiteaRevert: machines with the new type never come up, weir opens one pull request with a user that may do nothing else, and merging it on Gitea
// puts all right.
func TestGiteaRevert(t *testing.T) {
	g := newGiteaProposals(t, "rita", "write:repository")
	g.extra = otherTargets
	spec := "  waves:\n  - name: canary\n    selector: {targets: [third]}\n"
	g.clone.Write(inWaves("m5.large", spec))
	first := g.clone.Push("main", "first")
	a := g.run(g.pushes(config.Revert), "push", "pull_request")
	targets := []string{"prod", "second", "third"}
	for _, target := range targets {
		targetConverged(t, a, target, first)
	}

	g.aws.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m6i.large"})
	files := inWaves("m6i.large", spec)
	files["README.md"] = "said along with it"
	g.clone.Write(files)
	bad := g.clone.Push("main", "a bad change")
	heldBy(t, a, "second", bad, step.HeldStopped, "weir reconcile second --retry")
	p := g.only()
	if p.Title != `Revert "a bad change"` || p.Head.Ref != "weir/revert-"+bad[:12] || p.User.Login != g.pusher.Name {
		t.Errorf("%+v", p)
	}
	for _, want := range []string{"default/nodes", "third default/", "overlays/third/pool.yaml"} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("%q is not in the text:\n%s", want, p.Body)
		}
	}
	g.finally(bad, "fleet/revert", "success", fmt.Sprint("#", p.Number))

	merged := g.merge(p.Number)
	for _, target := range targets {
		targetConverged(t, a, target, merged)
	}
	if got := g.clone.Git("diff", "--name-only", first, merged); got != "README.md" {
		t.Errorf("after the revert %s differs from the first commit", got)
	}
	if n := len(g.pulls()); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}
