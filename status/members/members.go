// Package members describes the members that share the work of an instance: which daemons are alive, which
// member has owned each scope and source since when, what is unowned, and whose clock differs. It derives
// this from package coord's reads of the engine, for the page, the API, metrics and the command line. It
// changes nothing.
//
// # Terms
//
// A member is a daemon that is alive. It owns scopes (a partition, an account and a region, and a custom
// endpoint if there is one) and sources. All times use the clock of the member that answers the request.
//
// Something is unowned if it should have an owner but no living member owns it. A few seconds of that are
// normal during a takeover; more than a minute is a fault.
package members

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Alone is the kind of engine of a single daemon.
const Alone = "file"

// View describes the members of an instance at one moment. Programs get it as JSON.
type View struct {
	Engine  Engine   `json:"engine"`
	Members []Member `json:"members"`
	Owned   []Owned  `json:"owned"`
}

// Engine is the database with the shared records.
type Engine struct {
	// Kind is dynamodb, etcd, or file for a single daemon.
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	// Lag is the view's age in seconds.
	Lag float64 `json:"lagSeconds"`
	// Error is the last error if the engine does not answer, empty if it does.
	Error string `json:"error,omitempty"`
	// Refused is the reason why the engine accepts reads but no writes, and RefusedSince the start of that;
	// empty if it accepts writes.
	Refused      string    `json:"refused,omitempty"`
	RefusedSince time.Time `json:"refusedSince,omitzero"`
}

// Member is a daemon that is alive.
type Member struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Address is the address of its page.
	Address string `json:"address,omitempty"`
	// Answers says that this member answers the current request.
	Answers bool `json:"answers,omitempty"`
	// Draining says that the member is handing over everything that it owns, and takes nothing.
	Draining bool `json:"draining,omitempty"`
	// Differs lists the sections in which its configuration differs from the answering member's, if both
	// have the same version.
	Differs []string `json:"differs,omitempty"`
	// Clock is the number of seconds by which its clock is ahead of the answering member's, if known.
	Clock   *float64 `json:"clockSeconds,omitempty"`
	Scopes  int      `json:"scopes"`
	Sources int      `json:"sources"`
}

// The kinds of Owned.
const (
	Scope  = "scope"
	Source = "source"
)

// Owned is a scope or source. One member at a time owns it.
type Owned struct {
	Key       string `json:"key"`
	Kind      string `json:"kind"`
	Partition string `json:"partition,omitempty"`
	Account   string `json:"account,omitempty"`
	Region    string `json:"region,omitempty"`
	// Owner is a living member, empty if unowned. Last is the previous owner, if any.
	Owner string `json:"owner"`
	Last  string `json:"last,omitempty"`
	// Since is the time at which the owner took it, or at which it was first seen unowned.
	Since time.Time `json:"since,omitzero"`
	// Epoch identifies this ownership.
	Epoch string `json:"epoch,omitempty"`
	// Targets lists the targets of a scope, or the name of a source.
	Targets []string `json:"targets"`
}

// Name returns the key without its kind, for readers.
func (o Owned) Name() string { return strings.TrimPrefix(o.Key, o.Kind+"/") }

// Wanted is a scope or source that should have an owner.
type Wanted struct {
	Key     string
	Targets []string
}

// Unowned returns the unowned scopes and sources.
func (v *View) Unowned() (out []Owned) {
	for _, o := range v.Owned {
		if o.Owner == "" {
			out = append(out, o)
		}
	}
	return out
}

// OwnerOf returns the scope of a target; ok is false if it is unknown.
func (v *View) OwnerOf(target string) (Owned, bool) {
	i := slices.IndexFunc(v.Owned, func(o Owned) bool { return o.Kind == Scope && slices.Contains(o.Targets, target) })
	if i < 0 {
		return Owned{}, false
	}
	return v.Owned[i], true
}

// Find resolves a name: a key with or without its kind, account/region, or a target. The error lists the possible names.
func (v *View) Find(name string) (Owned, error) {
	var found []Owned
	for _, o := range v.Owned {
		if name == o.Key || name == o.Name() {
			return o, nil
		}
		if o.Kind == Scope && (name == o.Account+"/"+o.Region || slices.Contains(o.Targets, name)) || o.Kind == Source && slices.Contains(o.Targets, name) {
			found = append(found, o)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	among := found
	if len(found) == 0 {
		among = v.Owned
	}
	var names []string
	for _, o := range among[:min(len(among), 20)] {
		names = append(names, o.Key)
	}
	return Owned{}, &UnknownError{Name: name, Several: len(found) > 1, Names: names}
}

// UnknownError means that a name matches nothing, or several things.
type UnknownError struct {
	Name    string
	Several bool
	Names   []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	if e.Several {
		return fmt.Sprintf("%q may be any of %s", e.Name, strings.Join(e.Names, ", "))
	}
	return fmt.Sprintf("no member, scope or source is called %q", e.Name)
}

// owned parses a key: scope/<partition>/<account>/<region>[/<endpoint>] or source/<id>.
func owned(key string) Owned {
	o := Owned{Key: key, Targets: []string{}}
	kind, rest, _ := strings.Cut(key, "/")
	o.Kind = kind
	if parts := strings.Split(rest, "/"); kind == Scope && len(parts) >= 3 {
		o.Partition, o.Account, o.Region = parts[0], parts[1], parts[2]
	}
	return o
}

// byKind sorts scopes before sources, and each by key.
func byKind(a, b Owned) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key)) }

// alive returns the names of members by session.
func alive(list []coord.Alive) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		out[a.Session] = a.Member.Name
	}
	return out
}
