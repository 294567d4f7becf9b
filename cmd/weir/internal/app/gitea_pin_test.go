package app

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/redact"
)

// TestGiteaPin: machines of a newly published image never come up, nobody committed anything,
// weir opens one pull request that pins the image before, and merging it on Gitea puts all
// right.
func TestGiteaPin(t *testing.T) {
	g := newGiteaProposals(t, "paul", "write:repository")
	g.extra = otherTargets
	good := []string{g.newImage(1), g.newImageElsewhere(1)}
	g.clone.Write(followingInWaves(t))
	first := g.clone.Push("main", "first")
	c := g.pushes(config.Revert)
	// The second daemon has none of the answers that the first one keeps for a while.
	a, err := New(t.Context(), Options{Config: c, Version: "test", Secrets: &redact.Registry{}, Logger: slog.New(slog.DiscardHandler), Getenv: func(name string) string {
		if name == "HOME" {
			return g.dir
		}
		return g.env[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	targets := []string{"prod", "second", "third"}
	for _, target := range targets {
		targetConverged(t, a, target, first)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{g.newImage(2), g.newImageElsewhere(2)} {
		g.aws.Faults().Launches.Add(ec2.LaunchFault{ImageID: bad})
	}
	a = g.run(c, "push", "pull_request")
	heldBy(t, a, "second", first, step.HeldStopped, "weir reconcile second --retry")
	p := g.only()
	if !strings.HasPrefix(p.Head.Ref, "weir/pin-") || !strings.Contains(p.Body, good[0]) || !strings.Contains(p.Body, good[1]) {
		t.Errorf("%+v", p)
	}
	g.finally(first, "fleet/revert", "success", fmt.Sprint("#", p.Number))
	merged := g.merge(p.Number)
	for _, target := range targets {
		targetConverged(t, a, target, merged)
	}
	if n := len(g.pulls()); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}
