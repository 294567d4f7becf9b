// Package coord lets several daemons of one instance share its work: who is alive, who
// owns what, and the records that all of them read. It does so over an engine that
// exists (DynamoDB or etcd) and has no
// protocol of its own for consensus or membership; members never call each other.
//
// # Terms
//
// An engine holds the data of one instance. It gets an id at first use, which tells a wiped engine from the one before it.
//
// A member is a daemon. It joins with a session, which lives as long as it is renewed: its lease. A dead session stays dead; a member that goes on
// joins anew. A session has a slot, a small number that no other living session has. Later sessions use it again, so the engine holds data for only
// as many members as there were at once.
//
// An owner says which session owns a key, since when, and in which epoch. Keys of owners are scopes (partition, account, region) and sources. Taking
// is compare-and-set on the owner as it was read, and succeeds only if nobody owned the key, its owner released it, or the owner's session is dead.
// An owner is never deleted: released, or with a dead session, it says what the next one must wait for. Each taking has its own epoch.
//
// A record is a value under a key. Owners write results, and only while they are owners: such a write names the keys that they own, and fails as a
// whole with ErrLost otherwise. Any member writes inputs, by compare-and-set on the version. Versions are compared only for equality.
//
// Each slot has a log: the number of its last write and the keys of the last few. A write puts its number into the log of its session's slot, in one
// transaction with all else. So all logs together are the change counter that members poll, without one item that everybody writes. A version is the
// number of the write that made it. A member sends a write again if its answer was lost, and it happens once. Numbers are milliseconds of a clock or
// one more than the last, whichever is greater. So they only grow, and an engine restored from a backup does not repeat numbers that it gave after
// the backup.
//
// # Rules
//
// Placement proposes, the lease decides. Only a lease makes an owner, and its holder counts it from before the renewal was sent, by the clock of
// three that went furthest (see Instant). Each engine decides whether another member's session is dead: etcd by its own lease; with DynamoDB a
// session is dead if its counter stood still for a full lease on the observer's clock, and a member that takes from it first marks it dead.
//
// AWS has no fencing tokens. So a write to AWS begins only with FenceBegin of the lease left, the fence cuts it FenceCut before the end, and a
// successor waits Quiet past the end of the lease before it observes anew. If the engine knows no owner at all, it may have forgotten one, and the
// successor waits a lease longer. A recorded release needs no waiting: its owner has nothing under way. Bytes that the kernel has taken may still
// arrive: nothing excludes that, so the successor works such that they do no harm. Nor can a member see that its machine stood still if no clock
// shows it, as when only the wall clock would and somebody sets it back within the same lease.
//
// Reads are consistent: an answer was true after the read was sent. Every wait that is not for the engine uses package time, and every clock that
// decides is a Clock, so that tests simulate both.
//
// # Parts
//
// Store is the port that back ends implement: five reads and writes and one transaction. Engine and Session are the same over all of them. Keeper
// renews, places, takes and hands over for a member, Lease and Fence bound an owner's work, and Mirror is a replica of the records that knows its
// age.
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
	// TTL is how long a session lives without renewal, RenewEvery how often it is renewed.
	TTL        = 10 * time.Second
	RenewEvery = 2 * time.Second
	// FenceBegin must be left of the lease when an attempt begins, and attempts are cut FenceCut before its end.
	FenceBegin = 5 * time.Second
	FenceCut   = time.Second
	// Quiet is how long a successor waits past the end of a lease.
	Quiet = 3 * time.Second
)

// The limits of one write, which every engine takes.
const (
	MaxKey   = 512
	MaxValue = 300 << 10 // exclusive
	MaxWrite = 1 << 20   // values and keys of one write together
	MaxOps   = 64
	// MaxMembers is how many can be alive at once.
	MaxMembers = 255
)

var (
	// ErrLost says that the session is dead, or no longer owns a key that it claimed.
	ErrLost = errors.New("the lease is lost")
	// ErrConflict says that a record or an owner has changed since it was read.
	ErrConflict = errors.New("somebody else was first")
	// ErrHeld says that a living session owns the key.
	ErrHeld = errors.New("another living member owns it")
	// ErrUnknown says that a write may have happened, or may still happen: nobody answered.
	ErrUnknown = errors.New("no answer arrived: it may have been written")
	// ErrFull says that MaxMembers are alive.
	ErrFull = errors.New("there are too many members")
)

// AwayError says that the engine could not be reached, or cannot answer now: the same may be done a moment later.
type AwayError struct{ Err error }

// Error is that of the engine.
func (e *AwayError) Error() string { return e.Err.Error() }

// Unwrap returns the engine's error.
func (e *AwayError) Unwrap() error { return e.Err }

// Member is a daemon as other members see it.
type Member struct {
	// Name is the host's, and a random part.
	Name string `json:"name"`
	// Address is that of its page, only for people.
	Address string `json:"address,omitempty"`
	Version string `json:"version,omitempty"`
	// Config stands for the configuration by which it works, in words that only who writes and compares them knows.
	Config string `json:"config,omitempty"`
	// Draining says that it wants to own nothing.
	Draining bool `json:"draining,omitempty"`
	// Clock is the time on its wall clock when it wrote this.
	Clock time.Time `json:"clock,omitzero"`
}

// Alive is a member with a session that is not dead.
type Alive struct {
	Member  Member
	Session string
}

// Epoch tells one taking of a key from every other. N grows in one engine.
type Epoch struct {
	Engine string `json:"engine"`
	N      int64  `json:"n"`
}

// String is an epoch as people see it.
func (e Epoch) String() string { return fmt.Sprintf("%s/%d", e.Engine, e.N) }

// Owner says who owns a key. The zero Owner says that nobody ever did.
type Owner struct {
	Key     string `json:"key"`
	Member  string `json:"member"`
	Session string `json:"session"`
	Epoch   Epoch  `json:"epoch"`
	// Since is the time on the owner's wall clock, only for people.
	Since time.Time `json:"since"`
	// Released says that it no longer owns the key and has nothing under way; For names the member that it released the key for, if any.
	Released bool   `json:"released,omitempty"`
	For      string `json:"for,omitempty"`
}

// Known reports whether there is, or was, an owner.
func (o Owner) Known() bool { return o.Session != "" }

// Is reports whether both are one taking of a key.
func (o Owner) Is(other Owner) bool {
	return o.Key == other.Key && o.Session == other.Session && o.Epoch == other.Epoch && o.Released == other.Released
}

// Record is a value. Version 0 stands for no record.
type Record struct {
	Key     string
	Value   []byte
	Version int64
}

// Any as the version of an Op means whatever there is.
const Any int64 = -1

// Op writes or deletes one record.
type Op struct {
	Key   string
	Value []byte
	// Delete deletes it, without a Value.
	Delete bool
	// If is the version that the record must have: 0 if there must be none, or Any.
	If int64
}

// Write is done as a whole or not at all.
type Write struct {
	// Held are the keys that the session must still own. Empty for inputs.
	Held []Owner
	Ops  []Op
}

// sizeOf is how many bytes of keys and values are written.
func sizeOf(ops []Op) (n int) {
	for _, op := range ops {
		n += len(op.Key) + len(op.Value)
	}
	return n
}

// check fails for an invalid write.
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

// CheckKey fails for an invalid key of a record or an owner.
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

// next is the number after last, by a wall clock.
func next(last int64, wall time.Time) int64 { return max(last+1, wall.UnixMilli()) }

// byKey orders owners.
func byKey(a, b Owner) int { return cmp.Compare(a.Key, b.Key) }
