package app

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/giteatest"
)

// giteaProposals is a repository on a real Gitea with a user that may push and open pull requests,
// and nothing else.
type giteaProposals struct {
	*giteaWorld
	pusher *giteatest.User
}

func newGiteaProposals(t *testing.T, owner string, scopes ...string) *giteaProposals {
	t.Helper()
	g := &giteaProposals{giteaWorld: newGiteaWorld(t, giteatest.New(t), owner, quickAWS())}
	g.pusher = g.server.User(owner + "-pusher")
	g.repo.Grant(g.pusher, "write")
	g.put("push-token", g.pusher.Token(scopes...))
	return g
}

// pushes is a configuration in which weir may push for something.
func (g *giteaProposals) pushes(what string) *config.Config {
	g.t.Helper()
	c := g.config()
	c.Forges[0].Push = config.Push{TokenFile: filepath.Join(g.dir, "push-token"), For: []string{what}, Author: "weir <weir@example.com>"}
	return c
}

type giteaPull struct {
	Number             int64
	Title, Body, State string
	Head               struct{ Ref string }
	User               struct{ Login string }
}

// pulls are all pull requests that there ever were, the newest first.
func (g *giteaProposals) pulls() (list []giteaPull) {
	g.t.Helper()
	code, text := g.owner.Do(http.MethodGet, g.repo.Path("/pulls?state=all&sort=newest"), nil, &list)
	if code != http.StatusOK && code != http.StatusNotFound { // for a moment after the first push
		g.t.Fatal(text)
	}
	return list
}

// only waits for the one pull request that there is.
func (g *giteaProposals) only() (p giteaPull) {
	g.t.Helper()
	eventually(g.t, "a pull request", func() string {
		list := g.pulls()
		if len(list) != 1 {
			return fmt.Sprintf("%d pull requests", len(list))
		}
		p = list[0]
		return ""
	})
	return p
}

// merge merges a pull request, and gives what the followed branch is at then.
func (g *giteaProposals) merge(number int64) string {
	g.t.Helper()
	g.repo.Merge(g.owner, number, "merge")
	g.clone.Git("fetch", "--quiet", "origin", "main")
	return g.clone.Git("rev-parse", "FETCH_HEAD")
}
