package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/app"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/engine"
	"github.com/weir-gitops/weir/reconciler/coord"
)

// Requests of people, and the key of digests, survive the move from one weir to several and back. weir no longer uses the old place, and does not
// move a place that a daemon uses.
func TestStateMovesToAnEngineAndBack(t *testing.T) {
	dir := t.TempDir()
	write := func(name, more string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		text := "apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: fleet\nstateDir: state\nlisten: 127.0.0.1:1\nsources: [{name: s, url: 'https://h/o/r'}]\n" +
			"targets: [{name: t, region: eu-west-1}, {name: u, path: u, region: eu-west-1}]\n" + more
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	if err := os.WriteFile(filepath.Join(dir, "keys"), []byte("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := write("one.yaml", "")
	several := write("several.yaml", "coordination: {keysFile: keys, etcd: {endpoints: ['"+serveEtcd(t)+"']}}\n")
	weir := func(code int, want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		got := run(t.Context(), args, surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }})
		if all := out.String() + errs.String(); got != code || !strings.Contains(all, want) {
			t.Fatalf("weir %s: code %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, want, all)
		}
	}
	weir(exitOK, "suspended", "suspend", "t", "--reason", "why", "--for", "1h", "--config", one)
	weir(exitOK, "", "approve", strings.Repeat("a", 64), "--config", one)
	key, err := app.DigestKey(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	weir(exitError, "both keep their records in", "state", "move", "--config", one, "--to", one)
	weir(exitOK, "is in etcd at http://127.0.0.1:", "state", "move", "--config", one, "--to", several)
	weir(exitOK, "is in etcd at http://127.0.0.1:", "state", "move", "--config", one, "--to", several) // it was done
	weir(exitError, "were moved to etcd at", "suspend", "u", "--reason", "why", "--for", "1h", "--config", one)
	weir(exitError, "were moved to etcd at", "run", "--config", one)
	weir(exitOK, "target t goes on", "resume", "t", "--config", several)
	weir(exitOK, "suspended", "suspend", "u", "--reason", "why", "--for", "1h", "--config", several)

	c, faults := config.Parse(several, mustRead(t, several), config.Env{Getenv: os.Getenv})
	if c == nil {
		t.Fatal(faults)
	}
	e, err := engine.Open(t.Context(), c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	s, err := e.Join(t.Context(), coord.Member{Name: "host-1"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	weir(exitError, "stop all daemons of the instance first: host-1", "state", "move", "--config", several, "--to", one)
	weir(exitOK, "", "approve", strings.Repeat("b", 64), "--config", several)
	if err := s.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "state", "digest.key")); err != nil {
		t.Fatal(err)
	}
	weir(exitOK, fmt.Sprintf("is in the state directory %s", filepath.Join(dir, "state")), "state", "move", "--config", several, "--to", one)
	weir(exitError, "were moved to the state directory", "resume", "u", "--config", several)
	weir(exitOK, "target u goes on", "resume", "u", "--config", one)
	if back, err := app.DigestKey(filepath.Join(dir, "state")); err != nil || !bytes.Equal(back, key) {
		t.Errorf("another key: %v", err)
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
