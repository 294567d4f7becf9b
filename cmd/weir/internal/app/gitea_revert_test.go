package app

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/giteatest"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/step"
)

// TestGiteaRevert: machines with the new type never come up, weir opens one pull request with a user that may do nothing else, and merging it on Gitea
// puts all right.
func TestGiteaRevert(t *testing.T) {
	s := giteatest.New(t)
	g := newGiteaWorld(t, s, "rita", quickAWS())
	pusher := s.User("rita-pusher")
	g.repo.Grant(pusher, "write")
	g.extra = otherTargets
	g.put("push-token", pusher.Token("write:repository"))
	spec := "  waves:\n  - name: canary\n    selector: {targets: [third]}\n"
	g.clone.Write(inWaves("m5.large", spec))
	first := g.clone.Push("main", "first")
	c := g.config()
	c.Forges[0].Push = config.Push{TokenFile: filepath.Join(g.dir, "push-token"), For: []string{config.Revert}, Author: "weir <weir@example.com>"}
	a := g.run(c, "push", "pull_request")
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
	type pull struct {
		Number      int64
		Title, Body string
		Head        struct{ Ref string }
		User        struct{ Login string }
	}
	var list []pull
	opened := func() string {
		list = nil
		g.owner.Must(http.MethodGet, g.repo.Path("/pulls?state=all"), nil, &list)
		if len(list) != 1 {
			return fmt.Sprintf("%d pull requests", len(list))
		}
		return ""
	}
	eventually(t, "a pull request", opened)
	p := list[0]
	if p.Title != `Revert "a bad change"` || p.Head.Ref != "weir/revert-"+bad[:12] || p.User.Login != pusher.Name {
		t.Errorf("%+v", p)
	}
	for _, want := range []string{"default/nodes", "third default/", "overlays/third/pool.yaml"} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("%q is not in the text:\n%s", want, p.Body)
		}
	}
	g.finally(bad, "fleet/revert", "success", fmt.Sprint("#", p.Number))

	g.repo.Merge(g.owner, p.Number, "merge")
	g.clone.Git("fetch", "--quiet", "origin", "main")
	merged := g.clone.Git("rev-parse", "FETCH_HEAD")
	for _, target := range targets {
		targetConverged(t, a, target, merged)
	}
	if got := g.clone.Git("diff", "--name-only", first, merged); got != "README.md" {
		t.Errorf("after the revert %s differs from the first commit", got)
	}
	if wrong := opened(); wrong != "" {
		t.Error(wrong)
	}
}
