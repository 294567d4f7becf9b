package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Head is the commit of a source that all members apply. Seq goes up by one with each.
type Head struct {
	Seq    int64  `json:"seq"`
	Commit string `json:"commit"`
	Ref    string `json:"ref,omitempty"`
}

// Head returns the head that was last published, or false if none was.
func (c *Member) Head(id, source string) (Head, bool) {
	return headOf(c.mirror.Snapshot().Get(headKey(id, source)))
}

func headOf(r coord.Record) (h Head, ok bool) {
	return h, r.Version != 0 && json.Unmarshal(r.Value, &h) == nil
}

// Lead publishes the commit that a source has reached, as its owner. It tries until it succeeds, or
// no longer owns the source.
func (c *Member) Lead(l *coord.Lease, id, source, commit, ref string) error {
	for {
		r := c.mirror.Snapshot().Get(headKey(id, source))
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
			err = c.mirror.Sync(ctx)
		}
		cancel()
		switch {
		case err == nil:
			return nil
		case l.Context().Err() != nil || errors.Is(err, coord.ErrLost):
			return fmt.Errorf("publish the commit of %s: %w", source, coord.ErrLost)
		}
		c.o.Logger.Warn("cannot publish the commit of a source now", "source", source, "error", err)
		if !sleep(l.Context(), time.Second) {
			return coord.ErrLost
		}
		_ = c.mirror.Sync(l.Context()) // it shows a write whose answer was lost
	}
}

// writeWithin bounds one write.
const writeWithin = 5 * time.Second

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
