// Package world contains the part that the emulated services of a region share: account and name, time, ids,
// timers, quotas, tags, client tokens, tables of resources, and fault scripts.
//
// A [World] belongs to an emulator and is shared by all its regions. It advances when the server asks
// [World.Next] for due timers. A timer runs with the time at which it was due, so a clock that jumps and one
// that steps give the same history. Ids come from a counter or, for resources that every emulator has, from
// the resource's name: the same calls give the same ids. All exported fields of [State] and [Region] are
// saved.
//
// The package does not depend on any service or protocol, so that every service can use it.
package world

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// World is the part that the regions of an emulator share.
type World struct {
	Now     time.Time // the clock's time, or the due time of the running timer
	Timings Timings
	Quotas  map[string]int
	State   *State
}

// State is the part of a world that survives a restart.
type State struct {
	Counter  uint64 // number of ids issued so far
	TimerSeq uint64
	Timers   timerHeap
}

// Region is one account's part of one region, which all services share. Each service wraps it in its own
// type.
type Region struct {
	Account string
	Name    string
	Tokens  map[string]*ClientToken
	Quotas  map[string]int `json:",omitempty"` // by name, if they differ from the values for all regions
	// Trusting assumes that resources that were not grafted exist if a call names them: see Server.Graft.
	Trusting bool `json:",omitempty"`

	world *World
}

// ClientToken remembers the answer to a call that carried a client token.
type ClientToken struct {
	Digest   string // digest of the request
	Answer   []byte // the first call's answer
	Resource string // name of the resource that the call created or changed, in the caller's format
}

// Join connects the region, which is new or was read from JSON, with the world.
func (r *Region) Join(w *World) {
	r.world = w
	if r.Tokens == nil {
		r.Tokens = map[string]*ClientToken{}
	}
}

// Now returns the emulator's time: the clock's time, or the due time of the running timer.
func (r *Region) Now() time.Time { return r.world.Now }

// Timings returns the server's durations.
func (r *Region) Timings() Timings { return r.world.Timings }

// ARN builds an ARN in this account and region.
func (r *Region) ARN(service, resource string) string {
	return "arn:" + Partition(r.Name) + ":" + service + ":" + r.Name + ":" + r.Account + ":" + resource
}

// NewID returns an identifier in AWS's format: prefix, dash, 17 hexadecimal digits. Ids derive from a
// counter, so the same calls give the same ids.
func (r *Region) NewID(prefix string) string {
	return prefix + "-" + r.NewHex(prefix, 17)
}

// NewHex returns n (at most 64) hexadecimal digits, different on each call.
func (r *Region) NewHex(kind string, n int) string {
	r.world.State.Counter++
	return Hash(fmt.Sprintf("%s|%s|%s|%d", kind, r.Account, r.Name, r.world.State.Counter), n)
}

// NewUUID returns an identifier in the format of a UUID.
func (r *Region) NewUUID(kind string) string {
	return UUID(r.NewHex(kind, 32))
}

// SeedID returns an id for a resource that every emulator has. It is the same in all emulators, regardless
// of earlier calls.
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
