package app

import (
	"cmp"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/crew"
	"github.com/weir-gitops/weir/status/forge"
)

// setHooks takes the webhooks that the configuration wants.
func (g *generation) setHooks() {
	hooks := map[string]forge.Hook{}
	for _, f := range g.config.Forges {
		if f.WebhookSecretFile == "" {
			continue
		}
		follower := g.followers[f.Source]
		h := forge.Hook{
			Kind: f.Profile().Kind, SecretFile: f.WebhookSecretFile, Address: cmp.Or(f.URL, follower.config.URL), Source: follower,
		}
		if w := g.watcher(f.Source); w != nil {
			h.Pulls, h.Self = w, w.Self()
			if g.app.crew != nil {
				h.Pulls = pullHints{g, f.Source}
			}
		}
		hooks[f.Source] = h
	}
	g.app.hooks.Set(hooks)
}

// Follows reports whether the source follows a ref. It errs towards yes: a look at
// the source is cheap.
func (f *follower) Follows(ref string) bool {
	switch r := f.config.Ref; {
	case r.Branch != "":
		return ref == "refs/heads/"+r.Branch
	case r.Tag != "":
		return ref == "refs/tags/"+r.Tag
	case r.SemVer != "":
		return strings.HasPrefix(ref, "refs/tags/")
	case r.Name != "":
		return ref == r.Name
	case r.Commit != "":
		return f.At() == "" // any ref may bring it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.view.Snapshot.Ref; strings.HasPrefix(at, "refs/heads/") {
		return ref == at
	}
	return strings.HasPrefix(ref, "refs/heads/")
}

// At is the commit that the source was last seen at.
func (f *follower) At() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view.Snapshot.Revision
}

// isAt reports whether the source was read at a commit, and nothing was wrong since: it was if a reload took the commit over, or if this daemon could not
// read the repository while it led.
func (f *follower) isAt(commit string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view.Err == nil && f.view.Snapshot.Revision == commit
}

// nudgeSources makes every source look at its repository, and at its pull requests.
func (g *generation) nudgeSources() {
	for name, f := range g.followers {
		if !f.leads() {
			continue
		}
		f.git.Nudge()
		if w := g.watcher(name); w != nil {
			w.Changed(0)
		}
	}
}

// Nudge makes the source look at its repository, here or in the daemon that reads it.
func (f *follower) Nudge() {
	if f.leads() {
		f.git.Nudge()
		return
	}
	f.crew.AskSoon(crew.Ask{Source: f.config.Name})
}
