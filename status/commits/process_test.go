package commits

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/statustest"
)

// process is a Commits that runs, as a daemon holds it.
type process struct {
	*Commits
	kill func() // as kill -9 does: nothing is drained
}

// journalOf are the records of a journal.
func journalOf(t *testing.T, s state.Store) map[string]json.RawMessage {
	t.Helper()
	out := map[string]json.RawMessage{}
	if err := s.View(func(tx *state.Tx) error {
		return state.Bucket[json.RawMessage]{Name: journalBucket}.ForEach(tx, "", func(key string, value json.RawMessage) error { out[key] = value; return nil })
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func start(t *testing.T, dir string, f Forge, change ...func(*Options)) *process {
	t.Helper()
	o := Options{
		Instance: "weir", PageURL: "https://weir.example.com/", Forges: map[string]Forge{"fleet": f},
		Store: statustest.StoreIn(t, dir), Logger: slog.New(slog.DiscardHandler),
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return p.Close(ctx)
}
