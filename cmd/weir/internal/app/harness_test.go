package app

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	emuworld "github.com/weir-gitops/weir/reconciler/awsemu/world"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// world is everything around a daemon: a repository over HTTP, an AWS, a forge
// and a state directory.
type world struct {
	t     testing.TB
	repo  *sourcetest.Repo
	aws   *awsemu.Server
	url   string
	forge *fakeForge
	dir   string
	// extra is added to the configuration's target, forgeExtra to its forge, sourceExtra to its source.
	extra, forgeExtra, sourceExtra string
	// before is called ahead of each request to AWS; nil for nothing. log is where
	// daemons log to; nil for nowhere. Both are set before a daemon starts.
	before func(body string)
	log    *slog.Logger
	// signed is before with the region for which the request is signed.
	signed func(region, body string)
	// message is that of the commits of pull requests.
	message string
	// ahead is by how much AWS's clock is ahead of this machine's.
	ahead atomic.Int64
	// env is the daemon's environment beside HOME.
	env map[string]string
	// foreseeing is the next daemon's; 0 as everywhere.
	foreseeing time.Duration
	// engine is what the next daemon shares with others; nil for nothing.
	engine *coord.Engine
	name   string
	// version is the next daemon's, "test" if empty.
	version string
}

func newWorld(t testing.TB, o awsemu.Options) *world {
	t.Helper()
	emu, err := awsemu.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, repo: sourcetest.New(t), aws: emu, dir: t.TempDir(), forge: newFakeForge(t)}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.before != nil || w.signed != nil {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if w.before != nil {
				w.before(string(body))
			}
			if part := strings.Split(r.Header.Get("Authorization"), "/"); w.signed != nil && len(part) > 2 {
				w.signed(part[2], string(body))
			}
		}
		rw.Header().Set("Date", time.Now().Add(time.Duration(w.ahead.Load())).UTC().Format(http.TimeFormat))
		emu.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	if err := os.WriteFile(filepath.Join(w.dir, "token"), []byte("s3cret-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

func quickAWS() awsemu.Options {
	tm := emuworld.Fast()
	tm.InstancePending, tm.InstanceShutdown, tm.RefreshBatch = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	return awsemu.Options{Timings: tm}
}

const configuration = `apiVersion: weir.dev/v1alpha1
kind: Config
instance: fleet
stateDir: state
listen: 127.0.0.1:0
interval: 400ms
aws: {endpoint: %[1]s}
sources:
- {name: pools, url: %[2]s, ref: {branch: main}, interval: 50ms%[6]s}
forges:
- {type: gitea, url: %[3]s/platform/fleet, tokenFile: token%[5]s}
targets:
- name: prod
  path: overlays/prod
  region: eu-west-1
  prune: {enabled: true, limit: 100%%}
%[4]s`

func (w *world) config() *config.Config {
	w.t.Helper()
	text := fmt.Sprintf(configuration, w.url, w.repo.URL(), w.forge.url, w.extra, w.forgeExtra, w.sourceExtra)
	c, faults := config.Parse(filepath.Join(w.dir, "weir.yaml"), []byte(text), config.Env{Getenv: os.Getenv})
	if c == nil {
		w.t.Fatalf("configuration: %v", faults)
	}
	return c
}

// start runs a daemon; stop ends it and must be called.
func (w *world) start() (a *App, stop func()) {
	w.t.Helper()
	return w.startWith(nil)
}

// startWith runs a daemon that reads its configuration again by load.
func (w *world) startWith(load func() (*config.Config, error)) (a *App, stop func()) {
	w.t.Helper()
	return w.startConfig(w.config(), load)
}

func (w *world) startConfig(c *config.Config, load func() (*config.Config, error)) (a *App, stop func()) {
	w.t.Helper()
	a = w.open(c, load)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return a, func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				w.t.Errorf("daemon ended with %v", err)
			}
		case <-time.After(time.Minute):
			w.t.Error("the daemon does not stop")
		}
	}
}

// open makes a daemon that does not run yet.
func (w *world) open(c *config.Config, load func() (*config.Config, error)) *App {
	w.t.Helper()
	log := w.log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a, err := New(w.t.Context(), Options{
		Load:       load,
		Foreseeing: w.foreseeing,
		Config:     c, Logger: log, Version: cmp.Or(w.version, "test"), Engine: w.engine, Member: w.name,
		Getenv: func(name string) string {
			if name == "HOME" {
				return w.dir
			}
			return w.env[name]
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// eventually waits until ok says nothing more is wrong.
func eventually(t testing.TB, what string, wrong func() string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		why := wrong()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, why)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// converged waits until the target has converged at a revision with n pools.
func converged(t testing.TB, a *App, revision string, n int) {
	t.Helper()
	eventually(t, "convergence", func() string {
		s, _ := a.current.Targets.Find("prod")
		if s.Last == nil {
			return "no pass yet"
		}
		if s.Last.Revision != revision || !s.Last.Converged() || len(s.Last.Pools) != n {
			return fmt.Sprintf("revision %q, %d pools, phase %s, error %v, %v", s.Last.Revision, len(s.Last.Pools), s.Phase, s.Last.Err, s.Last.Diagnostics)
		}
		return ""
	})
}

// writes are the operations that changed AWS, in order.
func (w *world) writes() []string {
	var out []string
	for _, c := range w.aws.Calls() {
		if c.Write && c.ErrorCode == "" {
			out = append(out, c.Operation)
		}
	}
	return out
}

// query asks AWS itself, past weir.
func (w *world) query(service, action string) string {
	w.t.Helper()
	version := map[string]string{"ec2": "2016-11-15", "autoscaling": "2011-01-01"}[service]
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("Version="+version+"&Action="+action))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20260101/eu-west-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	rec := httptest.NewRecorder()
	w.aws.ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		w.t.Fatalf("%s: %d %s", action, rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// deletes are the calls that would have deleted something.
func (w *world) deletes() []string {
	var out []string
	for op, n := range w.aws.CallCounts() {
		if strings.Contains(op, ":Delete") && !strings.HasSuffix(op, "Tags") && n > 0 {
			out = append(out, op)
		}
	}
	slices.Sort(out)
	return out
}

// pool is the manifest of a group pool.
func pool(name, instanceType string, maxSize int) string {
	return fleettest.Pool(name, "m5.large", instanceType, "${MAX:=3}", fmt.Sprint(maxSize))
}

// overlay is a kustomization of the given pools below overlays/prod.
func overlay(pools map[string]string) map[string]string {
	files := map[string]string{}
	list := "resources:\n"
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		files["overlays/prod/"+name+".yaml"] = pools[name]
		list += "- " + name + ".yaml\n"
	}
	files["overlays/prod/kustomization.yaml"] = list
	return files
}

// idle are tests whose own connections are closed once they are done: whatever is open then was left by a daemon.
type idle struct{ *testing.M }

func (m idle) Run() int {
	code := m.M.Run()
	if at := clusterStopped.Load(); at != nil {
		time.Sleep(time.Until(at.Add(peersEnd)))
	}
	http.DefaultClient.CloseIdleConnections()
	return code
}

// TestMain runs four times as many tests in parallel as there are processors: mostly they wait for
// passes.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil { // before the command line is read
		panic(err)
	}
	goleak.VerifyTestMain(idle{m})
}
