package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
	"weak"

	"github.com/weir-gitops/weir/cmd/weir/internal/app"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
)

// daemon is one process of weir, from its start until it stops or is killed.
type daemon struct {
	*member
	id     string           // where an instance has several members, that of the process among them
	clock  *coordtest.Clock // its machine's, nil where it is alone
	stood  time.Time        // when it last went on after it had stood still
	cut    string           // how the engine cannot be reached; "": it can
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
	m.starts++
	d := &daemon{member: m, id: m.id, dir: dir, page: newListener(), dead: make(chan struct{}), done: make(chan error, 1)}
	m.process = d
	ctx, cancel := context.WithCancel(context.WithValue(w.t.Context(), callerKey{}, d))
	d.cancel = cancel
	o := app.Options{
		Config: c, Logger: w.logger(), Version: "simulated", Rand: w.chance,
		Clock: clock.By(func() time.Time { return time.Now().Add(w.wall + m.wall) }),
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
	}
	if w.engine != nil {
		d.id, d.clock = fmt.Sprintf("%s-%d", m.id, m.starts), coordtest.NewClock()
		d.clock.SetWall(m.wall)
		o.Rand = d.chance
		o.Engine, o.Member = coord.New(line{w.engine, d}, coord.Options{Clock: d.clock}), d.id
	}
	w.trace("%s started", d.id)
	if w.engine != nil { // which is asked at once
		go d.live(ctx, o)
		return
	}
	a, err := app.New(ctx, o)
	if err != nil {
		w.t.Fatal(err)
	}
	d.app, m.apps = a, append(m.apps, weak.Make(a))
	go func() { d.done <- a.Run(ctx) }()
}

// chance is the same for all that ask at one moment, for the order in which goroutines ask
// is nobody's.
func (w *World) chance() float64 {
	return rand.New(rand.NewPCG(w.o.Seed, uint64(time.Now().UnixNano()))).Float64() //nolint:gosec // It is repeated on purpose.
}

// live is the life of a process over an engine. Where it cannot start it ends, and a service
// manager starts it again.
func (d *daemon) live(ctx context.Context, o app.Options) {
	a, err := app.New(ctx, o)
	if err == nil {
		d.app, d.apps = a, append(d.apps, weak.Make(a))
		d.done <- a.Run(ctx)
		return
	}
	d.done <- nil
	const again = 5 * time.Second
	d.w.at(again, func() {
		if m := d.member; m.process == d {
			m.process = nil
			m.start(d.dir)
		}
	})
	d.w.queue.wake()
}

// runs waits until the machine of a process does not stand still.
func (d *daemon) runs() {
	if d.clock != nil {
		d.clock.Runs()
	}
}

// stands reports whether it stands still.
func (d *daemon) stands() bool { return d.clock != nil && d.clock.Stopped() }

// chance is another one for each member.
func (d *daemon) chance() float64 {
	_, own := math.Modf(d.w.chance() + float64(slices.Index(d.members, d.member))/float64(len(d.members)))
	return own
}

// stop stops the process as a service manager does.
func (m *member) stop() {
	d := m.process
	if d == nil {
		return
	}
	d.cancel()
	m.process = nil
	if err := m.w.await(d); err != nil && (m.w.engine == nil || !errors.Is(err, coord.ErrLost)) { // what it has yet to say then is lost
		m.w.fail("%s ended with %v", d.id, err)
	}
	m.w.trace("%s stopped", d.id)
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
	w.died = true
	w.trace("%s killed", d.id)
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

// command sends a command about a target, as weir suspend, resume and reconcile do.
func (t *target) command(path string, in gates.Request) {
	in.Target, in.By = t.name, "alice"
	if path == commands.ResumePath {
		t.suspended = map[string]suspension{}
	}
	t.of.command(path, in, func() {
		if length, err := time.ParseDuration(in.For); err == nil && path == commands.SuspendPath {
			t.suspended[in.Pool] = suspension{time.Now(), t.of.w.aheadOf().Add(length)}
		}
	})
}

// command sends a command; then is called once it is accepted.
func (m *instance) command(path string, in any, then func()) {
	body, err := json.Marshal(in)
	if err != nil {
		m.w.t.Fatal(err)
	}
	m.post(path, body, http.Header{"Content-Type": {"application/json"}, commands.Header: {"1"}}, then)
}

// anyone is a member that is asked, nil where none can be.
func (m *instance) anyone() *member {
	m.asked++
	for i := range m.members {
		if one := m.members[(m.asked+i)%len(m.members)]; one.process != nil && one.process.app != nil && !one.process.stands() {
			return one
		}
	}
	return nil
}

// post sends something to what a member serves; then is called once it is accepted.
func (m *instance) post(path string, body []byte, header http.Header, then func()) {
	w, one := m.w, m.anyone()
	if one == nil || w.frozen {
		return
	}
	d := one.process
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
		if resp.StatusCode >= http.StatusInternalServerError && w.engine == nil { // which may not answer
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

// get reads something that a member serves, "" where nothing does.
func (m *instance) get(path string) string {
	one := m.anyone()
	if one == nil {
		return ""
	}
	d := one.process
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
