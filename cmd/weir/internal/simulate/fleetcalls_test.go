package simulate

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing/synctest"
	"time"
)

// fleetClient is the daemons' way to AWS, which takes a while.
type fleetClient struct{ f *fleet }

// Do implements the SDK's HTTP client.
func (c fleetClient) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	d := caller(r.Context())
	if err := c.f.takes(r.Context(), d, 40*time.Millisecond); err != nil {
		return nil, err
	}
	due := false
	if isWrite(operation(r, body)) {
		c.f.mu.Lock()
		c.f.writes++
		if due = len(c.f.killAt) > 0 && c.f.writes >= c.f.killAt[0]; due {
			c.f.killAt = c.f.killAt[1:]
		}
		c.f.mu.Unlock()
	}
	if due && c.f.writes%2 == 0 {
		return nil, c.f.dies(r.Context(), d)
	}
	resp := c.f.serveAWS(r, body)
	if due {
		return nil, c.f.dies(r.Context(), d)
	}
	if err := c.f.takes(r.Context(), d, 40*time.Millisecond); err != nil {
		return nil, err
	}
	return resp, nil
}

// cutOff lets no call of a process have an effect any more.
func (f *fleet) cutOff(d *daemon) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-d.dead:
	default:
		close(d.dead)
	}
}

// strikeNow kills one of the daemons that run.
func (f *fleet) strikeNow() {
	f.strikes = f.strikes[1:]
	var running []*daemon
	for _, m := range f.members {
		if m.process != nil {
			running = append(running, m.process)
		}
	}
	if len(running) > 0 {
		f.kill(running[f.rand.IntN(len(running))])
	}
}

// dies has a process be killed in the middle of a call.
func (f *fleet) dies(ctx context.Context, d *daemon) error {
	f.cutOff(d)
	select {
	case f.killing <- d:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return errDead
}

// takes lets time pass on the way of a call of a process; none comes of one that is dead.
func (f *fleet) takes(ctx context.Context, d *daemon, long time.Duration) error {
	select {
	case <-time.After(long):
	case <-d.dead:
	case <-ctx.Done():
	}
	return d.gone(ctx)
}

func (d *daemon) gone(ctx context.Context) error {
	select {
	case <-d.dead:
		return errDead
	default:
		return ctx.Err()
	}
}

func (f *fleet) serveAWS(r *http.Request, body []byte) *http.Response {
	in := r.Clone(r.Context())
	in.Body, in.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI()
	rec := httptest.NewRecorder()
	rec.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	f.aws.ServeHTTP(rec, in)
	resp := rec.Result()
	resp.Request = r
	return resp
}

// takeover is how long another daemon may take to own what one owned that is killed: its
// lease, and what is waited for after it.
const takeover = 30 * time.Second

// kill ends a process in the middle of what it does; until has it start again, on the files
// that it leaves.
func (f *fleet) kill(d *daemon) {
	i := slices.IndexFunc(f.members, func(m *fleetMember) bool { return m.process == d })
	if i < 0 {
		return
	}
	m := f.members[i]
	down := time.Duration(3000+f.rand.IntN(50_000)) * time.Millisecond
	f.kills++
	f.lived = time.Now().Add(down)
	if f.memory != nil {
		f.lived = time.Now().Add(takeover)
	}
	f.say("%s is killed for %v", d.id, down)
	f.cutOff(d)
	if m.wire != nil {
		m.wire.Cut()
	}
	synctest.Wait()
	next := f.t.TempDir()
	if err := os.CopyFS(next, os.DirFS(d.dir)); err != nil {
		f.t.Fatal(err)
	}
	m.process, m.dir = nil, next
	d.cancel()
	f.dead = append(f.dead, d)
	m.again = time.Now().Add(down)
}
