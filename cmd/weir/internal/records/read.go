package records

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/engine"
	"github.com/weir-gitops/weir/cmd/weir/internal/statedir"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/keys"
	"github.com/weir-gitops/weir/status/history"
)

// reader reads an engine without being a member: no daemon sees it, and it has no lease. It implements
// state.Engine.
type reader struct {
	engine *coord.Engine
	mirror *coord.Mirror
}

func newReader(e *coord.Engine) reader { return reader{e, coord.NewMirror(e, state.LogPrefix)} }

// Replica implements state.Engine.
func (r reader) Replica() state.Replica { return r.mirror.Snapshot() }

// Refresh implements state.Engine.
func (r reader) Refresh(ctx context.Context) error { return r.mirror.Sync(ctx) }

// List implements state.Engine.
func (r reader) List(ctx context.Context, prefix, after string) ([]coord.Record, string, error) {
	return r.engine.List(ctx, prefix, after)
}

// Commit implements state.Engine.
func (reader) Commit(context.Context, []coord.Op) error {
	return errors.New("the records are only read")
}

// Read opens the records of an instance for reading. With an engine, it works in parallel with daemons.
// With a state directory, it works only if no daemon has it open, and otherwise returns state.ErrInUse. It
// returns fs.ErrNotExist if no records exist. done closes them.
func Read(ctx context.Context, c *config.Config) (store state.Store, done func() error, err error) {
	if !c.Several() {
		db, err := state.OpenReadOnly(c.StateDir)
		if err != nil {
			return nil, nil, err
		}
		if err := state.CheckInstance(db, c.Instance); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", Name(c), err), db.Close())
		}
		return db, db.Close, nil
	}
	e, err := engine.Open(ctx, c, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	shared, err := state.ReadShared(ctx, newReader(e))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", Name(c), err), e.Close())
	}
	return shared, e.Close, nil
}

// DigestKey returns the key for digests in plans that a command makes, the same as the daemons' key. If
// several daemons share the key and this command may not read it, the key is random, and why is the reason.
func DigestKey(ctx context.Context, c *config.Config) (key []byte, why, err error) {
	if !c.Several() {
		key, err = statedir.DigestKey(c.StateDir)
		return key, nil, err
	}
	if key, why = sharedKey(ctx, c); why != nil {
		key = make([]byte, keys.Bytes)
		_, _ = rand.Read(key) // it never fails
	}
	return key, why, nil
}

func sharedKey(ctx context.Context, c *config.Config) (key []byte, err error) {
	store, done, err := Read(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	ring, err := engine.Keys(c, store)
	if err != nil {
		return nil, err
	}
	return ring.Read(ctx, keys.Digest)
}

// Abort cancels a move between the places of two configurations that stopped half way: weir continues with
// the old one. whole is false if the other place cannot be reached, and is therefore unchanged.
func Abort(ctx context.Context, old, next *config.Config) (whole bool, err error) {
	from, err := open(ctx, old)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	to, unreached := open(ctx, next)
	if unreached != nil {
		if err := state.Abort(from.Place, nil, Name(next), history.Logs, from.alone); err != nil {
			return false, errors.Join(err, unreached)
		}
		return false, nil
	}
	defer func() { err = errors.Join(err, to.close()) }()
	return true, state.Abort(from.Place, &to.Place, Name(next), history.Logs, from.alone)
}
