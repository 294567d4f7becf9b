package app

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestReadyBeforeTheFirstPass: with an account that never answers, the service manager
// hears that weir is ready, and how far the first pass is.
func TestReadyBeforeTheFirstPass(t *testing.T) {
	dir, err := os.MkdirTemp("", "sd") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := l.Read(buf)
			if err != nil {
				return
			}
			mu.Lock()
			told = append(told, string(buf[:n]))
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "s"))
	w := newWorld(t, quickAWS())
	w.repo.Write(w.stuck(2, silent(t)))
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	eventually(t, "the first pass is told", func() string {
		mu.Lock()
		defer mu.Unlock()
		text := strings.Join(told, "\n")
		ready, status := strings.Index(text, "READY=1"), strings.Index(text, "STATUS=first pass: 1 of 3 targets done; targets: ")
		if ready < 0 || status < ready || !strings.Contains(text[status:], "1 converged") {
			return text
		}
		return ""
	})
	if a.Ready() {
		t.Error("every target had its first pass, and this tests nothing")
	}
}
