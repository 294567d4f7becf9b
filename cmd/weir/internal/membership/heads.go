package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Head is the commit of a source that all members apply. Seq increases by one with each head.
type Head struct {
	Seq    int64  `json:"seq"`
	Commit string `json:"commit"`
	Ref    string `json:"ref,omitempty"`
}

// Heads are the published commits of sources.
type Heads struct {
	mirror *coord.Mirror
	log    *slog.Logger
}

// Get returns the last published head of a source. It returns false if no head was published.
func (h *Heads) Get(id, source string) (Head, bool) {
	return headOf(h.mirror.Snapshot().Get(headKey(id, source)))
}

func headOf(r coord.Record) (h Head, ok bool) {
	return h, r.Version != 0 && json.Unmarshal(r.Value, &h) == nil
}

// Publish publishes the commit that a source has reached, as its owner. It retries until it succeeds, or no longer owns the source.
func (h *Heads) Publish(l *coord.Lease, id, source, commit, ref string) error {
	for {
		r := h.mirror.Snapshot().Get(headKey(id, source))
		last, known := headOf(r)
		if known && last.Commit == commit && last.Ref == ref {
			return nil
		}
		value, err := json.Marshal(Head{Seq: last.Seq + 1, Commit: commit, Ref: ref})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(l.Context(), writeWithin)
		_, err = l.Write(ctx, coord.Op{Key: r.Key, Value: value, If: r.Version})
		if err == nil {
			err = h.mirror.Sync(ctx)
		}
		cancel()
		switch {
		case err == nil:
			return nil
		case l.Context().Err() != nil || errors.Is(err, coord.ErrLost):
			return fmt.Errorf("publish the commit of %s: %w", source, coord.ErrLost)
		}
		h.log.Warn("cannot publish the commit of a source now", "source", source, "error", err)
		if !sleep(l.Context(), time.Second) {
			return coord.ErrLost
		}
		_ = h.mirror.Sync(l.Context()) // to find a write whose response was lost
	}
}
