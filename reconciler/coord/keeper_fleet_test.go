package coord_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// fleet are members over one engine in memory.
type fleet struct {
	t      *testing.T
	memory *coordtest.Memory
	scopes []coord.Scope

	mu      sync.Mutex
	members []*node
	// works has, by key, the members that work on it now.
	works map[string]map[string]bool
	took  []took
}

type took struct {
	at            time.Time
	key, by, from string
	released      bool
}

type node struct {
	*coord.Keeper
	f      *fleet
	name   string
	clock  *coordtest.Clock
	wire   *coordtest.Wire
	mirror *coord.Mirror
	stop   context.CancelFunc
	done   chan struct{}
	// suffers is until when something happens to it.
	suffers time.Time
	work    func(*node, *coord.Lease)

	mu     sync.Mutex
	events []coord.Event
}

func newFleet(t *testing.T, scopes int) *fleet {
	f := &fleet{t: t, memory: coordtest.NewMemory(), works: map[string]map[string]bool{}}
	for _, key := range names("scope", scopes) {
		f.scopes = append(f.scopes, coord.Scope{Key: key, Weight: 1})
	}
	t.Cleanup(func() {
		for _, n := range f.members {
			n.stop()
		}
		for _, n := range f.members {
			<-n.done
		}
	})
	return f
}

// start starts a member whose work is to hold the key until its context ends.
func (f *fleet) start(name string, work ...func(*node, *coord.Lease)) *node {
	n := &node{f: f, name: name, clock: coordtest.NewClock(), done: make(chan struct{})}
	n.work = func(_ *node, l *coord.Lease) { progress(l) }
	if len(work) > 0 {
		n.work = work[0]
	}
	n.wire = coordtest.NewWire(f.memory)
	n.wire.Machine = n.clock
	engine := coord.New(n.wire, coord.Options{Clock: n.clock})
	n.mirror = coord.NewMirror(engine)
	n.Keeper = coord.NewKeeper(coord.KeeperOptions{
		Engine: engine, Mirror: n.mirror, Member: coord.Member{Name: name}, Scopes: func() []coord.Scope { return f.scopes },
		Run: n.run, Tell: n.tell,
	})
	ctx, stop := context.WithCancel(f.t.Context())
	n.stop = stop
	go func() {
		defer close(n.done)
		n.Run(ctx)
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = append(f.members, n)
	return n
}

// progress is work that goes on.
func progress(l *coord.Lease) {
	for l.Context().Err() == nil {
		l.Progress()
		select {
		case <-time.After(10 * time.Second):
		case <-l.Context().Done():
		}
	}
}

func (n *node) run(l *coord.Lease) {
	key := l.Owner.Key
	n.f.mu.Lock()
	if n.f.works[key] == nil {
		n.f.works[key] = map[string]bool{}
	}
	n.f.works[key][n.name] = true
	n.f.mu.Unlock()
	n.work(n, l)
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	delete(n.f.works[key], n.name)
}

func (n *node) tell(e coord.Event) {
	n.mu.Lock()
	n.events = append(n.events, e)
	n.mu.Unlock()
	if e.Kind == coord.Took {
		n.f.mu.Lock()
		defer n.f.mu.Unlock()
		n.f.took = append(n.f.took, took{time.Now(), e.Key, n.name, e.Before.Member, e.Before.Released})
	}
}

// at returns the member that works on a key, or "".
func (f *fleet) at(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var by []string
	for name := range f.works[key] {
		by = append(by, name)
	}
	slices.Sort(by)
	if len(by) > 1 {
		f.t.Errorf("%v work on %s", by, key)
	}
	if len(by) == 0 {
		return ""
	}
	return by[0]
}

func (f *fleet) of(name string) (keys []string) {
	for _, s := range f.scopes {
		if f.at(s.Key) == name {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// all waits until each key is worked on.
func (f *fleet) all(within time.Duration) time.Duration {
	f.t.Helper()
	start := time.Now()
	for time.Since(start) <= within {
		if len(f.of("")) == 0 {
			return time.Since(start)
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatalf("nobody works on %v after %s", f.of(""), within)
	return 0
}
