// Package coord lets several daemons of one instance share its work. It tracks which members are alive and
// which member owns what, and stores the records that all members read. The data are in an engine, which is
// DynamoDB or etcd. Members never call each other, and there is no consensus protocol beyond the engine's
// conditional writes.
//
// # Terms
//
// An engine holds the data of one instance. It gets an id at first use. A wiped engine gets another id, so
// members notice the loss.
//
// A member is a daemon. It joins with a session, which lives as long as the member renews it. A dead session
// stays dead: the member joins again with a new one. Each session has a slot, a small number that no other
// living session has. Slots are used again, so the engine's data grow only with the largest number of members
// that were alive at once.
//
// An owner is a record that names the session that owns a key, the start of the ownership and its epoch. The
// keys are scopes (partition, account, region) and sources. A session takes a key with a compare-and-set on
// the owner that it read. This succeeds only if the key never had an owner, if its owner released it, or if
// the owner's session is dead. Each taking has a new epoch. Owners are never deleted, because the next owner
// must know what to wait for.
//
// A record is a value under a key. Owners write results. Such a write names the keys that the session must
// own, and fails as a whole with ErrLost if it does not own one of them. Any member writes inputs, with a
// compare-and-set on the version. Versions are only compared for equality.
//
// A log belongs to each slot. It has the number of the slot's last write, and the keys of its last few
// writes. Every write adds its number to the log of its session's slot, in the same transaction. So the logs
// together are the change counter that members poll, and no item is written by all members. A version is
// derived from the number of the write that made it. If the answer to a write is lost, the member sends the
// same write again, and the number shows whether it was done already. Numbers are milliseconds of a clock, or
// one more than the last number if that is greater. So they only grow, even if an engine is restored from a
// backup.
//
// # Rules
//
// Placement proposes an owner, but only a lease makes one. The holder counts its lease from before it sent
// the renewal, by the fastest of three clocks (see Instant). The engine decides whether another member's
// session is dead. With etcd, etcd's own lease decides. With DynamoDB, a session is dead if its counter did
// not change for the length of a lease on the observer's clock; a member marks it as dead before it takes a
// key from it.
//
// AWS has no fencing tokens, so three times prevent concurrent writes of two members:
//
//   - A write to AWS starts only if FenceBegin of the lease is left.
//   - The fence cuts a write off FenceCut before the lease ends.
//   - The next owner waits for Quiet after the end of the lease before it reads AWS.
//
// If the engine has no owner of a key on record, it may have forgotten one. The next owner then waits for
// the length of a lease as well. After a recorded release it does not wait, because the owner had nothing in
// flight.
//
// Two cases remain. Bytes that the kernel has accepted may still arrive late, so the next owner works such
// that they do no harm. And a member cannot notice that its machine stood still if no clock shows it, as
// when only the wall clock would and somebody sets it back within the same lease.
//
// Reads are consistent: an answer includes everything that was committed before the read was sent. Every
// clock that decides something is a Clock, and every other wait uses package time, so tests can simulate
// both.
//
// # Parts
//
//   - Store is the port that back ends implement: reads, writes of sessions, and one transaction.
//   - Engine and Session work with any Store.
//   - Mirror is a copy of the records in memory that knows its age.
//   - Keeper runs a member. Its registration joins and renews the session, placement proposes owners,
//     assignment decides what to do with each key, holdings are the leases of the session, and workers start
//     and stop the work on each key.
//   - Lease and Fence bound the work of an owner.
package coord

import (
	"cmp"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// The numbers of leases.
const (
	// TTL is the time that a session lives without a renewal. RenewEvery is the time between renewals.
	TTL        = 10 * time.Second
	RenewEvery = 2 * time.Second
	// A write to AWS starts only if FenceBegin of the lease is left, and is cut off FenceCut before the lease ends.
	FenceBegin = 5 * time.Second
	FenceCut   = time.Second
	// Quiet is the time that the next owner waits after the end of a lease.
	Quiet = 3 * time.Second
)

// The limits of one write. Every engine accepts writes within them.
const (
	MaxKey   = 512
	MaxValue = 300 << 10 // exclusive
	MaxWrite = 1 << 20   // values and keys of one write together
	MaxOps   = 64
	// MaxMembers bounds the members that are alive at once.
	MaxMembers = 255
)

var (
	// ErrLost says that the session is dead, or does not own a key that the write names.
	ErrLost = errors.New("the lease is lost")
	// ErrConflict says that a record or an owner has changed since it was read.
	ErrConflict = errors.New("somebody else was first")
	// ErrHeld says that a living session owns the key.
	ErrHeld = errors.New("another living member owns it")
	// ErrUnknown says that no answer arrived, so a write may have been done or may still be done.
	ErrUnknown = errors.New("no answer arrived: it may have been written")
	// ErrFull says that MaxMembers are alive.
	ErrFull = errors.New("there are too many members")
)

// AwayError says that the engine could not be reached, or cannot answer now. The caller may try again.
type AwayError struct{ Err error }

// Error returns the engine's error.
func (e *AwayError) Error() string { return e.Err.Error() }

// Unwrap returns the engine's error.
func (e *AwayError) Unwrap() error { return e.Err }

// Member is a daemon as other members see it.
type Member struct {
	// Name is the name of the host with a random part.
	Name string `json:"name"`
	// Address is the address of the member's page, for people.
	Address string `json:"address,omitempty"`
	Version string `json:"version,omitempty"`
	// Config describes the member's configuration, in a format that this package does not know.
	Config string `json:"config,omitempty"`
	// Draining says that the member must own nothing.
	Draining bool `json:"draining,omitempty"`
	// Clock is the time on the member's wall clock when it wrote this.
	Clock time.Time `json:"clock,omitzero"`
}

// Alive is a member with a session that is not dead.
type Alive struct {
	Member  Member
	Session string
}

// Epoch identifies one taking of a key. Within one engine, N only grows.
type Epoch struct {
	Engine string `json:"engine"`
	N      int64  `json:"n"`
}

// String returns the epoch in the form that people see.
func (e Epoch) String() string { return fmt.Sprintf("%s/%d", e.Engine, e.N) }

// Owner is the owner of a key. The zero Owner means that the key never had one.
type Owner struct {
	Key     string `json:"key"`
	Member  string `json:"member"`
	Session string `json:"session"`
	Epoch   Epoch  `json:"epoch"`
	// Since is the time of the taking on the owner's wall clock, for people.
	Since time.Time `json:"since"`
	// Released says that the session released the key and has nothing in flight. For names the member that it
	// released the key for, if any.
	Released bool   `json:"released,omitempty"`
	For      string `json:"for,omitempty"`
}

// Known reports whether the key has, or had, an owner.
func (o Owner) Known() bool { return o.Session != "" }

// Is reports whether both are the same state of the same taking of a key.
func (o Owner) Is(other Owner) bool {
	return o.Key == other.Key && o.Session == other.Session && o.Epoch == other.Epoch && o.Released == other.Released
}

// Record is a value under a key. Version 0 stands for no record.
type Record struct {
	Key     string
	Value   []byte
	Version int64
}

// Any as the version of an Op accepts any version, or none.
const Any int64 = -1

// Op writes or deletes one record.
type Op struct {
	Key   string
	Value []byte
	// Delete deletes it, without a Value.
	Delete bool
	// If is the version that the record must have. It is 0 if there must be no record.
	If int64
}

// Write is a set of operations that are done as a whole or not at all.
type Write struct {
	// Held lists the keys that the session must own. It is empty for inputs.
	Held []Owner
	Ops  []Op
}

// sizeOf returns the size of all keys and values in bytes.
func sizeOf(ops []Op) (n int) {
	for _, op := range ops {
		n += len(op.Key) + len(op.Value)
	}
	return n
}

// check returns an error if the write is invalid.
func (w Write) check() error {
	for _, op := range w.Ops {
		if err := CheckKey(op.Key); err != nil {
			return err
		}
		if len(op.Value) >= MaxValue {
			return fmt.Errorf("write %s: %d bytes are more than a record takes", op.Key, len(op.Value))
		}
	}
	if size := sizeOf(w.Ops); len(w.Ops)+len(w.Held) > MaxOps || size > MaxWrite {
		return fmt.Errorf("write: %d records of %d bytes and %d owners are more than one write takes", len(w.Ops), size, len(w.Held))
	}
	seen := map[string]bool{}
	for _, op := range w.Ops {
		if seen[op.Key] {
			return fmt.Errorf("write %s: it is in one write twice", op.Key)
		}
		seen[op.Key] = true
	}
	return nil
}

// CheckKey returns an error if a key of a record or an owner is invalid.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey || !utf8.ValidString(key) {
		return fmt.Errorf("key %.40q: it must have 1 to %d bytes of UTF-8", key, MaxKey)
	}
	for _, r := range key {
		if unicode.IsControl(r) {
			return fmt.Errorf("key %q: it has a control character", key)
		}
	}
	return nil
}

// next returns the number after last. wall is the time.
func next(last int64, wall time.Time) int64 { return max(last+1, wall.UnixMilli()) }

// byKey compares owners by their keys.
func byKey(a, b Owner) int { return cmp.Compare(a.Key, b.Key) }
