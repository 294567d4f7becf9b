package membership

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/state"
)

// writer writes to the engine, as a member or as an owner.
type writer interface {
	Write(ctx context.Context, w coord.Write) (version int64, err error)
}

// leaseWriter writes as the owner of a lease.
type leaseWriter struct{ *coord.Lease }

func (h leaseWriter) Write(ctx context.Context, w coord.Write) (int64, error) {
	return h.Lease.Write(ctx, w.Ops...)
}

// sessionOf returns the member's current session. It returns an error if the member has no session.
func sessionOf(k *coord.Keeper) (writer, error) {
	if s := k.Session(); s != nil {
		return s, nil
	}
	if err := k.Trouble(); err != nil {
		return nil, fmt.Errorf("%w, and a new one cannot be created now: %w", coord.ErrLost, err)
	}
	return nil, coord.ErrLost
}

// records gives package state access to the engine's records.
type records struct {
	engine *coord.Engine
	mirror *coord.Mirror
	// by returns the writer for the next write.
	by func() (writer, error)
}

// Replica implements state.Engine.
func (r records) Replica() state.Replica { return r.mirror.Snapshot() }

// Refresh implements state.Engine.
func (r records) Refresh(ctx context.Context) error { return r.mirror.Sync(ctx) }

// Commit implements state.Engine.
func (r records) Commit(ctx context.Context, ops []coord.Op) error {
	w, err := r.by()
	if err == nil {
		_, err = w.Write(ctx, coord.Write{Ops: ops})
	}
	return err
}

// List implements state.Engine.
func (r records) List(ctx context.Context, prefix, after string) ([]coord.Record, string, error) {
	return r.engine.List(ctx, prefix, after)
}
