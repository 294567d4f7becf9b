package commits

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// process is a Commits that runs, as a daemon holds it.
type process struct {
	*Commits
	kill func() // as kill -9 does: nothing is drained
}

func start(t *testing.T, dir string, f Forge, change ...func(*Options)) *process {
	t.Helper()
	o := Options{
		Instance: "weir", PageURL: "https://weir.example.com/", Forges: map[string]Forge{"fleet": f},
		StateDir: dir, Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	c, err := New(o)
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
