package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Store is the port that each back end implements. Errors other than this package's mean that nobody answered, or not as expected: the request may
// have been done. Every read is consistent.
type Store interface {
	// Enter makes a session and gives it a slot that no session alive has. It makes the
	// engine's id at first use. The session's id has the slot and the random part.
	Enter(ctx context.Context, random string, m Member, ttl time.Duration) (Entered, error)
	// Renew makes the session live for its TTL, and returns how long the engine says that this is. With m, it tells others the member's changes.
	// ErrLost: it is dead.
	Renew(ctx context.Context, session string, m *Member) (ttl time.Duration, err error)
	// End makes a session dead at once.
	End(ctx context.Context, session string) error
	// Poll reads, in one consistent read, who is alive and the logs of all slots. A session
	// that is not among them is dead, and Commit agrees.
	Poll(ctx context.Context) (Poll, error)
	// Owners lists all owners, released ones and those with dead sessions too. A write whose
	// log was polled before may be missing.
	Owners(ctx context.Context) ([]Owner, error)
	// OwnersOf reads the owners of at most MaxOps keys, without those that have none. It sees everything polled before.
	OwnersOf(ctx context.Context, keys []string) ([]Owner, error)
	// Get reads at most MaxOps records, in the order of the keys; a missing one has version 0. They need not be of one moment, but include everything
	// polled before.
	Get(ctx context.Context, keys []string) ([]Record, error)
	// List reads records whose keys begin with prefix and follow after, in the order of their keys' bytes. The engine chooses how many; next is the
	// after of the next page, empty at the end. A write whose log was polled before may be missing.
	List(ctx context.Context, prefix, after string) (page []Record, next string, err error)
	// Commit does all of t or nothing, and fails as Txn.Check does.
	Commit(ctx context.Context, t Txn) error
	Close() error
}

// Entered is a new session's start.
type Entered struct {
	Engine string
	Slot   int
	// Log is the slot's, as its last session left it.
	Log Log
	// TTL is how long the engine says that the session lives.
	TTL time.Duration
}

// Poll is the answer to a member's poll, one every second.
type Poll struct {
	// Engine is the engine's id, empty if it has none.
	Engine string
	Alive  []Alive
	Logs   map[int]Log
}

// Txn is a transaction. The session must be alive, and the log of its slot must have
// number Was.
type Txn struct {
	Session string
	Was     int64
	Log     Log
	// Held must be the present owners.
	Held []Owner
	// Take writes owners, each over the one that was read: its session must be dead unless it released the key, or is this transaction's own.
	Take []Taking
	Ops  []Op
}

// Contents are an engine's data, for Check.
type Contents interface {
	Alive(session string) bool
	Log(slot int) Log
	// Owner returns the zero Owner for a key that nobody owns.
	Owner(key string) Owner
	// Version returns that of a record, 0 for a missing one.
	Version(key string) int64
}

// Check fails if a transaction may not be done: with *Moved, ErrLost, or else ErrConflict or ErrHeld. The order matters: a transaction that was done
// has moved the log.
func (t Txn) Check(c Contents) error {
	if n := c.Log(SlotOf(t.Session)).N; n != t.Was {
		return &Moved{n}
	}
	if !c.Alive(t.Session) {
		return fmt.Errorf("session %s is dead: %w", t.Session, ErrLost)
	}
	for _, o := range t.Held {
		if now := c.Owner(o.Key); !now.Is(o) {
			return fmt.Errorf("%s is owned by %q in %s: %w", o.Key, now.Member, now.Epoch, ErrLost)
		}
	}
	for _, taking := range t.Take {
		if now := c.Owner(taking.Owner.Key); !now.Is(taking.Seen) && (now.Known() || taking.Seen.Known()) {
			return fmt.Errorf("%s is owned by %q in %s: %w", taking.Owner.Key, now.Member, now.Epoch, ErrConflict)
		}
		if dead := taking.Dead(); dead != "" && c.Alive(dead) {
			return fmt.Errorf("%s: %w", taking.Owner.Key, ErrHeld)
		}
	}
	for _, op := range t.Ops {
		if now := c.Version(op.Key); op.If != Any && op.If != now {
			return fmt.Errorf("record %s: %w", op.Key, ErrConflict)
		}
	}
	return nil
}

// Taking is a change of an owner.
type Taking struct{ Seen, Owner Owner }

// Dead is the session that must be dead, if any.
func (t Taking) Dead() string {
	if t.Seen.Released || t.Seen.Session == t.Owner.Session {
		return ""
	}
	return t.Seen.Session
}

// Version returns that of the records that the transaction writes.
func (t Txn) Version() int64 { return t.Log.N<<8 | int64(SlotOf(t.Session)) }

// Moved says that a slot's log has an unexpected number.
type Moved struct{ N int64 }

// Error says so.
func (m *Moved) Error() string { return fmt.Sprintf("the log is at %d", m.N) }

// SessionID is the id of the session in a slot.
func SessionID(slot int, random string) string { return fmt.Sprintf("%02x.%s", slot, random) }

// SlotOf is the slot of a session.
func SlotOf(session string) int {
	slot, _, _ := strings.Cut(session, ".")
	n, err := strconv.ParseUint(slot, 16, 8)
	if err != nil {
		return MaxMembers // nobody has it
	}
	return int(n)
}

// logBytes bounds the keys of a log, which drops older ones. DynamoDB bills items by the KB, and this one is in each write.
const logBytes = 700

// Log is the log of a slot.
type Log struct {
	// Session wrote it last, or has the slot.
	Session string `json:"session"`
	// N is the number of the last write, Floor that of the last dropped one.
	N     int64   `json:"n"`
	Floor int64   `json:"floor"`
	Last  []Entry `json:"last,omitempty"`
}

// Entry lists the changes of one write.
type Entry struct {
	N       int64    `json:"n"`
	Records []string `json:"r,omitempty"`
	Owners  []string `json:"o,omitempty"`
}

func (e Entry) size() int {
	size := 24
	for _, keys := range [][]string{e.Records, e.Owners} {
		for _, k := range keys {
			size += len(k) + 3
		}
	}
	return size
}

// with is the log after one more write.
func (l Log) with(session string, e Entry) Log {
	n := Log{Session: session, N: e.N, Floor: l.Floor, Last: append(l.Last[:len(l.Last):len(l.Last)], e)}
	size := 0
	for i := len(n.Last) - 1; i >= 0; i-- {
		if size += n.Last[i].size(); size > logBytes {
			n.Floor, n.Last = n.Last[i].N, n.Last[i+1:]
			break
		}
	}
	return n
}

// since returns the changes after number n; ok is false if the log no longer has them all.
func (l Log) since(n int64) (entries []Entry, ok bool) {
	if n == l.N {
		return nil, true
	}
	if n < l.Floor || n > l.N {
		return nil, false
	}
	for i, e := range l.Last {
		if e.N > n {
			// No write has a number between those of two entries.
			return l.Last[i:], n == l.Floor || i > 0 && l.Last[i-1].N == n
		}
	}
	return nil, false
}

// Mark stands for a state of the records: the number of each slot's log.
type Mark struct {
	engine string
	n      map[int]int64
}

// String is for tests and logs.
func (m Mark) String() string {
	b, err := json.Marshal(m.n)
	if err != nil {
		return err.Error()
	}
	return m.engine + string(b)
}

// has reports whether the write that made a record's version is part of the mark.
func (m Mark) has(version int64) bool { return m.n[int(version&0xff)] >= version>>8 }
