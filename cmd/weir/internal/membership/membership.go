// Package membership makes a daemon one of several members of its instance. It adapts package coord to the
// daemon: keys, records and leases. It knows neither AWS nor Git. A single daemon does not use it.
//
// # Terms
//
// A member owns scopes (an account and region) and sources; each has a key, see ScopeKey and SourceKey. A member works on a key under a lease. Everything
// that works on a key uses it through Leases.Use or Leases.While, and the member releases the key only when nothing uses it any more. Fence guards each
// write to AWS.
//
// Members exchange information only through records:
//
//	head/SOURCE/NAME     the commit to apply of a source, written by the source's owner       Heads
//	report/TARGET/N      the last reports of a target, written by its scope's owner           Reports
//	pull/SOURCE/NUMBER/N a pull request as the page shows it, written by its source's owner   Pulls
//	ask/TIME-RANDOM      a request to read or retry something, written by any member          Requests
//	state/...            everything that package state stores                                 Member.Store
package membership

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/state"
)

// Options configures a member.
type Options struct {
	Engine *coord.Engine
	Member coord.Member
	Logger *slog.Logger
	// Scopes returns the keys that should be owned.
	Scopes func() []coord.Scope
	// Begin prepares the work on a key, and Leases.While waits for it. It may be nil.
	Begin func(*coord.Lease)
	// Work works on a key, in the lease's context. The key is released when Work has returned and nothing uses the key.
	Work func(*coord.Lease)
	// First receives the records before the member joins. It may be nil.
	First func(ctx context.Context, records *state.Shared) error
	// Tell receives events. It must not block.
	Tell func(coord.Event)
	// Random returns a number below n, for delays. If it is nil, math/rand is used.
	Random func(n int64) int64
}

// Member is this member. Callers use its parts directly.
type Member struct {
	Name string
	// Keeper takes keys and hands them over. Leases contains the keys that this member works on.
	Keeper *coord.Keeper
	Leases *Leases
	// Mirror is a copy of the records in memory. Store writes records as a member; Held writes as an owner.
	Mirror *coord.Mirror
	Store  *state.Shared

	Heads    *Heads
	Reports  *Reports
	Pulls    *Pulls
	Requests *Requests

	engine *coord.Engine
	outbox *outbox
}

// Name returns a name for a member: the name of its host and a random part.
func Name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "weir"
	}
	var random [3]byte
	_, _ = rand.Read(random[:]) // it never fails
	return fmt.Sprintf("%.40s-%s", host, hex.EncodeToString(random[:]))
}

// Open reads the records. The member joins when Run is called.
func Open(ctx context.Context, o Options) (*Member, error) {
	m := &Member{Name: o.Member.Name, Mirror: coord.NewMirror(o.Engine, state.LogPrefix), engine: o.Engine, outbox: newOutbox()}
	m.Leases = newLeases(o)
	m.Keeper = coord.NewKeeper(coord.KeeperOptions{
		Engine: o.Engine, Mirror: m.Mirror, Member: o.Member, Scopes: o.Scopes, Run: m.Leases.run, Tell: o.Tell, Random: o.Random,
	})
	m.Leases.keeper = m.Keeper
	if err := m.openStore(ctx, o); err != nil {
		return nil, err
	}
	m.Leases.losses = &losses{mirror: m.Mirror, store: m.Store, log: o.Logger}
	m.Heads = &Heads{m.Mirror, o.Logger}
	m.Requests = newRequests(m.Mirror, m.Keeper.Session, o.Logger, m.outbox.wake)
	m.Reports = newReports(m.Mirror, m.Keeper.Session, o.Logger, m.outbox.wake)
	m.Pulls = newPulls(m.Mirror, o.Logger, m.outbox.wake)
	m.outbox.senders = []func(context.Context) bool{m.Requests.send, m.Pulls.send, m.Reports.send}
	m.Leases.flush = func(l *coord.Lease) { m.Reports.flush(l); m.Pulls.flush(l) }
	return m, nil
}

// openStore opens the records of package state. Writes before the member joins use a separate session.
func (m *Member) openStore(ctx context.Context, o Options) error {
	session, err := o.Engine.Join(ctx, coord.Member{Name: m.Name + "-opens", Draining: true}, coord.TTL)
	if err != nil {
		return fmt.Errorf("open the records of the instance: %w", err)
	}
	store, err := state.OpenShared(ctx, records{m.engine, m.Mirror, func() (writer, error) { return session, nil }}, m.Name)
	if err == nil && o.First != nil {
		err = o.First(ctx, store)
	}
	if err = errors.Join(err, session.Leave(ctx)); err != nil {
		return err
	}
	m.Store = store.With(records{m.engine, m.Mirror, func() (writer, error) { return sessionOf(m.Keeper) }})
	return nil
}

// Run runs the member. When ctx ends, it hands over what it owns.
func (m *Member) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { m.outbox.run(sending) })
	wg.Go(func() { m.Leases.losses.watch(sending) })
	m.Keeper.Run(ctx)
	stop()
	wg.Wait()
	return nil
}

// Held returns a store that writes records as the owner of a key. It returns nil if this member is not the owner.
func (m *Member) Held(key string) state.Store {
	l := m.Leases.Get(key)
	if l == nil {
		return nil
	}
	return m.Store.With(records{m.engine, m.Mirror, func() (writer, error) { return leaseWriter{l}, nil }})
}

// writeWithin is the timeout of one write.
const writeWithin = 5 * time.Second

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
