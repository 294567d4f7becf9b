package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// mute is an engine that does not take in which scopes were begun.
type mute struct {
	coord.Store
	on atomic.Bool
}

// Commit implements coord.Store.
func (m *mute) Commit(ctx context.Context, t coord.Txn) error {
	for _, op := range t.Ops {
		if m.on.Load() && strings.Contains(op.Key, "begun") {
			return fmt.Errorf("somebody else owns it: %w", coord.ErrLost)
		}
	}
	return m.Store.Commit(ctx, t)
}

// A pass that cannot note what it begins, as the member owns nothing any more, is no failure
// of the commit: the next owner makes it.
func TestALostLeaseIsNoFailureOfACommit(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	store := &mute{Store: s.store}
	store.on.Store(true)
	b := s.memberOver("b", store)
	defer b.stop()
	eventually(t, "the pass that notes nothing", func() string {
		r, _ := b.current.Targets.Find("prod")
		var e *observed.Error
		switch {
		case r.Last == nil || r.Last.Err == nil:
			return "it has no error"
		case !errors.As(r.Last.Err, &e) || e.Kind != observed.Fenced:
			t.Fatalf("it is told as a failure: %v", r.Last.Err)
		}
		return ""
	})
	if wrote := s.writes(); len(wrote) > 0 {
		t.Errorf("written: %v", wrote)
	}
	store.on.Store(false)
	converged(t, b.App, first, 1)
}
