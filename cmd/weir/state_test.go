package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/engine"
	"github.com/weir-gitops/weir/cmd/weir/internal/records"
	"github.com/weir-gitops/weir/cmd/weir/internal/statedir"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
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
	key, err := statedir.DigestKey(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	weir(exitError, "both keep their records in", "state", "move", "--config", one, "--to", one)
	weir(exitOK, "in etcd at http://127.0.0.1:", "state", "move", "--config", one, "--to", several)
	weir(exitOK, "in etcd at http://127.0.0.1:", "state", "move", "--config", one, "--to", several) // it was done
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
	// Commands read the engine beside a daemon's session, and are no member.
	event := func(c *config.Config) error {
		store, done, err := records.Open(t.Context(), c)
		if err != nil {
			return err
		}
		at := time.Now()
		return errors.Join(history.New(store, history.Options{}).Append(history.Record{Events: []events.Event{{Time: at, Kind: "drift-found", Target: "t", Text: "somebody changed it"}}}), done())
	}
	if err := event(c); err != nil {
		t.Fatal(err)
	}
	weir(exitOK, "somebody changed it", "history", "--config", several)
	weir(exitOK, "no daemon answers; reading etcd at http://127.0.0.1:", "history", "--config", several)
	read, why, err := records.DigestKey(t.Context(), c)
	if err != nil || why != nil || !bytes.Equal(read, key) {
		t.Errorf("the key as a command reads it: %v, %v", err, why)
	}
	if err := readOnly(t, c); err != nil {
		t.Error(err)
	}
	if alive, err := e.Members(t.Context()); err != nil || len(alive) > 0 {
		t.Errorf("alive: %+v, %v", alive, err)
	}
	gone := write("gone.yaml", "coordination: {keysFile: keys, etcd: {endpoints: ['http://127.0.0.1:1']}}\n")
	weir(exitError, "its history cannot be read: ", "history", "--config", gone)
	weir(exitError, "no move from etcd", "state", "move", "--config", several, "--to", one, "--abort")
	weir(exitOK, fmt.Sprintf("now in the state directory %s", filepath.Join(dir, "state")), "state", "move", "--config", several, "--to", one)
	weir(exitError, "the move is done: move the records back", "state", "move", "--config", several, "--to", one, "--abort")
	weir(exitError, "were moved to the state directory", "history", "--config", several)
	weir(exitError, "were moved to the state directory", "resume", "u", "--config", several)
	weir(exitOK, "target u goes on", "resume", "u", "--config", one)
	if back, err := statedir.DigestKey(filepath.Join(dir, "state")); err != nil || !bytes.Equal(back, key) {
		t.Errorf("another key: %v", err)
	}
}

// readOnly fails unless what Read opens has people's requests, and refuses changes.
func readOnly(t *testing.T, c *config.Config) error {
	t.Helper()
	store, done, err := records.Read(t.Context(), c)
	if err != nil {
		return err
	}
	defer func() { _ = done() }()
	recorder := gates.NewRecorder(store, clock.New().Moment)
	if r := recorder.Read(); r.Lost != nil || len(r.Suspensions) != 1 {
		return fmt.Errorf("read: %+v", r)
	}
	if _, err := recorder.Approve(strings.Repeat("c", 64), "somebody"); err == nil {
		return errors.New("what is only read was written")
	}
	return nil
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
