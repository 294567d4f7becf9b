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
	maxOps    = coord.MaxOps - 4 // leaves room for an owner's condition
	maxCommit = coord.MaxWrite - 64<<10
)

// Replica is this process's copy of the records of an engine at one moment.
type Replica interface {
	// EngineID distinguishes the engine from every other one, including a restored backup. It is empty if
	// unknown.
	EngineID() string
	Get(key string) coord.Record
	// List returns the records whose keys start with prefix, in any order.
	List(prefix string) []coord.Record
}

// Engine stores the records of all members.
type Engine interface {
	// Replica returns the local copy without a request to the engine.
	Replica() Replica
	// Refresh returns when the replica has everything that any member wrote before the call.
	Refresh(ctx context.Context) error
	// Commit makes all changes if all conditions are met. It fails with coord.ErrConflict if they are not,
	// and with coord.ErrUnknown if the result is unknown.
	Commit(ctx context.Context, ops []coord.Op) error
	// List reads records from the engine whose keys start with prefix and are greater than after, in the
	// order of the keys. The engine chooses the size of a page. next is the after of the next page, or empty
	// after the last page. Replicas have no records with the prefix LogPrefix.
	List(ctx context.Context, prefix, after string) (page []coord.Record, next string, err error)
}

// updateFor bounds the time for the attempts of a change. After a conflict, a change waits firstPause at
// first and longPause at most.
const (
	updateFor  = 15 * time.Second
	firstPause = 5 * time.Millisecond
	longPause  = 500 * time.Millisecond
)

// Shared contains the records of several members. View reads from the replica, which may miss the latest
// writes of other members. Update reads from it too, and the commit depends on the records that fn has read:
// if another member changed one of them, Update calls fn again with the new records. A change without a
// conflict costs one write and no read.
type Shared struct {
	engine Engine
	member string
	now    func() time.Time
	// pause waits after a conflict.
	pause func(ctx context.Context, d time.Duration)
	// changing is locked during an Update, so that transactions of one process do not conflict.
	changing *Turn
	logs     *logs
	// partSize is the maximum length of a value in one record.
	partSize int
	// moves says that this process moves the records, so it may use them even if they are sealed.
	moves bool
	// updateFor bounds the time for the attempts of a change.
	updateFor time.Duration
}

// OpenShared opens the records of an engine, or creates them. member is a short name for this process.
func OpenShared(ctx context.Context, e Engine, member string) (*Shared, error) {
	return openShared(ctx, e, member, false)
}

// openShared opens the records in an engine, and initializes them at first use. moves is set for commands
// that move records.
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

// ReadShared opens the records of an engine for reading. It never commits anything. It fails with
// fs.ErrNotExist if the engine has no records.
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

// With returns the same records with another access to the same engine: the access of an owner, which is
// valid only during its ownership.
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

// Update implements Store. The engine has the changes when it returns. After coord.ErrUnknown the engine may
// have them, or may get them later.
func (s *Shared) Update(fn func(*Tx) error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.updateFor)
	defer cancel()
	fresh := false // the replica has everything that was written before the call
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
		// fn may have failed only because the replica misses the newest records.
		if err := s.engine.Refresh(ctx); err != nil {
			return Unreachable(err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("write state: %w repeatedly for %s; try again", coord.ErrConflict, s.updateFor)
		}
		fresh = true
	}
}

// commit writes the changes of a transaction. It writes the parts of long values first, which are invisible
// until the record that names them exists.
func (s *Shared) commit(ctx context.Context, tx *sharedTx) error {
	for _, part := range tx.parts {
		if err := s.engine.Commit(ctx, []coord.Op{part}); err != nil && !errors.Is(err, coord.ErrConflict) { // the name of a part identifies its content
			return err
		}
	}
	if err := s.engine.Commit(ctx, tx.ops()); err != nil {
		return err
	}
	s.trim(ctx, tx)
	_ = s.engine.Refresh(ctx) // so that the next View has the change; the engine has it even if this fails
	return nil
}

// EngineError says that the engine did not store a change, or may not have stored it, and what to do.
type EngineError struct {
	Text string
	Err  error
}

// Error returns the text and the cause.
func (e *EngineError) Error() string { return e.Text + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *EngineError) Unwrap() error { return e.Err }

// Unreachable returns an error that explains what to do if an engine did not carry out a request.
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
