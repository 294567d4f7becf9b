package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// The limits of one commit to an engine.
const (
	maxOps    = coord.MaxOps - 4 // besides what an owner holds
	maxCommit = coord.MaxWrite - 64<<10
)

// Replica are the records of an engine at one moment, as this process has them.
type Replica interface {
	// EngineID distinguishes the engine from every other, also from a restored backup of it; empty
	// if unknown.
	EngineID() string
	Get(key string) coord.Record
	// List returns the records whose keys begin with prefix, in any order.
	List(prefix string) []coord.Record
}

// Engine has the records of all members.
type Engine interface {
	// Replica does not ask the engine.
	Replica() Replica
	// Refresh returns once the replica has all that anybody wrote before the call.
	Refresh(ctx context.Context) error
	// Commit makes all changes if all conditions hold. It fails with coord.ErrConflict if
	// they do not, and with coord.ErrUnknown where nobody said what became of them.
	Commit(ctx context.Context, ops []coord.Op) error
	// List asks the engine for the records whose keys begin with prefix and are behind
	// after, in the order of the keys. The engine chooses how many; next is the after of
	// the next page, empty behind the last. No replica has the records below prefix
	// LogPrefix.
	List(ctx context.Context, prefix, after string) (page []coord.Record, next string, err error)
}

// How long a change is tried, and how long it waits after a conflict at first.
const (
	updateFor  = 15 * time.Second
	firstPause = 5 * time.Millisecond
	longPause  = 500 * time.Millisecond
)

// Shared are the records of several weirs. View reads from the replica, which may lack
// what others wrote last. Update reads from it too, and what fn read is what the commit
// stands on: if somebody changed that, fn is called again with what there is by then. A
// change that nobody else's contradicts costs one write and no read.
type Shared struct {
	engine Engine
	member string
	now    func() time.Time
	// pause waits after a conflict.
	pause func(ctx context.Context, d time.Duration)
	// changing is held during an Update: transactions of one process need no conflict.
	changing *Turn
	logs     *logs
	// partSize is the longest value in one record.
	partSize int
	// moves says that the records are moved, whether they are sealed or not.
	moves bool
	// updateFor is the time for which a change is tried.
	updateFor time.Duration
}

// OpenShared begins the records of an engine, or goes on with them. member is this
// process among others, in few characters.
func OpenShared(ctx context.Context, e Engine, member string) (*Shared, error) {
	return openShared(ctx, e, member, false)
}

func openShared(ctx context.Context, e Engine, member string, moves bool) (*Shared, error) {
	s := newShared(e, member, moves)
	if err := e.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("open state: %w", Unreachable(err))
	}
	s.sweep(ctx)
	return s, s.Update(func(tx *Tx) error {
		version, known, err := Bucket[int]{aboutBucket}.Get(tx, formatKey)
		switch {
		case err != nil:
			return err
		case !known:
			return errors.Join(adopt(tx), fresh.Put(tx, freshKey, s.now()))
		case version > format:
			return tooNew(version)
		}
		_, known, err = engines.Get(tx, engineKey)
		if err != nil || known {
			return err
		}
		return adopt(tx)
	})
}

func newShared(e Engine, member string, moves bool) *Shared {
	return &Shared{moves: moves, engine: e, member: member, now: time.Now, pause: sleep, changing: &Turn{}, logs: &logs{added: map[string]int{}}, partSize: partSize, updateFor: updateFor}
}

func tooNew(version int) error {
	return fmt.Errorf("open state: the engine's records have format %d, this weir knows %d: run the newer weir", version, format)
}

// ReadShared opens the records of an engine to read them, and never commits anything. It fails with fs.ErrNotExist if it has none.
func ReadShared(ctx context.Context, e Engine) (*Shared, error) {
	if err := e.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("the coordination engine cannot be read now: %w", err)
	}
	s := newShared(e, "", false)
	return s, s.View(func(tx *Tx) error {
		version, known, err := Bucket[int]{aboutBucket}.Get(tx, formatKey)
		switch {
		case err != nil:
			return err
		case !known:
			return fmt.Errorf("open state: the coordination engine has no records: %w", fs.ErrNotExist)
		case version > format:
			return tooNew(version)
		}
		return nil
	})
}

// With returns the same records, written through another way to the same engine: an owner's way,
// which is valid only as long as it is the owner.
func (s *Shared) With(e Engine) *Shared {
	with := *s
	with.engine = e
	return &with
}

// View implements Store.
func (s *Shared) View(fn func(*Tx) error) error {
	tx := newSharedTx(s, s.engine.Replica())
	if err := s.sealed(tx.replica); err != nil {
		return err
	}
	switch err := fn(&Tx{tx}); {
	case err == nil && !tx.idle():
		return errors.New("write state: it is only viewed")
	case !errors.Is(err, errTorn):
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.updateFor)
	defer cancel()
	if err := s.engine.Refresh(ctx); err != nil {
		return Unreachable(err)
	}
	return fn(&Tx{newSharedTx(s, s.engine.Replica())})
}

// Update implements Store: the engine has the changes when it returns. After an
// coord.ErrUnknown it may have them, or have them later.
func (s *Shared) Update(fn func(*Tx) error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.updateFor)
	defer cancel()
	fresh := false // the replica has all that was written before the call
	for wait := firstPause; ; wait = min(2*wait, longPause) {
		tx := newSharedTx(s, s.engine.Replica())
		if err := s.sealed(tx.replica); err != nil {
			return err
		}
		err := fn(&Tx{tx})
		if err == nil {
			err = tx.tooMuch()
		}
		switch {
		case (err != nil || tx.idle()) && fresh && !errors.Is(err, errTorn):
			return err
		case err == nil && !tx.idle():
			if err = s.commit(ctx, tx); err == nil {
				return nil
			}
			if !errors.Is(err, coord.ErrConflict) {
				return Unreachable(err)
			}
			s.pause(ctx, wait)
		}
		// fn may have failed only because the replica lacks the newest records.
		if err := s.engine.Refresh(ctx); err != nil {
			return Unreachable(err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("write state: %w again and again for %s; try it again", coord.ErrConflict, s.updateFor)
		}
		fresh = true
	}
}

// commit writes what a transaction changed: long values first, which nobody sees until
// there is the record that names them.
func (s *Shared) commit(ctx context.Context, tx *sharedTx) error {
	for _, part := range tx.parts {
		if err := s.engine.Commit(ctx, []coord.Op{part}); err != nil && !errors.Is(err, coord.ErrConflict) { // a part is named by what it holds
			return err
		}
	}
	if err := s.engine.Commit(ctx, tx.ops()); err != nil {
		return err
	}
	s.trim(ctx, tx)
	_ = s.engine.Refresh(ctx) // so that the next view has it; the engine has it whatever comes of this
	return nil
}

// EngineError says that a change is not stored, or may not be, because of the engine, and what to do.
type EngineError struct {
	Text string
	Err  error
}

// Error is the text, and why.
func (e *EngineError) Error() string { return e.Text + ": " + e.Err.Error() }

// Unwrap is why.
func (e *EngineError) Unwrap() error { return e.Err }

// Unreachable explains what to do about an engine that did not carry out a request.
func Unreachable(err error) error {
	switch {
	case errors.Is(err, coord.ErrUnknown):
		return &EngineError{"the coordination engine did not confirm the change, and may have stored it: check, and repeat the request", err}
	case errors.Is(err, coord.ErrLost):
		return &EngineError{"nothing is stored: another weir owns this now, or may own it", err}
	default:
		return &EngineError{"nothing is stored: the coordination engine cannot be used now; try again when it answers, weir members shows it", err}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
