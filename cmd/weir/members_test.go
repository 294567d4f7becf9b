package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/engine"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/status/members"
)

// serveEtcd runs an etcd as long as the test, and returns its address.
func serveEtcd(t *testing.T) string {
	t.Helper()
	c, any := embed.NewConfig(), url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.Dir, c.UnsafeNoFsync, c.LogLevel = t.TempDir(), true, "fatal"
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{any}, []url.URL{any}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{any}, []url.URL{any}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	s, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	select {
	case <-s.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("etcd does not start")
	}
	return "http://" + s.Clients[0].Addr().String()
}

// Where no daemon answers, who owns what is read from the engine.
func TestMembersAreReadFromTheEngine(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	text := "apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: fleet\nstateDir: state\nlisten: 127.0.0.1:1\nsources: [{name: s, url: 'https://h/o/r'}]\n" +
		"targets: [{name: t, region: eu-west-1}]\ncoordination: {keysFile: keys, etcd: {endpoints: ['" + serveEtcd(t) + "']}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	weir := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(t.Context(), args, surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }})
		return code, out.String(), errs.String()
	}
	code, out, errs := weir("members", "--config", file)
	if code != exitOK || !strings.Contains(out, "No member is alive.") || !strings.Contains(errs, "no daemon answers at 127.0.0.1:1; reading the engine") {
		t.Errorf("nobody has been there: %d\n%s%s", code, out, errs)
	}

	c, faults := config.Parse(file, []byte(text), config.Env{Getenv: os.Getenv})
	if c == nil {
		t.Fatal(faults)
	}
	e, err := engine.Open(t.Context(), c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	s, err := e.Join(t.Context(), coord.Member{Name: "one", Version: "1.2"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	const key = "scope/aws/111111111111/eu-west-1"
	owner, err := s.Take(t.Context(), key, coord.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs = weir("members", "--config", file)
	if code != exitOK || !strings.Contains(out, "one     alive  1 scope") || !strings.Contains(out, key+"  one    0s") {
		t.Errorf("one owns it: %d\n%s%s", code, out, errs)
	}
	if err := s.Release(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	code, out, _ = weir("members", "--config", file, "-o", "json")
	var v members.View
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitOK || v.Engine.Kind != "etcd" || v.Engine.ID == "" || len(v.Owned) != 1 || v.Owned[0].Owner != "" || v.Owned[0].Last != "one" {
		t.Errorf("it was released: %d, %v\n%s", code, err, out)
	}
	// Another instance in the same etcd is not seen.
	if err := os.WriteFile(file, []byte(strings.Replace(text, "instance: fleet", "instance: other", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, errs = weir("members", "--config", file); !strings.Contains(out, "No member is alive.") || strings.Contains(out, key) {
		t.Errorf("another instance: %s%s", out, errs)
	}
}

// What a member says that does not hear of the engine, or whose engine takes no writes, is a fault; one missed answer is not.
func TestMembersOfAnEngineThatIsAway(t *testing.T) {
	for name, tc := range map[string]struct {
		engine members.Engine
		code   int
		says   string
	}{
		"it answers":             {members.Engine{Kind: "etcd", ID: "e", Lag: 0.5}, exitOK, ""},
		"it missed one answer":   {members.Engine{Kind: "etcd", ID: "e", Lag: 1.5, Error: "connection refused"}, exitOK, "note: the last call to the engine failed: connection refused"},
		"it has been away":       {members.Engine{Kind: "etcd", ID: "e", Lag: 31.2, Error: "no leader"}, exitError, "note: the engine has not answered this member for 31s, so it owns nothing, and the output above is from before: no leader"},
		"it is slow":             {members.Engine{Kind: "etcd", ID: "e", Lag: 11}, exitOK, ""},
		"it takes no writes now": {members.Engine{Kind: "etcd", ID: "e", Lag: 0.5, Refused: "database space exceeded"}, exitError, "note: the engine rejects writes, so no member keeps its ownership: database space exceeded"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(members.View{Engine: tc.engine, Members: []members.Member{{Name: "one", Answers: true}}, Owned: []members.Owned{}})
		}))
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"members", "--server", server.URL}, surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }})
		if code != tc.code || strings.TrimSpace(errs.String()) != tc.says {
			t.Errorf("%s: code %d, want %d; %q, want %q", name, code, tc.code, errs.String(), tc.says)
		}
		server.Close()
	}
}
