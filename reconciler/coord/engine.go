package coord

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// attempt bounds one call to the engine. A call that takes longer counts as a lost answer.
	attempt = 2 * time.Second
	// slowest is the slowest rate in bytes per second at which a write is sent. A large write has that much
	// more time, or it would be sent again and again over a slow line and never succeed.
	slowest = 64 << 10
)

// Options are an engine's clock and randomness; the zero value is this machine's.
type Options struct {
	Clock Clock
	// Random makes ids.
	Random io.Reader
}

// Engine is the data of one instance. It is safe for concurrent use.
type Engine struct {
	store  Store
	clock  Clock
	random io.Reader

	mu sync.Mutex
	// refuses is why the engine refused the last write. refusing is the time of the first of these refusals.
	refuses  error
	refusing time.Time
}

// New makes an engine from a store. Engine.Close closes the store.
func New(store Store, o Options) *Engine {
	if o.Clock == nil {
		o.Clock = Machine{}
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return &Engine{store: store, clock: o.Clock, random: o.Random}
}

// Close closes the store. It does not end sessions.
func (e *Engine) Close() error { return e.store.Close() }

// Join starts a session for a member.
func (e *Engine) Join(ctx context.Context, m Member, ttl time.Duration) (*Session, error) {
	id := make([]byte, 10)
	if _, err := io.ReadFull(e.random, id); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	sent := e.clock.Now()
	m.Clock = sent.Wall.UTC()
	place, err := e.store.Enter(ctx, hex.EncodeToString(id), m, ttl)
	e.wrote(ctx, err)
	if err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	return &Session{
		e: e, id: SessionID(place.Slot, hex.EncodeToString(id)), engine: place.Engine, member: m.Name,
		term: term{sent: sent, ttl: place.TTL}, log: place.Log, turn: make(chan struct{}, 1),
	}, nil
}

// Refuses returns the reason why the engine refuses writes, and the time of the first refusal. It returns
// nil if the engine accepted the last write. The engine may still answer reads, for example if it is full or
// a permission is missing.
func (e *Engine) Refuses() (since time.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusing, e.refuses
}

// wrote notes the result of a write.
func (e *Engine) wrote(ctx context.Context, err error) {
	var moved *Moved
	if errors.As(err, &moved) || errors.Is(err, ErrLost) || errors.Is(err, ErrConflict) || errors.Is(err, ErrHeld) || errors.Is(err, ErrFull) {
		return // a rule of this package forbids the write; the engine may only have read
	}
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return // the caller gave up
	}
	now := e.clock.Now().Wall // not under the lock: in tests, reading the clock of a frozen machine blocks
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuses == nil {
		e.refusing = now
	}
	e.refuses = err
}

// Members lists the members that are alive.
func (e *Engine) Members(ctx context.Context) ([]Alive, error) {
	p, err := e.store.Poll(ctx)
	return p.Alive, err
}

// Owners lists all owners by key, including owners that released the key or whose session is dead.
func (e *Engine) Owners(ctx context.Context) ([]Owner, error) {
	owners, err := e.store.Owners(ctx)
	slices.SortFunc(owners, byKey)
	return owners, err
}

// Get reads a record. A missing record has version 0.
func (e *Engine) Get(ctx context.Context, key string) (Record, error) {
	if err := CheckKey(key); err != nil {
		return Record{}, err
	}
	records, err := e.store.Get(ctx, []string{key})
	if err != nil {
		return Record{}, err
	}
	return records[0], nil
}

// List reads a page of records whose keys have a prefix and are greater than after.
func (e *Engine) List(ctx context.Context, prefix, after string) (page []Record, next string, err error) {
	return e.store.List(ctx, prefix, after)
}

// Changes is the result of one poll.
type Changes struct {
	Mark  Mark
	Alive []Alive
	// Records lists the keys of the records that were written or deleted since the mark. Owners lists the
	// keys that were taken or released.
	Records, Owners []string
	// All says that the logs no longer have all changes. The caller must read everything, and then Records
	// and Owners again, which are the last known changes.
	All bool
	// Replaced means that the engine was wiped, or went back to an earlier state. Everything that was read
	// before is void, and so are all leases.
	Replaced bool
}

// Changes returns the changes since a mark. The zero Mark is before everything. The result includes
// everything that was committed before the call.
func (e *Engine) Changes(ctx context.Context, since Mark) (Changes, error) {
	p, err := e.store.Poll(ctx)
	if err != nil {
		return Changes{}, err
	}
	c := Changes{Mark: Mark{engine: p.Engine, n: map[int]int64{}}, Alive: p.Alive}
	c.Replaced = since.engine != "" && since.engine != p.Engine
	records, owners := map[string]bool{}, map[string]bool{}
	for slot, log := range p.Logs {
		c.Mark.n[slot] = log.N
		entries, ok := log.since(since.n[slot])
		c.All = c.All || !ok
		c.Replaced = c.Replaced || log.N < since.n[slot]
		if !ok || since.engine == "" {
			entries = log.Last
		}
		for _, entry := range entries {
			for _, k := range entry.Records {
				records[k] = true
			}
			for _, k := range entry.Owners {
				owners[k] = true
			}
		}
	}
	for slot := range since.n {
		if _, ok := p.Logs[slot]; !ok {
			c.Replaced = true // slots are never deleted
		}
	}
	if since.engine == "" || c.Replaced {
		c.All = true
	}
	c.Records, c.Owners = slices.Sorted(maps.Keys(records)), slices.Sorted(maps.Keys(owners))
	return c, nil
}
