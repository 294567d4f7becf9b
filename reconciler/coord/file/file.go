// Package file is the back end of package coord for one daemon alone: the state
// directory's file. Its lease is the lock of that directory, which the caller holds and
// which goes with the process. So a session lives as long as the store is open, every
// other one is dead, and nobody needs to wait for one. A daemon alone never sees what
// another member would do to it; records are kept as in the other engines.
package file

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/state"
)

// forever is how long a session lives: no clock ends it.
const forever = time.Duration(math.MaxInt64)

// pageBytes is about how much a page holds.
const pageBytes = 1 << 20

var (
	about   = state.Bucket[string]{Name: "coord"}
	logs    = state.Bucket[coord.Log]{Name: "coord-logs"}
	owners  = state.Bucket[coord.Owner]{Name: "coord-owners"}
	records = state.Bucket[record]{Name: "coord-records"}
)

const engineKey = "engine"

type record struct {
	Value   []byte `json:"value"`
	Version int64  `json:"version"`
}

// Store is a file of package state. The caller closes the file.
type Store struct {
	db *state.DB

	mu       sync.Mutex
	sessions map[string]coord.Member
}

var _ coord.Store = (*Store)(nil)

// New makes a store of an open file.
func New(db *state.DB) *Store { return &Store{db: db, sessions: map[string]coord.Member{}} }

// slotKey is where a slot's log is.
func slotKey(slot int) string { return fmt.Sprintf("%02x", slot) }

// Enter implements coord.Store.
func (s *Store) Enter(_ context.Context, random string, m coord.Member, _ time.Duration) (coord.Entered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := coord.Entered{TTL: forever}
	err := s.db.Update(func(tx *state.Tx) (err error) {
		var ok bool
		if p.Engine, ok, err = about.Get(tx, engineKey); err == nil && !ok {
			p.Engine = strings.ToLower(rand.Text()[:16])
			err = about.Put(tx, engineKey, p.Engine)
		}
		for p.Slot = 0; err == nil; p.Slot++ {
			p.Log, _, err = logs.Get(tx, slotKey(p.Slot))
			if _, alive := s.sessions[p.Log.Session]; !alive {
				break
			}
		}
		if err != nil {
			return err
		}
		if p.Slot >= coord.MaxMembers {
			return coord.ErrFull
		}
		p.Log.Session = coord.SessionID(p.Slot, random)
		return logs.Put(tx, slotKey(p.Slot), p.Log)
	})
	if err != nil {
		return coord.Entered{}, err
	}
	s.sessions[p.Log.Session] = m
	return p, nil
}

// Renew implements coord.Store.
func (s *Store) Renew(_ context.Context, session string, m *coord.Member) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.sessions[session]; !ok {
		return 0, coord.ErrLost
	}
	if m != nil {
		s.sessions[session] = *m
	}
	return forever, nil
}

// End implements coord.Store.
func (s *Store) End(_ context.Context, session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session)
	return nil
}

// Poll implements coord.Store.
func (s *Store) Poll(context.Context) (coord.Poll, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := coord.Poll{Logs: map[int]coord.Log{}}
	err := s.db.View(func(tx *state.Tx) (err error) {
		if p.Engine, _, err = about.Get(tx, engineKey); err != nil {
			return err
		}
		return logs.ForEach(tx, "", func(_ string, l coord.Log) error {
			p.Logs[coord.SlotOf(l.Session)] = l
			return nil
		})
	})
	for id, m := range s.sessions {
		p.Alive = append(p.Alive, coord.Alive{Member: m, Session: id})
	}
	slices.SortFunc(p.Alive, func(a, b coord.Alive) int { return strings.Compare(a.Session, b.Session) })
	return p, err
}

// Owners implements coord.Store.
func (s *Store) Owners(context.Context) (all []coord.Owner, err error) {
	err = s.db.View(func(tx *state.Tx) error {
		return owners.ForEach(tx, "", func(_ string, o coord.Owner) error {
			all = append(all, o)
			return nil
		})
	})
	return all, err
}

// OwnersOf implements coord.Store.
func (s *Store) OwnersOf(_ context.Context, keys []string) (all []coord.Owner, err error) {
	err = s.db.View(func(tx *state.Tx) error {
		for _, key := range keys {
			o, ok, err := owners.Get(tx, key)
			if err != nil {
				return err
			}
			if ok {
				all = append(all, o)
			}
		}
		return nil
	})
	return all, err
}

// Get implements coord.Store.
func (s *Store) Get(_ context.Context, keys []string) (got []coord.Record, err error) {
	err = s.db.View(func(tx *state.Tx) error {
		for _, key := range keys {
			r, _, err := records.Get(tx, key)
			if err != nil {
				return err
			}
			got = append(got, coord.Record{Key: key, Value: r.Value, Version: r.Version})
		}
		return nil
	})
	return got, err
}

// List implements coord.Store.
func (s *Store) List(_ context.Context, prefix, after string) (page []coord.Record, next string, err error) {
	size := 0
	err = s.db.View(func(tx *state.Tx) error {
		return records.ForEach(tx, max(prefix, after), func(key string, r record) error {
			switch {
			case key == after:
				return nil
			case !strings.HasPrefix(key, prefix):
				return state.ErrStop
			case size > pageBytes:
				next = page[len(page)-1].Key
				return state.ErrStop
			}
			size += len(r.Value)
			page = append(page, coord.Record{Key: key, Value: r.Value, Version: r.Version})
			return nil
		})
	})
	return page, next, err
}

// view is a transaction as package coord checks it. A record that it cannot read fails
// the transaction.
type view struct {
	s   *Store
	tx  *state.Tx
	err error
}

// Alive implements coord.Contents.
func (v *view) Alive(session string) bool { _, ok := v.s.sessions[session]; return ok }

// Log implements coord.Contents.
func (v *view) Log(slot int) coord.Log { return read(v, logs, slotKey(slot)) }

// Owner implements coord.Contents.
func (v *view) Owner(key string) coord.Owner { return read(v, owners, key) }

// Version implements coord.Contents.
func (v *view) Version(key string) int64 { return read(v, records, key).Version }

func read[T any](v *view, b state.Bucket[T], key string) T {
	value, _, err := b.Get(v.tx, key)
	if err != nil && v.err == nil {
		v.err = err
	}
	return value
}

// Commit implements coord.Store.
func (s *Store) Commit(_ context.Context, t coord.Txn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.Update(func(tx *state.Tx) error {
		v := &view{s: s, tx: tx}
		refused := t.Check(v)
		if v.err != nil {
			return v.err
		}
		if refused != nil {
			return refused
		}
		err := logs.Put(tx, slotKey(coord.SlotOf(t.Session)), t.Log)
		for _, c := range t.Take {
			if err == nil {
				err = owners.Put(tx, c.Owner.Key, c.Owner)
			}
		}
		for _, op := range t.Ops {
			switch {
			case err != nil:
				return err
			case op.Delete:
				err = records.Delete(tx, op.Key)
			default:
				err = records.Put(tx, op.Key, record{op.Value, t.Version()})
			}
		}
		return err
	})
}

// Alone implements coord.Store.
func (s *Store) Alone() bool { return true }

// Close implements coord.Store: all sessions end.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
	return nil
}
