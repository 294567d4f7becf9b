package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/status/wording"
)

// told waits until a commit's status is as wanted.
func (w *world) told(sha, context, want, text string) {
	w.t.Helper()
	eventually(w.t, context+" of "+wording.Short(sha), func() string {
		state, description := w.forge.last(sha, context)
		if state != want || !strings.Contains(description, text) {
			return fmt.Sprintf("%s: %s", state, description)
		}
		return ""
	})
}

// A commit that was refused, and that a reload lets through, is followed on its targets:
// it is not a commit that affects none.
func TestARefusedCommitThatIsAppliedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	alice := sourcetest.NewSSHKey(t)
	allowed := filepath.Join(w.dir, "allowed_signers")
	if err := os.WriteFile(allowed, []byte("alice@example.com "+string(ssh.MarshalAuthorizedKey(alice.PublicKey()))), 0o600); err != nil {
		t.Fatal(err)
	}
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("unsigned")
	strict, lax := w.config(), w.config()
	strict.Sources[0].Verify = signature.Policy{Mode: signature.Commit, SSH: signature.SSH{AllowedSignersFile: allowed}}
	lax.Targets[0].Suspend = true
	next := lax
	a, stop := w.startConfig(strict, func() (*config.Config, error) { return next, nil })
	defer stop()
	w.told(first, "fleet/apply", "failure", "not applied")
	a.reloadDue.send()
	w.told(first, "fleet/apply", "pending", "wait for the end of a suspension")
	w.told(first, "fleet/apply/prod", "pending", "wait for the end of a suspension")
	next = w.config()
	a.reloadDue.send()
	w.told(first, "fleet/apply", "success", "1 pool created")
	w.told(first, "fleet/apply/prod", "success", "1 pool created")
	if got := w.forge.states(first, "fleet/apply"); strings.Contains(got[:strings.LastIndex(got, " ")], "success") {
		t.Errorf("told too early: %s", got)
	}
}

// A reload while Git does not answer takes no target away, as weir does not know which
// directories there are.
func TestAReloadWithoutGitForgetsNoTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	to, err := url.Parse(w.repo.URL())
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool
	gone := make(chan struct{})
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	door := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away.Load() {
			<-gone
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	defer door.Close()
	defer close(gone)
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	conf := func() *config.Config {
		c := w.config()
		c.Sources[0].URL = door.URL + to.Path
		c.Targets[0].Name, c.Targets[0].Path, c.Targets[0].Suspend = "{1}", "overlays/*", true
		return c
	}
	a, stop := w.startConfig(conf(), func() (*config.Config, error) { return conf(), nil })
	defer stop()
	w.told(first, "fleet/apply/prod", "pending", "the end of a suspension")
	away.Store(true)
	a.reloadDue.send()
	deadline := time.Now().Add(follow.FirstSource + 2*time.Second)
	for time.Now().Before(deadline) {
		if state, text := w.forge.last(first, "fleet/apply"); state != "pending" {
			t.Fatalf("%s: %s; %s", state, text, w.forge.states(first, "fleet/apply/prod"))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Without a commit of the source at hand, nobody knows whether a target of a pattern is
// gone; one that no pattern gives is.
func TestTargetsThatNobodyCanList(t *testing.T) {
	t.Parallel()
	before := []fleet.Target{{Name: "dev", Source: "pools"}, {Name: "lab-1", Source: "pools"}, {Name: "prod-1", Source: "pools"}}
	now := []fleet.Target{{Name: "dev", Source: "pools"}, {Name: "prod-{1}", Source: "pools", Unlisted: true}}
	var names []string
	for _, target := range withUnlisted(before, now) {
		names = append(names, target.Name)
	}
	if want := []string{"dev", "prod-1", "prod-{1}"}; !slices.Equal(names, want) {
		t.Errorf("targets are %v, want %v", names, want)
	}
	if again := withUnlisted(withUnlisted(before, now), now); len(again) != len(names) {
		t.Errorf("targets become %v", again)
	}
}
