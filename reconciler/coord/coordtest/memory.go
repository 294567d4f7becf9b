// Package coordtest helps to test back ends and users of package coord. It has the contract that every back
// end must keep, an engine in memory, a wire that loses and delays requests and answers, and a machine whose
// clocks are set, drift and sleep.
package coordtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Memory is an engine in memory that uses the clock of package time. Any number of members may use it,
// usually each through a Wire.
type Memory struct {
	mu   sync.Mutex
	made int
	data data
}

type data struct {
	engine   string
	sessions map[string]session
	logs     map[int]coord.Log
	owners   map[string]coord.Owner
	records  map[string]coord.Record
}

type session struct {
	member coord.Member
	ttl    time.Duration
	ends   time.Time
}

var _ coord.Store = (*Memory)(nil)

// NewMemory returns an empty engine.
func NewMemory() *Memory {
	m := &Memory{}
	m.Wipe()
	return m
}

// Wipe empties the engine.
func (m *Memory) Wipe() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = data{sessions: map[string]session{}, logs: map[int]coord.Log{}, owners: map[string]coord.Owner{}, records: map[string]coord.Record{}}
}

// Save makes a backup, and restore restores it.
func (m *Memory) Save() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clone := func(d data) data {
		return data{d.engine, maps.Clone(d.sessions), maps.Clone(d.logs), maps.Clone(d.owners), maps.Clone(d.records)}
	}
	saved := clone(m.data)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.data = clone(saved)
	}
}

// view returns the data without ended sessions. The caller holds the lock.
func (m *Memory) view() *data {
	for id, s := range m.data.sessions {
		if !time.Now().Before(s.ends) {
			delete(m.data.sessions, id)
		}
	}
	return &m.data
}

// Alive implements coord.Contents.
func (d *data) Alive(id string) bool { _, ok := d.sessions[id]; return ok }

// Log implements coord.Contents.
func (d *data) Log(slot int) coord.Log { return d.logs[slot] }

// Owner implements coord.Contents.
func (d *data) Owner(key string) coord.Owner { return d.owners[key] }

// Version implements coord.Contents.
func (d *data) Version(key string) int64 { return d.records[key].Version }

// Enter implements coord.Store.
func (m *Memory) Enter(_ context.Context, random string, member coord.Member, ttl time.Duration) (coord.Entered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.view()
	if d.engine == "" {
		m.made++
		d.engine = fmt.Sprintf("memory%d", m.made)
	}
	slot := 0
	for d.Alive(d.logs[slot].Session) {
		slot++
	}
	if slot >= coord.MaxMembers {
		return coord.Entered{}, coord.ErrFull
	}
	log := d.logs[slot]
	log.Session = coord.SessionID(slot, random)
	d.logs[slot] = log
	d.sessions[log.Session] = session{member, ttl, time.Now().Add(ttl)}
	return coord.Entered{Engine: d.engine, Slot: slot, Log: log, TTL: ttl}, nil
}

// Renew implements coord.Store.
func (m *Memory) Renew(_ context.Context, id string, member *coord.Member) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.view()
	s, ok := d.sessions[id]
	if !ok {
		return 0, coord.ErrLost
	}
	if member != nil {
		s.member = *member
	}
	s.ends = time.Now().Add(s.ttl)
	d.sessions[id] = s
	return s.ttl, nil
}

// End implements coord.Store.
func (m *Memory) End(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.data.sessions, id)
	return nil
}

// Poll implements coord.Store.
func (m *Memory) Poll(context.Context) (coord.Poll, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.view()
	p := coord.Poll{Engine: d.engine, Logs: maps.Clone(d.logs)}
	for _, id := range slices.Sorted(maps.Keys(d.sessions)) {
		p.Alive = append(p.Alive, coord.Alive{Member: d.sessions[id].member, Session: id})
	}
	return p, nil
}

// Owners implements coord.Store.
func (m *Memory) Owners(context.Context) ([]coord.Owner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.data.owners)), nil
}

// OwnersOf implements coord.Store.
func (m *Memory) OwnersOf(_ context.Context, keys []string) (all []coord.Owner, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if o, ok := m.data.owners[key]; ok {
			all = append(all, o)
		}
	}
	return all, nil
}

// Get implements coord.Store.
func (m *Memory) Get(_ context.Context, keys []string) (got []coord.Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		r := m.data.records[key]
		r.Key = key
		got = append(got, r)
	}
	return got, nil
}

// memoryPage is the number of records in a page. It is small, so that tests read several pages.
const memoryPage = 10

// List implements coord.Store.
func (m *Memory) List(_ context.Context, prefix, after string) (page []coord.Record, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.data.records)) {
		if key <= after || !strings.HasPrefix(key, prefix) {
			continue
		}
		if len(page) == memoryPage {
			return page, page[len(page)-1].Key, nil
		}
		page = append(page, m.data.records[key])
	}
	return page, "", nil
}

// Commit implements coord.Store.
func (m *Memory) Commit(_ context.Context, t coord.Txn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.view()
	if err := t.Check(d); err != nil {
		return err
	}
	d.logs[coord.SlotOf(t.Session)] = t.Log
	for _, c := range t.Take {
		d.owners[c.Owner.Key] = c.Owner
	}
	for _, op := range t.Ops {
		delete(d.records, op.Key)
		if !op.Delete {
			d.records[op.Key] = coord.Record{Key: op.Key, Value: slices.Clone(op.Value), Version: t.Version()}
		}
	}
	return nil
}

// Close implements coord.Store. The data stays.
func (m *Memory) Close() error { return nil }
