package status

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/status/forge"
)

// memoryForge keeps statuses in memory, so that tests can drive time.
type memoryForge struct {
	mu     sync.Mutex
	posted []string // "sha7 context state: description", in order
	now    map[string]map[string]forge.CommitStatus
	reads  int
	fail   func(sha string, s forge.CommitStatus) error // for writes
	lose   func(sha string, s forge.CommitStatus) error // the answers of writes that took effect
	limits forge.Limits
}

func newMemoryForge() *memoryForge {
	return &memoryForge{now: map[string]map[string]forge.CommitStatus{}, limits: forge.Limits{Context: 255, Description: 140}}
}

func (f *memoryForge) Kind() forge.Kind     { return "memory" }
func (f *memoryForge) Limits() forge.Limits { return f.limits }

func (f *memoryForge) SetStatus(_ context.Context, sha string, s forge.CommitStatus) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		if err := f.fail(sha, s); err != nil {
			return err
		}
	}
	if f.now[sha] == nil {
		f.now[sha] = map[string]forge.CommitStatus{}
	}
	f.now[sha][s.Context] = s
	f.posted = append(f.posted, fmt.Sprintf("%s %s %s: %s", short(sha), s.Context, s.State, s.Description))
	if f.lose != nil {
		return f.lose(sha, s)
	}
	return nil
}

func (f *memoryForge) Statuses(_ context.Context, sha string) (map[string]forge.CommitStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	out := map[string]forge.CommitStatus{}
	for k, v := range f.now[sha] {
		out[k] = v
	}
	return out, nil
}

// failWith has writes fail as fail says, until it is called again.
func (f *memoryForge) failWith(fail func(sha string, s forge.CommitStatus) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// loseWith has the answers of writes that took effect be what lose says.
func (f *memoryForge) loseWith(lose func(sha string, s forge.CommitStatus) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose = lose
}

// log is what was posted, in order.
func (f *memoryForge) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.posted)
}

// shows is what a person sees on a commit: state and description by context.
func (f *memoryForge) shows(sha string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for k, s := range f.now[sha] {
		out[k] = string(s.State) + ": " + s.Description
	}
	return out
}

func (f *memoryForge) anyPending() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sha, contexts := range f.now {
		for name, s := range contexts {
			if s.State == forge.Pending {
				out = append(out, short(sha)+" "+name)
			}
		}
	}
	return out
}

// process is a Commits that runs, as a daemon holds it.
type process struct {
	*Commits
	kill func() // as kill -9 does: nothing is drained
}

func start(t *testing.T, dir string, f Forge, change ...func(*CommitsOptions)) *process {
	t.Helper()
	o := CommitsOptions{
		Instance: "weir", PageURL: "https://weir.example.com/", Forges: map[string]Forge{"fleet": f},
		StateDir: dir, Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	c, err := NewCommits(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	p := &process{Commits: c, kill: func() { cancel(); <-ended }}
	t.Cleanup(p.kill)
	return p
}

// stop is SIGTERM.
func (p *process) stop(t *testing.T) error {
	t.Helper()
	p.kill()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return p.Close(ctx)
}

func settle() { time.Sleep(time.Second); synctest.Wait() }

func wantShown(t *testing.T, f *memoryForge, sha string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, f.shows(sha)); diff != "" {
		t.Errorf("statuses of %s (-want +got):\n%s", short(sha), diff)
	}
}
