// Package membership makes a daemon one of the members of its instance: it translates package coord into
// the daemon's own terms. It knows keys, records and leases, and neither AWS nor Git.
//
// # Terms
//
// A member owns scopes (an account and region) and sources; the key of each is in keys.go. It works
// on a key until its lease's context ends, and uses it through Use: the member releases the key
// when nothing uses it any more. Fence guards each write to AWS. Members exchange information
// through records:
//
//	head/SOURCE/NAME     the commit that is applied of a source, by its owner
//	report/TARGET/N      the last report of a target, by its scope's owner
//	pull/SOURCE/NUMBER/N a pull request as it is shown, by its source's owner
//	ask/TIME-RANDOM      a request to read or retry something, by any member
//
// and, through Store, all that package state keeps. A daemon alone uses nothing here.
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

// Options of a member.
type Options struct {
	Engine *coord.Engine
	Member coord.Member
	Logger *slog.Logger
	Scopes func() []coord.Scope
	// Begin, if any, prepares the work on a key. While waits for it.
	Begin func(*coord.Lease)
	// Work works on a key, in the lease's context. The lease is given back when Work has
	// returned and nothing uses the key.
	Work func(*coord.Lease)
	// First, if any, gets the records before the member joins.
	First func(ctx context.Context, records *state.Shared) error
	// Tell gets events; it must not block.
	Tell func(coord.Event)
	// Random is a number below n, for delays; nil for one of math/rand.
	Random func(n int64) int64
}

// Member is this member, and its view of all other members.
type Member struct {
	o      Options
	mirror *coord.Mirror
	keeper *coord.Keeper
	store  *state.Shared

	mu   sync.Mutex
	uses map[*coord.Lease]*use
	// began is closed when work on a key begins.
	began chan struct{}
	// asks lists the requests that are done already, or from before this process.
	asks map[string]bool
	// reports has, by target, the last record read.
	reports map[string]readReport
	// pulls holds the version of each pull request's record at the last read, pullsAt the snapshot
	// of that read.
	pulls   map[pullKey]int64
	pullsAt *coord.Snapshot
	// replaced counts the replacements of the engine that are on record.
	replaced int
	out      outbox
}

// use counts the users of a key. It is prepared first. Once it is over, no new user starts, and
// work under way goes on until it ends or the lease does.
type use struct {
	sync.WaitGroup
	prepared, over bool
}

// readReport is the version of a record, and the number of its newest report.
type readReport struct{ version, n int64 }

// Name makes a name for a member: its host's, and a random part.
func Name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "weir"
	}
	var random [3]byte
	_, _ = rand.Read(random[:]) // it never fails
	return fmt.Sprintf("%.40s-%s", host, hex.EncodeToString(random[:]))
}

// Open reads the records. The member joins with Run.
func Open(ctx context.Context, o Options) (*Member, error) {
	c := &Member{o: o, mirror: coord.NewMirror(o.Engine, state.LogPrefix), uses: map[*coord.Lease]*use{}, began: make(chan struct{}), asks: map[string]bool{}, reports: map[string]readReport{}}
	c.out.due = make(chan struct{}, 1)
	c.out.last = map[string]published{}
	c.out.waiting = map[string]sending{}
	c.out.pulls = map[pullKey]waitingPull{}
	c.keeper = coord.NewKeeper(coord.KeeperOptions{Engine: o.Engine, Mirror: c.mirror, Member: o.Member, Scopes: o.Scopes, Run: c.work, Tell: o.Tell, Random: o.Random})
	// Writes before the member joins have their own session.
	session, err := o.Engine.Join(ctx, coord.Member{Name: o.Member.Name + "-opens", Draining: true}, coord.TTL)
	if err != nil {
		return nil, fmt.Errorf("open the records of the instance: %w", err)
	}
	c.store, err = state.OpenShared(ctx, records{c, func() (writer, error) { return session, nil }}, o.Member.Name)
	if err == nil && o.First != nil {
		err = o.First(ctx, c.store)
	}
	if err = errors.Join(err, session.Leave(ctx)); err != nil {
		return nil, err
	}
	for _, r := range c.mirror.Snapshot().List(askPrefix) {
		c.asks[r.Key] = true // others have done it
	}
	c.store = c.store.With(records{c, c.session})
	c.replaced = c.mirror.Replaced()
	return c, nil
}

// Run runs the member. When ctx ends, it hands over what it owns.
func (c *Member) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { c.publish(sending) })
	c.keeper.Run(ctx)
	stop()
	wg.Wait()
	return nil
}

// work allows uses of a key, and returns when nothing uses it any more.
func (c *Member) work(l *coord.Lease) {
	if !c.trusts(l) {
		return
	}
	uses := &use{}
	c.mu.Lock()
	c.uses[l] = uses
	c.mu.Unlock()
	if c.o.Begin != nil {
		c.o.Begin(l)
	}
	c.mu.Lock()
	uses.prepared = true
	close(c.began)
	c.began = make(chan struct{})
	c.mu.Unlock()
	c.o.Work(l)
	<-l.Context().Done()
	c.mu.Lock()
	uses.over = true
	c.mu.Unlock()
	uses.Wait()
	c.flush(l)
	c.mu.Lock()
	delete(c.uses, l)
	c.mu.Unlock()
}

// trusts records a loss before any work if somebody replaced the engine, or it went back to an earlier state: people's later requests are gone. It
// tries until it succeeds, or the lease ends.
func (c *Member) trusts(l *coord.Lease) bool {
	for {
		now := c.mirror.Replaced()
		c.mu.Lock()
		known := c.replaced == now
		c.mu.Unlock()
		if known {
			return true
		}
		err := state.Lose(c.store, "the coordination engine is another than it was, or went back to what it was earlier")
		if err == nil {
			c.mu.Lock()
			c.replaced = now
			c.mu.Unlock()
			continue
		}
		c.o.Logger.Error("that records were lost cannot be written: nothing is done until it is", "key", l.Owner.Key, "error", err)
		if !sleep(l.Context(), time.Second) {
			return false
		}
	}
}

// Lease returns that of a key that this member owns and works on, else nil.
func (c *Member) Lease(key string) *coord.Lease {
	l := c.keeper.Lease(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if uses := c.uses[l]; l == nil || uses == nil || uses.over {
		return nil
	}
	return l
}

// Use is Lease for who uses the key until done is called.
func (c *Member) Use(key string) (l *coord.Lease, done func()) { return c.use(key, false) }

func (c *Member) use(key string, prepared bool) (l *coord.Lease, done func()) {
	l = c.keeper.Lease(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	uses := c.uses[l]
	if l == nil || uses == nil || uses.over || prepared && !uses.prepared {
		return nil, func() {}
	}
	uses.Add(1)
	return l, sync.OnceFunc(uses.Done)
}

// failedFor is the delay before failed work restarts.
const failedFor = 5 * time.Second

// While calls run whenever this member owns a key, until ctx ends. run ends with its context, or
// when it fails: then While calls it again soon, because the lease may last for days.
func (c *Member) While(ctx context.Context, key string, run func(context.Context, *coord.Lease) error) {
	for ctx.Err() == nil {
		c.mu.Lock()
		began := c.began
		c.mu.Unlock()
		l, done := c.use(key, true)
		if l == nil {
			select {
			case <-began:
			case <-ctx.Done():
			}
			continue
		}
		own, cancel := context.WithCancel(ctx)
		forget := context.AfterFunc(l.Context(), cancel)
		err := run(own, l)
		forget()
		cancel()
		done()
		var again <-chan time.Time
		if err != nil && ctx.Err() == nil && l.Context().Err() == nil {
			c.o.Logger.Error("work on a key failed, and begins again", "key", key, "after", failedFor, "error", err)
			again = time.After(failedFor)
		}
		select {
		case <-again:
		case <-l.Context().Done():
		case <-ctx.Done():
		}
	}
}

// Name is this member's.
func (c *Member) Name() string { return c.o.Member.Name }

// Keeper is the member's, to show or move its keys.
func (c *Member) Keeper() *coord.Keeper { return c.keeper }

// Mirror is the replica of the records, to show them.
func (c *Member) Mirror() *coord.Mirror { return c.mirror }

// Store writes records as any member may.
func (c *Member) Store() *state.Shared { return c.store }

// Held writes records as the owner of a key; it is nil if this member is not.
func (c *Member) Held(key string) state.Store {
	l := c.Lease(key)
	if l == nil {
		return nil
	}
	return c.store.With(records{c, func() (writer, error) { return held{l}, nil }})
}

// Synced is closed when the mirror has read the records again.
func (c *Member) Synced() <-chan struct{} { return c.mirror.Synced() }

// Sync reads the records now.
func (c *Member) Sync(ctx context.Context) error { return c.mirror.Sync(ctx) }

// Fence guards writes to AWS by the owner of a key. May refuses some, by the last read of the records.
type Fence struct {
	Member *Member
	Key    func() string
	May    func() error
}

// errNotOwned says that another member is the owner, or may be.
var errNotOwned = errors.New("this weir does not own the account and region now")

// readWithin bounds the wait for records that are not older than they may be: what takes
// longer is too old when it has come.
const readWithin = coord.InputsWithin

// MayBegin fails unless this member owns the key for long enough, has read people's requests within coord.InputsWithin, and none of them forbids the
// write. It may take a moment to read the records first.
func (f Fence) MayBegin() error {
	l := f.Member.Lease(f.Key())
	if l == nil {
		return errNotOwned
	}
	ctx, cancel := context.WithTimeout(l.Context(), readWithin)
	defer cancel()
	if _, err := f.Member.mirror.Within(ctx, coord.InputsWithin); err != nil {
		return fmt.Errorf("cannot read people's requests now: %w", err)
	}
	if f.May != nil {
		if err := f.May(); err != nil {
			return err
		}
	}
	return l.Fence.MayBegin()
}

// Until returns the time at which the fence cuts off an attempt.
func (f Fence) Until() time.Time {
	// Work under way still owns a key that is being handed over.
	if l := f.Member.anyLease(f.Key()); l != nil {
		return l.Fence.Until()
	}
	return time.Time{}
}

// anyLease returns that of a key, even while it is being handed over.
func (c *Member) anyLease(key string) *coord.Lease {
	if l := c.keeper.Lease(key); l != nil {
		return l
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.uses {
		if l.Owner.Key == key {
			return l
		}
	}
	return nil
}
