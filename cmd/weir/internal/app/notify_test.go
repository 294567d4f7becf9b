package app

import (
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/status/notify"
)

// TestNotifications runs a daemon with a receiver that verifies what it gets, and
// one that a reload puts in its place.
func TestNotifications(t *testing.T) {
	t.Parallel()
	const secret = "a-secret-for-notifications"
	var mu sync.Mutex
	got := map[string][]string{} // kinds by path
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		want := notify.Sign([]byte(secret), r.Header.Get(notify.HeaderTimestamp), body)
		var n notify.Message
		if err != nil || !hmac.Equal([]byte(want), []byte(r.Header.Get(notify.HeaderSignature))) || json.Unmarshal(body, &n) != nil {
			t.Errorf("a notification is not as it should be: %s", body)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		got[r.URL.Path] = append(got[r.URL.Path], n.Event.Kind)
	}))
	defer receiver.Close()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 3)}))
	first := w.repo.Commit("first")
	file := filepath.Join(w.dir, "notify-secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := w.config()
	c.Notify = []config.Notify{{URL: receiver.URL + "/one", SecretFile: file, Events: []string{"group-created", "template-created"}}}
	next := w.config()
	next.Notify = []config.Notify{{URL: receiver.URL + "/two", SecretFile: file}}
	a, stop := w.startConfig(c, func() (*config.Config, error) { return next, nil })
	kinds := func(path string) map[string]int {
		mu.Lock()
		defer mu.Unlock()
		out := map[string]int{}
		for _, kind := range got[path] {
			out[kind]++
		}
		return out
	}
	converged(t, a, first, 1)
	eventually(t, "notifications", func() string {
		if k := kinds("/one"); len(k) != 2 || k["group-created"] != 1 || k["template-created"] != 1 {
			return fmt.Sprint(k)
		}
		return ""
	})
	a.reloadDue.send()
	eventually(t, "the reload", func() string {
		if k := kinds("/two"); k["configuration-reloaded"] != 1 {
			return fmt.Sprint(k)
		}
		return ""
	})
	w.repo.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 4)}))
	second := w.repo.Commit("second")
	converged(t, a, second, 1)
	eventually(t, "notifications of the second commit", func() string {
		if k := kinds("/two"); k["revision-seen"] != 1 || k["group-updated"] != 1 {
			return fmt.Sprint(k)
		}
		return ""
	})
	stop()
	if k := kinds("/one"); k["group-updated"] != 0 || len(k) != 2 {
		t.Errorf("the first receiver got %v", k)
	}
}
