package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Store is the port that each back end implements. An error that is not one of this package's means that
// there was no answer, or an unexpected one; the request may have been done. Every read is consistent.
type Store interface {
	// Enter makes a session and gives it a slot that no session alive has. It makes the
	// engine's id at first use. The session's id has the slot and the random part.
	Enter(ctx context.Context, random string, m Member, ttl time.Duration) (Entered, error)
	// Renew renews the session, and returns the time that it lives now according to the engine. If m is not
	// nil, it publishes the member's changes. It returns ErrLost if the session is dead.
	Renew(ctx context.Context, session string, m *Member) (ttl time.Duration, err error)
	// End ends a session at once.
	End(ctx context.Context, session string) error
	// Poll reads the living members and the logs of all slots, in one consistent read. A session that is not
	// among them is dead, and Commit refuses its transactions.
	Poll(ctx context.Context) (Poll, error)
	// Owners lists all owners, including owners that released the key or whose session is dead. The effect of
	// a write may be missing even if its log was polled before.
	Owners(ctx context.Context) ([]Owner, error)
	// OwnersOf reads the owners of at most MaxOps keys. Keys without an owner are not in the result. It
	// includes everything that was polled before.
	OwnersOf(ctx context.Context, keys []string) ([]Owner, error)
	// Get reads at most MaxOps records, in the order of the keys. A missing record has version 0. The records
	// need not be of the same moment, but they include everything that was polled before.
	Get(ctx context.Context, keys []string) ([]Record, error)
	// List reads a page of records whose keys have a prefix and are greater than after, in the order of the
	// bytes of their keys. next is the after of the next page; it is empty on the last page. The effect of a
	// write may be missing even if its log was polled before.
	List(ctx context.Context, prefix, after string) (page []Record, next string, err error)
	// Commit does all of t or nothing. It returns the errors of Txn.Check.
	Commit(ctx context.Context, t Txn) error
	Close() error
}

// Entered is the start of a new session.
type Entered struct {
	Engine string
	Slot   int
	// Log is the slot's log, as the slot's last session left it.
	Log Log
	// TTL is the time that the session lives according to the engine.
	TTL time.Duration
}

// Poll is the answer to a poll. Members poll every second.
type Poll struct {
	// Engine is the engine's id, empty if it has none.
	Engine string
	Alive  []Alive
	Logs   map[int]Log
}

// Txn is a transaction of a session. The session must be alive, and the log of its slot must have the number Was.
type Txn struct {
	Session string
	Was     int64
	Log     Log
	// Held must be the current owners.
	Held []Owner
	// Take writes owners, each over the owner that was read. That one's session must be dead, unless it
	// released the key or is the transaction's session.
	Take []Taking
	Ops  []Op
}

// Contents gives Check access to an engine's data.
type Contents interface {
	Alive(session string) bool
	Log(slot int) Log
	// Owner returns the zero Owner for a key that nobody owns.
	Owner(key string) Owner
	// Version returns a record's version, or 0 for a missing record.
	Version(key string) int64
}

// Check returns an error if a transaction must not be done. It checks for *Moved first, because a transaction
// that was done already has changed the log. Then it checks for ErrLost, and last for ErrConflict and
// ErrHeld.
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

// Dead returns the session that must be dead, if any.
func (t Taking) Dead() string {
	if t.Seen.Released || t.Seen.Session == t.Owner.Session {
		return ""
	}
	return t.Seen.Session
}

// Version returns the version of the records that the transaction writes.
func (t Txn) Version() int64 { return t.Log.N<<8 | int64(SlotOf(t.Session)) }

// Moved says that a slot's log has the unexpected number N.
type Moved struct{ N int64 }

// Error returns the number.
func (m *Moved) Error() string { return fmt.Sprintf("the log is at %d", m.N) }

// SessionID returns the id of a session in a slot.
func SessionID(slot int, random string) string { return fmt.Sprintf("%02x.%s", slot, random) }

// SlotOf returns the slot of a session.
func SlotOf(session string) int {
	slot, _, _ := strings.Cut(session, ".")
	n, err := strconv.ParseUint(slot, 16, 8)
	if err != nil {
		return MaxMembers // a slot that no session has
	}
	return int(n)
}

// logBytes bounds the size of a log. It drops older entries, because DynamoDB bills items by the KB and each
// write contains the log.
const logBytes = 700

// Log is the log of a slot.
type Log struct {
	// Session is the session that wrote the log last, or has the slot.
	Session string `json:"session"`
	// N is the number of the last write. Floor is the number of the last write that was dropped from Last.
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

// with returns the log after another write.
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

// since returns the changes after number n. ok is false if the log no longer has all of them.
func (l Log) since(n int64) (entries []Entry, ok bool) {
	if n == l.N {
		return nil, true
	}
	if n < l.Floor || n > l.N {
		return nil, false
	}
	for i, e := range l.Last {
		if e.N > n {
			// No write has a number between the numbers of two entries.
			return l.Last[i:], n == l.Floor || i > 0 && l.Last[i-1].N == n
		}
	}
	return nil, false
}

// Mark identifies a state of the records by the number of each slot's log.
type Mark struct {
	engine string
	n      map[int]int64
}

// String returns the mark as text, for tests and logs.
func (m Mark) String() string {
	b, err := json.Marshal(m.n)
	if err != nil {
		return err.Error()
	}
	return m.engine + string(b)
}

// has reports whether the mark includes the write that made a version.
func (m Mark) has(version int64) bool { return m.n[int(version&0xff)] >= version>>8 }
