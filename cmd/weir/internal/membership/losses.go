package membership

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/state"
)

// losses records that records were lost because the engine was replaced, or restored to an earlier state.
// Later requests of users, such as suspensions, are then missing.
type losses struct {
	mirror *coord.Mirror
	store  *state.Shared
	log    *slog.Logger

	mu sync.Mutex
	// recorded is the number of replacements of the engine with a recorded loss. It starts at zero, because
	// the engine may be replaced while the member opens the records.
	recorded int
}

// record records a new loss, so that no work starts before that. It retries until it succeeds. It returns
// false if the lease ended first.
func (s *losses) record(l *coord.Lease) bool {
	for {
		now := s.mirror.Replaced()
		s.mu.Lock()
		known := s.recorded == now
		s.mu.Unlock()
		if known {
			return true
		}
		err := state.Lose(s.store, "the coordination engine was replaced, or went back to an earlier state")
		if err == nil {
			s.mu.Lock()
			s.recorded = max(s.recorded, now)
			s.mu.Unlock()
			continue
		}
		s.log.Error("cannot record the loss of records: the member does not work on the key until the loss is recorded", "key", l.Owner.Key, "error", err)
		if !sleep(l.Context(), time.Second) {
			return false
		}
	}
}

// watch notes losses that other members record, until ctx ends. Otherwise, this member would record a loss
// again with its first lease, possibly after users have accepted the loss.
func (s *losses) watch(ctx context.Context) {
	for ctx.Err() == nil {
		synced := s.mirror.Synced()
		s.markRecorded()
		select {
		case <-synced:
		case <-ctx.Done():
		}
	}
}

// markRecorded marks the current replacement as recorded if the store has a recorded loss.
func (s *losses) markRecorded() {
	now := s.mirror.Replaced() // read first, so that the records are at least as new as the count
	s.mu.Lock()
	known := s.recorded == now
	s.mu.Unlock()
	if known {
		return
	}
	var loss *state.Loss
	err := s.store.View(func(tx *state.Tx) (err error) { loss, err = state.LossOf(tx); return err })
	if err != nil || loss == nil || loss.Since.IsZero() { // a loss without a time is not recorded yet
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded = max(s.recorded, now)
}
