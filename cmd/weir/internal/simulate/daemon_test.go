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
	*member
	dir    string
	app    *app.App
	page   *listener
	dead   chan struct{}
	cancel context.CancelFunc
	done   chan error
}

// start starts a member's process with the state of a directory.
func (m *member) start(dir string) {
	w := m.w
	m.files(dir)
	c, faults := config.Parse(filepath.Join(dir, "weir.yaml"), []byte(m.configuration()), config.Env{Getenv: os.Getenv})
	if c == nil {
		w.t.Fatal(faults)
	}
	d := &daemon{member: m, dir: dir, page: newListener(), dead: make(chan struct{}), done: make(chan error, 1)}
	m.process = d
	ctx, cancel := context.WithCancel(context.WithValue(w.t.Context(), callerKey{}, d))
	d.cancel = cancel
	a, err := app.New(ctx, app.Options{
		Config: c, Logger: w.logger(), Version: "simulated", Rand: w.chance,
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
	w.trace("%s started", m.name)
}

// chance is the same for all that ask at one moment, for the order in which goroutines ask
// is nobody's.
func (w *World) chance() float64 {
	return rand.New(rand.NewPCG(w.o.Seed, uint64(time.Now().UnixNano()))).Float64() //nolint:gosec // It is repeated on purpose.
}

// stop stops the process as a service manager does.
func (m *member) stop() {
	d := m.process
	if d == nil {
		return
	}
	d.cancel()
	m.process = nil
	if err := m.w.await(d); err != nil {
		m.w.fail("%s ended with %v", m.name, err)
	}
	m.w.trace("%s stopped", m.name)
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

// kill ends a process in the middle of what it does: no call of it has an effect any more,
// and the next one finds the files as they are now. It starts again later.
func (w *World) kill(d *daemon, r *rand.Rand) {
	if d != d.process || w.o.Steady {
		return
	}
	next := w.t.TempDir()
	if err := os.CopyFS(next, os.DirFS(d.dir)); err != nil {
		w.t.Fatal(err)
	}
	close(d.dead)
	d.cancel()
	d.process = nil
	w.trace("%s killed", d.name)
	w.at(time.Duration(31+r.IntN(600))*time.Second, func() {
		select {
		case <-d.done: // what it says is of no interest
		default:
			w.fail("a daemon of which nothing is answered does not end")
			<-d.done
		}
		_ = os.RemoveAll(d.dir)
		d.start(next)
	})
}

// command sends a command, as weir suspend, resume, approve and reconcile do.
func (m *member) command(path string, in gates.Request) {
	in.By = "alice"
	body, err := json.Marshal(in)
	if err != nil {
		m.w.t.Fatal(err)
	}
	if path == commands.ResumePath {
		m.suspended = map[string]suspension{}
	}
	m.post(path, body, http.Header{"Content-Type": {"application/json"}, commands.Header: {"1"}}, func() {
		if length, err := time.ParseDuration(in.For); err == nil && path == commands.SuspendPath {
			m.suspended[in.Pool] = suspension{time.Now(), m.w.aheadOf().Add(length)}
		}
	})
}

// post sends something to what the member serves; then is called once it is accepted.
func (m *member) post(path string, body []byte, header http.Header, then func()) {
	w, d := m.w, m.process
	if d == nil || w.frozen {
		return
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1"+path, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header = header
	go func() {
		defer cancel()
		resp, err := d.client().Do(r)
		if err != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode >= http.StatusInternalServerError {
			w.fail("%s: %s: %s", path, resp.Status, text)
		}
		if bytes.Contains(text, []byte(canary)) {
			w.fail("%s shows a secret: %s", path, text)
		}
		select {
		case <-d.dead: // nobody has heard it
			return
		default:
		}
		if resp.StatusCode == http.StatusOK {
			then()
		}
	}()
}

// get reads something that the member serves, "" where nothing does.
func (m *member) get(path string) string {
	d := m.process
	if d == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(m.w.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, nil)
	if err != nil {
		m.w.t.Fatal(err)
	}
	resp, err := d.client().Do(r)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	if bytes.Contains(text, []byte(canary)) {
		m.w.fail("%s shows a secret: %s", path, text)
	}
	return string(text)
}

func (d *daemon) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.page.dial(ctx) }}}
}
