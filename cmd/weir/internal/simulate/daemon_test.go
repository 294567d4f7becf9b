package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/app"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
)

// daemon is one process of weir, from its start until it stops or is killed.
type daemon struct {
	name   string
	dir    string
	app    *app.App
	page   *listener
	dead   chan struct{}
	cancel context.CancelFunc
	done   chan error
}

const configuration = `apiVersion: weir.dev/v1alpha1
kind: Config
instance: fleet
stateDir: state
listen: 127.0.0.1:0
interval: 10m
sources:
- {name: pools, url: http://git.example.com/fleet.git, ref: {branch: main}, interval: 5m}
forges:
- {type: gitea, url: http://forge.example.com/platform/fleet, tokenFile: token}
targets:
- name: prod
  path: overlays/prod
  region: eu-west-1
  prune: {enabled: true, limit: 50%}
`

// start starts a daemon with the state of a directory.
func (w *World) start(dir string) {
	c, faults := config.Parse(filepath.Join(dir, "weir.yaml"), []byte(configuration), config.Env{Getenv: os.Getenv})
	if c == nil {
		w.t.Fatal(faults)
	}
	d := &daemon{name: "fleet", dir: dir, page: newListener(), dead: make(chan struct{}), done: make(chan error, 1)}
	w.daemon = d
	ctx, cancel := context.WithCancel(w.t.Context())
	d.cancel = cancel
	a, err := app.New(ctx, app.Options{
		Config: c, Logger: w.logger(), Version: "simulated", Rand: rand.New(rand.NewPCG(w.o.Seed, uint64(w.step))).Float64, //nolint:gosec // It is repeated on purpose.
		Getenv: func(name string) string {
			if name == "HOME" {
				return dir
			}
			return ""
		},
		Watch: func(ctx context.Context, _ []string, _ func()) error {
			<-ctx.Done()
			return nil
		},
		Listen: func(context.Context, string, string) (net.Listener, error) { return d.page, nil },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	d.app = a
	go func() { d.done <- a.Run(ctx) }()
	w.trace("%s started", d.name)
}

// stop stops the daemon as a service manager does.
func (w *World) stop() {
	d := w.daemon
	if d == nil {
		return
	}
	d.cancel()
	w.daemon = nil
	if err := w.await(d); err != nil {
		w.fail("the daemon ended with %v", err)
	}
	w.trace("%s stopped", d.name)
}

// await lets calls be answered until the daemon has ended.
func (w *World) await(d *daemon) error {
	for {
		w.run(time.Now().Add(time.Second))
		select {
		case err := <-d.done:
			return err
		default:
		}
	}
}

// kill ends a daemon in the middle of what it does: no call of it has an effect any more,
// and the next one finds the files as they are now. The process starts again later.
func (w *World) kill(d *daemon, r *rand.Rand) {
	if d != w.daemon {
		return
	}
	next := w.t.TempDir()
	if err := os.CopyFS(next, os.DirFS(d.dir)); err != nil {
		w.t.Fatal(err)
	}
	close(d.dead)
	d.cancel()
	w.daemon = nil
	w.trace("%s killed", d.name)
	w.at(time.Duration(31+r.IntN(600))*time.Second, func() {
		select {
		case <-d.done: // what it says is of no interest
		default:
			w.fail("a daemon of which nothing is answered does not end")
			<-d.done
		}
		_ = os.RemoveAll(d.dir)
		w.start(next)
	})
}

// command sends a command, as weir suspend, resume, approve and reconcile do.
func (w *World) command(path string, in gates.Request) {
	d := w.daemon
	if d == nil {
		return
	}
	in.By = "alice"
	body, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1"+path, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(commands.Header, "1")
	go func() {
		defer cancel()
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.page.dial(ctx) }}}
		resp, err := c.Do(r)
		if err != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode >= http.StatusInternalServerError {
			w.fail("%s: %s: %s", path, resp.Status, text)
		}
	}()
}
