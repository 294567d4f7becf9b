// Package world holds the part that the emulated services of a region share: its account and name,
// the time, ids, later events, quotas, tags, client tokens, tables of resources, and scripts of
// faults.
//
// A [World] belongs to an emulator and is shared by all its regions. It advances when the front
// asks [World.Next] for due timers: a timer runs at the time at which it was due, so a clock that
// jumps and one that steps give the same history. Ids come from a counter or, for what every
// emulator has, from the resource's name: the same calls give the same ids. Everything exported in
// [State] and [Region] is saved.
//
// The package knows no service and no protocol, so that every service can use it.
package world

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// World is the part that the regions of an emulator share.
type World struct {
	Now     time.Time // the clock's, or while a timer runs the time at which it was due
	Timings Timings
	Quotas  map[string]int
	State   *State
}

// State is the part of a world that survives a restart.
type State struct {
	Counter  uint64 // ids handed out so far
	TimerSeq uint64
	Timers   timerHeap
}

// Region is one account's part of one region, as all services see it. Each service
// wraps it in its own type.
type Region struct {
	Account string
	Name    string
	Tokens  map[string]*ClientToken
	Quotas  map[string]int `json:",omitempty"` // by name, where they differ from all regions'
	// Trusting takes what calls name that was not grafted to exist: see Server.Graft.
	Trusting bool `json:",omitempty"`

	world *World
}

// ClientToken remembers the answer to a call that carried a client token.
type ClientToken struct {
	Digest   string // of the request
	Answer   []byte // as the first call's
	Resource string // what the call made or changed, in the caller's words
}

// Join makes the region, which is new or was read from JSON, one of a world.
func (r *Region) Join(w *World) {
	r.world = w
	if r.Tokens == nil {
		r.Tokens = map[string]*ClientToken{}
	}
}

// Now is the emulator's time: the clock's, or in a timer the time it was due.
func (r *Region) Now() time.Time { return r.world.Now }

// Timings are the server's durations.
func (r *Region) Timings() Timings { return r.world.Timings }

// ARN builds an ARN in this account and region.
func (r *Region) ARN(service, resource string) string {
	return "arn:" + Partition(r.Name) + ":" + service + ":" + r.Name + ":" + r.Account + ":" + resource
}

// NewID returns an identifier of AWS's shape: prefix, dash, 17 hexadecimal
// digits. Ids derive from a counter, so the same calls give the same ids.
func (r *Region) NewID(prefix string) string {
	return prefix + "-" + r.NewHex(prefix, 17)
}

// NewHex returns n (at most 64) hexadecimal digits, different on each call.
func (r *Region) NewHex(kind string, n int) string {
	r.world.State.Counter++
	return Hash(fmt.Sprintf("%s|%s|%s|%d", kind, r.Account, r.Name, r.world.State.Counter), n)
}

// NewUUID returns an identifier of the shape of a UUID.
func (r *Region) NewUUID(kind string) string {
	return UUID(r.NewHex(kind, 32))
}

// SeedID returns an id for something that every emulator has, the same in all of
// them and whatever was called before.
func (r *Region) SeedID(prefix, name string) string {
	return prefix + "-" + Hash("seed|"+prefix+"|"+r.Account+"|"+r.Name+"|"+name, 17)
}

func UUID(h string) string {
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

func Hash(text string, n int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:n]
}
