package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/commands"
)

const hookSecret = "a-webhook-secret-of-the-fleet"

// hooked is a configuration whose source is polled each hour, and that takes webhooks.
func (w *world) hooked() *config.Config {
	w.t.Helper()
	file := filepath.Join(w.dir, "webhook-secret")
	if err := os.WriteFile(file, []byte(hookSecret+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	c := w.config()
	c.Interval, c.Sources[0].Interval = time.Hour, time.Hour
	c.Forges[0].WebhookSecretFile = file
	// The fake forge does not serve the repository under the name that it has there.
	c.Forges[0].URL = w.forge.url + "/platform/fleet"
	return c
}

// deliver sends a push as Gitea does and returns the status. It may say for whom.
func deliver(a *App, delivery, commit, secret string, from ...string) (int, error) {
	return deliverEvent(a, "push", delivery, fmt.Sprintf(`{"ref":"refs/heads/main","after":"%s","repository":{"full_name":"platform/fleet"}}`, commit), secret, from...)
}

func deliverEvent(a *App, event, delivery, body, secret string, from ...string) (int, error) {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	req, err := http.NewRequest(http.MethodPost, "http://"+a.Addr()+"/hooks/pools", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Gitea-Event", event)
	req.Header.Set("X-Gitea-Delivery", delivery)
	req.Header.Set("X-Gitea-Signature", hex.EncodeToString(mac.Sum(nil)))
	for _, at := range from {
		req.Header.Add("X-Forwarded-For", at)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	return resp.StatusCode, err
}

// looks are the times that the repository was asked for its refs, fetches those
// that it was asked for objects.
func looks(repo *sourcetest.Repo) (looks, fetches int) {
	for _, r := range repo.Requests() {
		switch {
		case strings.Contains(r.Path, "info/refs"):
			looks++
		case r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/git-upload-pack"):
			fetches++
		}
	}
	return looks, fetches
}

// behind is a daemon that has converged at a first commit, and is told of the second
// one by nobody.
func behind(t *testing.T) (w *world, a *App, second string) {
	t.Helper()
	w = newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.startConfig(w.hooked(), nil)
	t.Cleanup(stop)
	converged(t, a, first, 1)
	w.repo.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 4)}))
	return w, a, w.repo.Commit("second")
}

func TestWebhookStartsAPass(t *testing.T) {
	t.Parallel()
	w, a, second := behind(t)
	if code, err := deliver(a, "forged", second, "no-such-secret-is-known"); code != http.StatusUnauthorized || err != nil {
		t.Errorf("a forged webhook: %d, %v", code, err)
	}
	before, fetchedBefore := looks(w.repo)
	began := time.Now()
	if code, err := deliver(a, "d-1", second, hookSecret); code != http.StatusAccepted || err != nil {
		t.Fatalf("%d, %v", code, err)
	}
	answered := time.Since(began)
	eventually(t, "the fetch", func() string {
		if a.gen.Load().followers["pools"].At() != second {
			return "the source is not at the second commit"
		}
		return ""
	})
	seen := time.Since(began)
	converged(t, a, second, 1)
	t.Logf("webhook answered in %s, source read in %s, converged in %s", answered.Round(time.Microsecond), seen.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))

	// A storm of the same news: nothing is looked at again.
	var wg sync.WaitGroup
	codes := map[int]int{}
	var mu sync.Mutex
	for worker := range 8 {
		wg.Go(func() {
			for i := range 125 {
				code, err := deliver(a, fmt.Sprintf("s-%d-%d", worker, i), second, hookSecret)
				mu.Lock()
				codes[code]++
				if err != nil {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if codes[http.StatusOK] != 1000 {
		t.Errorf("answers: %v", codes)
	}
	after, fetched := looks(w.repo)
	if after-before != 1 || fetched-fetchedBefore != 1 {
		t.Errorf("%d looks and %d fetches for one push, want one each", after-before, fetched-fetchedBefore)
	}
	metrics := get(t, a, "/metrics")
	for _, want := range []string{
		`weir_webhooks_total{forge="gitea",result="accepted"} 1`, `weir_webhooks_total{forge="gitea",result="repeated"} 1000`, `weir_webhooks_total{forge="gitea",result="unsigned"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// A push is seen at once where somebody asks for it, however long the interval is.
func TestReconcileLooksAtGit(t *testing.T) {
	t.Parallel()
	_, a, second := behind(t)
	command(t, a, commands.ReconcilePath, gates.Request{})
	converged(t, a, second, 1)
}

// TestWebhookStorm sends a thousand deliveries of a thousand commits, of which only
// the last one is there: each look is worth it, so they are few, and one fetches.
func TestWebhookStorm(t *testing.T) {
	t.Parallel()
	w, a, second := behind(t)
	before, fetchedBefore := looks(w.repo)
	began := time.Now()
	for i := range 999 {
		if code, err := deliver(a, fmt.Sprint(i), fmt.Sprintf("%040x", i+1), hookSecret); code/100 != 2 || err != nil {
			t.Fatalf("delivery %d: %d, %v", i, code, err)
		}
	}
	if code, err := deliver(a, "last", second, hookSecret); code/100 != 2 || err != nil {
		t.Fatalf("%d, %v", code, err)
	}
	lasted := time.Since(began)
	converged(t, a, second, 1)
	after, fetched := looks(w.repo)
	if fetched-fetchedBefore != 1 {
		t.Errorf("%d fetches, want one", fetched-fetchedBefore)
	}
	// One at once, and at most one each second from then on.
	if most := 2 + int(time.Since(began)/time.Second); after-before > most {
		t.Errorf("%d looks in %s, want at most %d", after-before, time.Since(began), most)
	}
	t.Logf("1,000 deliveries in %s: %d looks, %d fetch", lasted.Round(time.Millisecond), after-before, fetched-fetchedBefore)
}

// TestWebhooksCountAgainstTheirOrigin: behind a proxy that the configuration names,
// a stranger who guesses holds up nobody else; what anybody else says of where a
// delivery comes from is not believed.
func TestWebhooksCountAgainstTheirOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 3)}))
	commit := w.repo.Commit("first")
	send := func(a *App, secret string, from ...string) (codes map[int]int) {
		codes = map[int]int{}
		for i, at := range from {
			code, err := deliver(a, fmt.Sprint(i), commit, secret, at)
			if err != nil {
				t.Fatal(err)
			}
			codes[code]++
		}
		return codes
	}
	stranger := slices.Repeat([]string{"198.51.100.7, 203.0.113.9"}, 60) // the first is what the stranger sent
	c := w.hooked()
	c.Access.Proxy = access.Proxy{Addresses: []string{"127.0.0.1"}, UserHeader: "X-Forwarded-User", GroupsHeader: "X-Forwarded-Groups"}
	c.Access.Rules = []access.Rule{{Users: []string{"*"}, Role: access.RoleRead}}
	a, stop := w.startConfig(c, nil)
	if codes := send(a, "no-such-secret-is-known", stranger...); codes[http.StatusTooManyRequests] < 20 {
		t.Errorf("a stranger behind the proxy: %v", codes)
	}
	if codes := send(a, hookSecret, "198.51.100.7"); codes[http.StatusTooManyRequests] > 0 {
		t.Errorf("the forge behind the same proxy: %v", codes)
	}
	stop()

	a, stop = w.startConfig(w.hooked(), nil)
	defer stop()
	var invented []string
	for i := range 60 {
		invented = append(invented, fmt.Sprintf("203.0.113.%d", i))
	}
	if codes := send(a, "no-such-secret-is-known", invented...); codes[http.StatusTooManyRequests] < 20 {
		t.Errorf("a stranger who invents addresses: %v", codes)
	}
}

func TestGenericWebhookWithoutStatuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 3)}))
	first := w.repo.Commit("first")
	c := w.hooked()
	c.Forges[0] = config.Forge{Type: "generic", Source: "pools", WebhookSecretFile: c.Forges[0].WebhookSecretFile}
	a, stop := w.startConfig(c, nil)
	defer stop()
	converged(t, a, first, 1)
	if a.gen.Load().publisher.commits != nil {
		t.Error("a generic forge has commit statuses")
	}
	w.repo.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 4)}))
	second := w.repo.Commit("second")
	mac := hmac.New(sha256.New, []byte(hookSecret))
	req, err := http.NewRequest(http.MethodPost, "http://"+a.Addr()+"/hooks/pools", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusAccepted {
		t.Fatalf("%d, %v", resp.StatusCode, err)
	}
	converged(t, a, second, 1)
}

func get(t *testing.T, a *App, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + a.Addr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
