package simulate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// engine is what the members of an instance share, in memory.
type engine struct {
	w      *World
	memory *coordtest.Memory
	// ends is until when sessions live, as the engine has renewed them.
	ends map[string]time.Time
	// down and slow are until when it does not answer, or takes its time.
	down, slow time.Time
	turns      int // that calls to it had
	// speaks is who speaks for the source, spoke when others did last, and said what was said
	// of commits, by commit and context. Strays are those of which it was last said by one who spoke no more.
	speaks string
	spoke  map[string]time.Time
	said   map[string]speech
	strays map[string]bool
}

func newEngine(w *World) *engine {
	return &engine{w: w, memory: coordtest.NewMemory(), ends: map[string]time.Time{}, spoke: map[string]time.Time{}, said: map[string]speech{}, strays: map[string]bool{}}
}

// owner is who owns a key now, and how long its session lives on; false: nobody does.
func (e *engine) owner(key string) (o coord.Owner, left time.Duration, ok bool) {
	owners, err := e.memory.OwnersOf(e.w.t.Context(), []string{key})
	if err != nil {
		e.w.t.Fatal(err)
	}
	if len(owners) == 0 || owners[0].Released {
		return coord.Owner{}, 0, false
	}
	return owners[0], time.Until(e.ends[owners[0].Session]), true
}

// line is the way of a process to the engine.
type line struct {
	*engine
	d *daemon
}

// asked is a call to the engine, which waits for its turn as all calls do.
func asked[T any](ctx context.Context, l line, name, body string, do func() (T, error)) (T, error) {
	var out, none T
	var refused error
	c := &call{daemon: l.d, service: "engine", name: name, body: body, write: name == "Commit"}
	err := l.w.ask(ctx, c, func() {
		if out, refused = do(); refused != nil {
			l.w.trace("the engine refuses %s of %s: %v", name, l.d.id, refused)
		}
	})
	if err != nil {
		return none, err
	}
	return out, refused
}

func did(do func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, do() }
}

// Enter implements coord.Store.
func (l line) Enter(ctx context.Context, random string, m coord.Member, ttl time.Duration) (coord.Entered, error) {
	return asked(ctx, l, "Enter", m.Name, func() (coord.Entered, error) {
		in, err := l.memory.Enter(ctx, random, m, ttl)
		l.ends[coord.SessionID(in.Slot, random)] = time.Now().Add(in.TTL)
		return in, err
	})
}

// Renew implements coord.Store.
func (l line) Renew(ctx context.Context, session string, m *coord.Member) (time.Duration, error) {
	return asked(ctx, l, "Renew", session, func() (time.Duration, error) {
		ttl, err := l.memory.Renew(ctx, session, m)
		if err == nil {
			l.ends[session] = time.Now().Add(ttl)
		}
		return ttl, err
	})
}

// End implements coord.Store.
func (l line) End(ctx context.Context, session string) error {
	_, err := asked(ctx, l, "End", session, did(func() error {
		delete(l.ends, session)
		return l.memory.End(ctx, session)
	}))
	return err
}

// Poll implements coord.Store.
func (l line) Poll(ctx context.Context) (coord.Poll, error) {
	return asked(ctx, l, "Poll", "", func() (coord.Poll, error) { return l.memory.Poll(ctx) })
}

// Owners implements coord.Store.
func (l line) Owners(ctx context.Context) ([]coord.Owner, error) {
	return asked(ctx, l, "Owners", "", func() ([]coord.Owner, error) { return l.memory.Owners(ctx) })
}

// OwnersOf implements coord.Store.
func (l line) OwnersOf(ctx context.Context, keys []string) ([]coord.Owner, error) {
	return asked(ctx, l, "OwnersOf", strings.Join(keys, " "), func() ([]coord.Owner, error) { return l.memory.OwnersOf(ctx, keys) })
}

// Get implements coord.Store.
func (l line) Get(ctx context.Context, keys []string) ([]coord.Record, error) {
	return asked(ctx, l, "Get", strings.Join(keys, " "), func() ([]coord.Record, error) { return l.memory.Get(ctx, keys) })
}

// List implements coord.Store.
func (l line) List(ctx context.Context, prefix, after string) ([]coord.Record, string, error) {
	next := ""
	page, err := asked(ctx, l, "List", prefix+" "+after, func() (page []coord.Record, err error) {
		page, next, err = l.memory.List(ctx, prefix, after)
		return page, err
	})
	return page, next, err
}

// Commit implements coord.Store.
func (l line) Commit(ctx context.Context, t coord.Txn) error {
	var what strings.Builder
	for _, taking := range t.Take {
		fmt.Fprintf(&what, "%s of %s released %v for %q, ", taking.Owner.Key, taking.Owner.Member, taking.Owner.Released, taking.Owner.For)
	}
	for _, op := range t.Ops {
		what.WriteString(op.Key + ", ")
	}
	_, err := asked(ctx, l, "Commit", what.String(), did(func() error {
		defer l.moved(what.String())
		return l.memory.Commit(ctx, t)
	}))
	return err
}

// Alone implements coord.Store.
func (l line) Alone() bool { return false }

// Close implements coord.Store: the data stays.
func (l line) Close() error { return nil }
