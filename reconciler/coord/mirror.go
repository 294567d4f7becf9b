package coord

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// PollEvery is the time between polls for changes. It is hurryEvery while another member is about to hand
	// a key over to this one.
	PollEvery  = time.Second
	hurryEvery = 200 * time.Millisecond
	// InputsWithin bounds the age of inputs that an owner has read before a write to AWS.
	InputsWithin = 2 * time.Second
)

// Snapshot is an engine's content at one moment. It includes each write as a whole or not at all. It never changes.
type Snapshot struct {
	// Engine is the engine's id, empty before the first sync and if it has none.
	Engine string
	Alive  []Alive
	Owners []Owner // by key

	records map[string]Record
	keys    []string // of records, in order
}

// EngineID returns the engine's id.
func (s *Snapshot) EngineID() string { return s.Engine }

// Get returns a record. A missing record has version 0.
func (s *Snapshot) Get(key string) Record {
	r := s.records[key]
	r.Key = key
	return r
}

// List returns the records whose keys have a prefix, in the order of their keys.
func (s *Snapshot) List(prefix string) []Record {
	var list []Record
	for _, key := range s.keys[sort.SearchStrings(s.keys, prefix):] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		list = append(list, s.records[key])
	}
	return list
}

// Owner returns the owner of a key. For a key that never had an owner, it returns a zero Owner with that key.
func (s *Snapshot) Owner(key string) Owner {
	if i, ok := slices.BinarySearchFunc(s.Owners, Owner{Key: key}, byKey); ok {
		return s.Owners[i]
	}
	return Owner{Key: key}
}

// Lives reports whether a session is alive.
func (s *Snapshot) Lives(session string) bool {
	return slices.ContainsFunc(s.Alive, func(a Alive) bool { return a.Session == session })
}

// Mirror is a copy of an engine's content in memory. It is safe for concurrent use.
type Mirror struct {
	engine *Engine
	skip   []string

	turn chan struct{} // has an element while a sync is in progress

	mu    sync.Mutex
	mark  Mark
	now   *Snapshot
	sent  Instant // when the last successful sync was sent
	ever  bool
	err   error // of the last sync
	hurry time.Time
	// replaced counts replacements of the engine.
	replaced int
	synced   chan struct{} // closed with each sync
}

// NewMirror makes an empty mirror. It will have no records whose keys have one of the prefixes in skip.
func NewMirror(e *Engine, skip ...string) *Mirror {
	return &Mirror{engine: e, skip: skip, turn: make(chan struct{}, 1), now: &Snapshot{}, synced: make(chan struct{})}
}

// Run syncs until ctx ends.
func (m *Mirror) Run(ctx context.Context) {
	for ctx.Err() == nil {
		start := time.Now()
		_ = m.Sync(ctx) // Age and Err report the result
		every := PollEvery
		m.mu.Lock()
		if start.Before(m.hurry) {
			every = hurryEvery
		}
		m.mu.Unlock()
		if !sleep(ctx, every-time.Since(start)) {
			return
		}
	}
}

// Hurry makes Run poll more often for a while.
func (m *Mirror) Hurry(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hurry = time.Now().Add(d)
}

// Snapshot returns the last snapshot. It is empty before the first sync, see Age.
func (m *Mirror) Snapshot() *Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Age returns the time since the last successful sync was sent, by the clock that advanced most. The snapshot
// includes everything that was committed before that. Age returns false before the first sync.
func (m *Mirror) Age() (time.Duration, bool) {
	now := m.engine.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, now.Longest(m.sent)), m.ever
}

// Err returns why the last sync failed, nil if it succeeded.
func (m *Mirror) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Synced returns a channel that is closed with the next successful sync.
func (m *Mirror) Synced() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.synced
}

// state returns the snapshot together with the number of replacements.
func (m *Mirror) state() (now *Snapshot, replaced int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now, m.replaced
}

// Replaced returns how often the engine was replaced, or went back to an earlier state.
func (m *Mirror) Replaced() int {
	_, n := m.state()
	return n
}

// Within returns a snapshot that is not older than d. It syncs if necessary. A member that cannot read must
// write nothing.
func (m *Mirror) Within(ctx context.Context, d time.Duration) (*Snapshot, error) {
	for {
		if age, ever := m.Age(); ever && age <= d {
			return m.Snapshot(), nil
		}
		if err := m.sync(ctx, d); err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
	}
}

// Sync reads what changed, once.
func (m *Mirror) Sync(ctx context.Context) error { return m.sync(ctx, -1) }

// sync is Sync, unless the snapshot is not older than enough once other calls have ended.
func (m *Mirror) sync(ctx context.Context, enough time.Duration) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if age, ever := m.Age(); ever && age <= enough {
		return nil
	}
	m.mu.Lock()
	mark, now := m.mark, m.now
	m.mu.Unlock()
	sent := m.engine.clock.Now()
	next, mark, replaced, err := m.read(ctx, now, mark)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err = err; err != nil {
		return err
	}
	m.now, m.mark, m.sent, m.ever = next, mark, sent, true
	if replaced {
		m.replaced++
	}
	close(m.synced)
	m.synced = make(chan struct{})
	return nil
}

// readRounds bounds how often one sync polls for changes from while it read.
const readRounds = 20

// read makes the snapshot after old. It reads records one after the other, so a record may be of a later
// write than the mark includes. The record's version shows that, and read then polls again, to read the other
// records of that write.
func (m *Mirror) read(ctx context.Context, old *Snapshot, mark Mark) (next *Snapshot, _ Mark, replaced bool, err error) {
	next = &Snapshot{Owners: old.Owners, records: old.records, keys: old.keys}
	same := true
	for round := 0; ; round++ {
		if round == readRounds {
			return nil, mark, false, fmt.Errorf("read records: they change faster than they are read: %w", ErrConflict)
		}
		c, err := m.changes(ctx, mark)
		if err != nil {
			return nil, mark, false, err
		}
		mark, replaced = c.Mark, replaced || c.Replaced
		next.Engine, next.Alive = c.Mark.engine, c.Alive
		same = same && !c.All && len(c.Records) == 0 && len(c.Owners) == 0
		if err := m.readOwners(ctx, next, c); err != nil {
			return nil, mark, false, err
		}
		again, err := m.readRecords(ctx, next, c)
		if err != nil {
			return nil, mark, false, err
		}
		if !again {
			break
		}
	}
	if same && !replaced && next.Engine == old.Engine && slices.Equal(next.Alive, old.Alive) {
		next = old // the same pointer shows callers that nothing changed
	}
	return next, mark, replaced, nil
}

// readOwners reads changed owners into next.
func (m *Mirror) readOwners(ctx context.Context, next *Snapshot, c Changes) (err error) {
	if c.All {
		if next.Owners, err = m.engine.owners(ctx); err != nil {
			return err
		}
	}
	for keys := range slices.Chunk(c.Owners, MaxOps) {
		changed, err := m.engine.ownersOf(ctx, keys)
		if err != nil {
			return err
		}
		next.Owners = slices.DeleteFunc(slices.Clone(next.Owners), func(o Owner) bool { return slices.Contains(keys, o.Key) })
		next.Owners = append(next.Owners, changed...)
	}
	if c.All || len(c.Owners) > 0 {
		slices.SortFunc(next.Owners, byKey)
	}
	return nil
}

// readRecords reads changed records into next. again says that they may be of several moments.
func (m *Mirror) readRecords(ctx context.Context, next *Snapshot, c Changes) (again bool, err error) {
	if !c.All && len(c.Records) == 0 {
		return false, nil
	}
	next.records = maps.Clone(next.records)
	if c.All {
		next.records = map[string]Record{}
		for after := ""; ; {
			page, more, err := m.list(ctx, after)
			if err != nil {
				return false, err
			}
			for _, r := range page {
				next.records[r.Key] = r
			}
			if after = more; after == "" {
				break
			}
		}
		again = len(c.Mark.n) > 0
	}
	for keys := range slices.Chunk(c.Records, MaxOps) {
		records, err := m.engine.gets(ctx, keys)
		if err != nil {
			return false, err
		}
		for _, r := range records {
			if next.records[r.Key] = r; r.Version == 0 {
				delete(next.records, r.Key)
			}
			// A missing record does not say which write deleted it.
			again = again || r.Version == 0 || !c.Mark.has(r.Version)
		}
	}
	next.keys = slices.Sorted(maps.Keys(next.records))
	return again, nil
}

func (m *Mirror) skips(key string) (prefix string, ok bool) {
	for _, prefix := range m.skip {
		if strings.HasPrefix(key, prefix) {
			return prefix, true
		}
	}
	return "", false
}

// Each call of a sync has its own timeout.

func (m *Mirror) changes(ctx context.Context, since Mark) (Changes, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	c, err := m.engine.Changes(ctx, since)
	c.Records = slices.DeleteFunc(c.Records, func(key string) bool { _, ok := m.skips(key); return ok })
	return c, err
}

// list reads a page, and continues after skipped records.
func (m *Mirror) list(ctx context.Context, after string) ([]Record, string, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	page, next, err := m.engine.List(ctx, "", after)
	for i, r := range page {
		if prefix, ok := m.skips(r.Key); ok {
			return page[:i], max(prefix+string(utf8.MaxRune), r.Key), err
		}
	}
	return page, next, err
}

func (e *Engine) gets(ctx context.Context, keys []string) ([]Record, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return e.store.Get(ctx, keys)
}

func (e *Engine) ownersOf(ctx context.Context, keys []string) ([]Owner, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return e.store.OwnersOf(ctx, keys)
}

func (e *Engine) owners(ctx context.Context) ([]Owner, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return e.Owners(ctx)
}
