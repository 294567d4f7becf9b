package app

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
)

// lookedUp are pools that look for our own images: one that keeps what it has, one that follows
// newer ones, and one that somebody pinned.
func lookedUp(pinned string) map[string]string {
	of := func(name, image, annotations string) string {
		text := strings.Replace(pool(name, "m5.large", 3), "ami: {eksLookupType: AmazonLinux2023}", image, 1)
		at := strings.Index(text, "kind: AWSMachinePool\n")
		return text[:at] + strings.Replace(text[at:], "metadata: {name: "+name+"}", "metadata: {name: "+name+annotations+"}", 1)
	}
	const ours = `imageLookupFormat: "ours-*", imageLookupOrg: "000000000000"`
	return overlay(map[string]string{
		"keeps":   of("keeps", ours, ""),
		"follows": of("follows", ours, ", annotations: {weir.dev/ami-policy: follow}"),
		"pinned":  of("pinned", "ami: {id: "+pinned+"}", ""),
	})
}

// TestANewerImageIsProposed: a whole daemon pins what one pool could have in one pull request, whose
// merge rolls that pool and no other one; the pin is moved by the next one.
func TestANewerImageIsProposed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	all := w.servePushes()
	w.sourceExtra = ", imageUpdates: {every: 24h}"
	first := w.newImage(1)
	w.repo.Write(lookedUp(first))
	main := w.repo.Commit("first")
	a, stop := w.start()
	converged(t, a, main, 3)
	stop()

	second := w.newImage(2)
	_, stop = w.start() // which asks at once
	var p proposed
	opened := func(n int) func() string {
		return func() string {
			list := w.forge.proposals(all)
			if len(list) != n {
				return fmt.Sprint(list)
			}
			p = list[n-1]
			return ""
		}
	}
	eventually(t, "a pull request", opened(1))
	if p.Base != "main" || !strings.HasPrefix(p.Head, "weir/images-ours-") || p.Title != "Pin newer images: ours-*, 1 pool" {
		t.Errorf("%+v", p)
	}
	for _, want := range []string{first + " (ours-1, x86_64, 2026-01-01)", second + " (ours-2, x86_64, 2026-01-02)", "2026-01-02", "`prod default/keeps`", "`prod`: 1 pool with "} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("%q is not in the text:\n%s", want, p.Body)
		}
	}
	if got := w.repo.Git("diff", "--name-only", "main", p.Head); got != "overlays/prod/keeps.yaml" && got != "overlays/prod/kustomization.yaml" {
		t.Errorf("the branch changes %s", got)
	}
	diff := w.repo.Git("diff", "main", p.Head)
	if !strings.Contains(diff, second) || !strings.Contains(diff, "weir.dev/image-family") {
		t.Error(diff)
	}
	w.forge.mu.Lock()
	if w.forge.tokens["token push-t0ken"] {
		t.Error("a status was written with the token that may push")
	}
	w.forge.mu.Unlock()
	stop()

	// Another daemon opens no second one, and merging it rolls the pool.
	a, stop = w.start()
	w.forge.change(100, func(p *fakePull) { p.state, p.merged = "closed", w.repo.Tip(p.branch) })
	w.repo.Git("update-ref", "refs/heads/main", p.Head)
	main = w.repo.Tip("main")
	converged(t, a, main, 3)
	if got := w.versions("keeps"); fmt.Sprint(got) != fmt.Sprint([]string{second, first}) {
		t.Errorf("versions with %v", got)
	}
	if got := w.versions("pinned"); fmt.Sprint(got) != fmt.Sprint([]string{first}) {
		t.Errorf("versions with %v", got)
	}
	stop()

	third := w.newImage(3)
	forget(t, w)
	a, stop = w.start()
	defer stop()
	eventually(t, "a second pull request", opened(2))
	diff = w.repo.Git("diff", "main", p.Head)
	if strings.Count(diff, "\n+") != 2 || strings.Count(diff, "\n-") != 2 || !strings.Contains(diff, second) || !strings.Contains(diff, third) {
		t.Errorf("the pin is not moved: %s", diff)
	}
	converged(t, a, main, 3)
}

// TestAnImageOfAPoolThatIsNotKnown: while a pool cannot be planned, nobody knows that it needs no
// newer image, and the pull request stays open.
func TestAnImageOfAPoolThatIsNotKnown(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"a field that is none":       {"minSize: 1", "minSize: 1\n  mistake: 2"},
		"a file that cannot be read": {"kind: MachinePool", "kind: [MachinePool"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, quickAWS())
			all := w.servePushes()
			w.sourceExtra = ", imageUpdates: {every: 24h}"
			files := lookedUp(w.newImage(1))
			w.repo.Write(files)
			main := w.repo.Commit("first")
			a, stop := w.start()
			converged(t, a, main, 3)
			stop()
			w.newImage(2)
			_, stop = w.start()
			eventually(t, "a pull request", func() string { return strings.Repeat("none", 1-len(w.forge.proposals(all))) })
			stop()
			text := strings.Replace(files["overlays/prod/keeps.yaml"], change[0], change[1], 1)
			if text == files["overlays/prod/keeps.yaml"] {
				t.Fatal(text)
			}
			w.repo.Write(map[string]string{"overlays/prod/keeps.yaml": text})
			second := w.repo.Commit("a mistake")
			a, stop = w.start()
			defer stop()
			followed(t, a, second)
			time.Sleep(2 * time.Second) // in which it was closed
			w.forge.mu.Lock()
			defer w.forge.mu.Unlock()
			if p := w.forge.pulls[0]; p.state != "open" {
				t.Errorf("it is %s", p.state)
				for _, c := range w.forge.comments {
					t.Log(c.body)
				}
			}
		})
	}
}

// forget takes away what a daemon kept, but for its mirror.
func forget(t *testing.T, w *world) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(w.dir, "state")); err != nil {
		t.Fatal(err)
	}
}

// TestGiteaImages: one pull request on a real Gitea, with a user that may do nothing else: merging
// it rolls the pool, a newer image moves the next one on, and closing that ends it.
func TestGiteaImages(t *testing.T) {
	g := newGiteaProposals(t, "ines", "write:repository", "write:issue")
	first := g.newImage(1)
	g.clone.Write(lookedUp(first))
	main := g.clone.Push("main", "first")
	c := g.pushes(config.Images)
	c.Sources[0].ImageUpdates.Every = 3 * time.Second // less than a file may say
	a := g.run(c, "push", "pull_request")
	converged(t, a, main, 3)
	var list []giteaPull // the newest first
	shows := func(n int, image string) func() string {
		return func() string {
			if list = g.pulls(); len(list) != n || !strings.Contains(list[0].Body, image) {
				return fmt.Sprintf("%d pull requests: %+v", len(list), list)
			}
			return ""
		}
	}
	eventually(t, "a pull request", shows(1, g.newImage(2)))
	if p := list[0]; !strings.HasPrefix(p.Head.Ref, "weir/images-ours-") || p.User.Login != g.pusher.Name || !strings.Contains(p.Title, "1 pool") {
		t.Errorf("%+v", p)
	}
	converged(t, a, g.merge(list[0].Number), 3)
	eventually(t, "a second pull request", shows(2, g.newImage(3)))
	fourth := g.newImage(4)
	eventually(t, "it is moved on", shows(2, fourth))
	g.owner.Must(http.MethodPatch, g.repo.Path(fmt.Sprint("/pulls/", list[0].Number)), map[string]any{"state": "closed"}, nil)
	time.Sleep(3 * c.Sources[0].ImageUpdates.Every)
	if wrong := shows(2, fourth)(); wrong != "" || list[0].State != "closed" {
		t.Error(wrong, list)
	}
	eventually(t, "a third pull request", shows(3, g.newImage(5)))
}
