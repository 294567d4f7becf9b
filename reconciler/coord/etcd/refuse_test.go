package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/etcd"
)

func open(t *testing.T, endpoints ...string) *coord.Engine {
	t.Helper()
	s, err := etcd.Open(t.Context(), etcd.Config{Instance: fmt.Sprint("test", instances.Add(1)), Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	e := coord.New(s, coord.Options{})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// A write that arrives when its session has written something else since, which it was to come before, does nothing.
func TestAWriteThatComesBehindAnother(t *testing.T) {
	instance := fmt.Sprint("test", instances.Add(1))
	store := func() *etcd.Store {
		s, err := etcd.Open(t.Context(), etcd.Config{Instance: instance, Endpoints: []string{address(server)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	const random = "0123456789abcdef0123"
	late, next := store(), store() // two ways of one session
	e, err := late.Enter(t.Context(), random, coord.Member{Name: "a"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	session := coord.SessionID(e.Slot, random)
	write := func(s *etcd.Store, was, n int64, value string) error {
		return s.Commit(t.Context(), coord.Txn{Session: session, Was: was, Log: coord.Log{Session: session, N: n}, Ops: []coord.Op{{Key: "k", Value: []byte(value), If: coord.Any}}})
	}
	if err := errors.Join(write(late, 0, 1, "first"), write(next, 1, 2, "next")); err != nil {
		t.Fatal(err)
	}
	var moved *coord.Moved
	if err := write(late, 1, 3, "late"); !errors.As(err, &moved) || moved.N != 2 {
		t.Errorf("a late write: %v", err)
	}
	if got, err := next.Get(t.Context(), []string{"k"}); err != nil || string(got[0].Value) != "next" {
		t.Errorf("%+v: %v", got, err)
	}
}

// The engine's id has etcd's cluster in it: a cluster that was restored as another one is another engine, which repeats no epoch.
func TestTheEngineIsOfItsCluster(t *testing.T) {
	list, err := connect(t, server).MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, address(server))
	s, err := e.Join(t.Context(), coord.Member{Name: "a"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(".%x", list.Header.ClusterId); !strings.HasSuffix(s.Engine(), want) {
		t.Errorf("engine %s at the join, want %s behind it", s.Engine(), want)
	}
	m := coord.NewMirror(e)
	if err := m.Sync(t.Context()); err != nil || m.Snapshot().Engine != s.Engine() {
		t.Errorf("engine %s by what is polled: %v", m.Snapshot().Engine, err)
	}
}

// A member of etcd that has lost the others says so at once, in words, and what comes
// there goes on at another one.
func TestAMemberWithoutQuorum(t *testing.T) {
	member := serve(filepath.Join(t.TempDir(), "etcd"), nil)
	defer member.Close()
	alone := open(t, address(member))
	session, err := alone.Join(t.Context(), coord.Member{Name: "a"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	// One of two, the other of which never comes.
	if _, err := connect(t, member).MemberAdd(t.Context(), []string{"http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	says := func(what string, ask func(context.Context) error) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := ask(ctx)
			cancel()
			if err != nil && strings.Contains(err.Error(), "etcdctl endpoint status") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	says("a renewal", session.Renew)
	left := session.Left()
	says("a read", func(ctx context.Context) error { _, err := alone.Members(ctx); return err })
	says("a write", func(ctx context.Context) error {
		_, err := session.Write(ctx, coord.Write{Ops: []coord.Op{{Key: "k", If: coord.Any}}})
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var away *coord.AwayError
	if _, err := alone.Join(ctx, coord.Member{Name: "c"}, time.Minute); !errors.As(err, &away) {
		t.Errorf("who starts would not wait: %v", err)
	}
	if _, err := alone.Refuses(); err == nil || session.Left() > left {
		t.Errorf("%v, %s left", err, session.Left())
	}

	// As if the other endpoint were of the same etcd, which tells it from no other.
	e := open(t, address(member), address(server))
	if session, err = e.Join(t.Context(), coord.Member{Name: "b"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		began := time.Now()
		if _, err := e.Members(t.Context()); err != nil {
			t.Error(err)
		}
		if err := session.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := session.Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: "k", If: coord.Any}}}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	}
}

// Full is an etcd whose quota is used up, and mended is one that has room again.
func full(t *testing.T, s *embed.Etcd) (mend func()) {
	t.Helper()
	admin := connect(t, s)
	// etcd sees how full it is when it commits a batch, so what counts is time and not how much was written.
	for i, end := 0, time.Now().Add(time.Minute); ; i++ {
		_, err := admin.Put(t.Context(), fmt.Sprint("junk/", i), strings.Repeat("x", 64<<10))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
		if err != nil || time.Now().After(end) {
			t.Fatal(i, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return func() {
		t.Helper()
		gone, err := admin.Delete(t.Context(), "junk/", clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Compact(t.Context(), gone.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Defragment(t.Context(), address(s)); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
			t.Fatal(err)
		}
	}
}

// An etcd that is full renews leases all the same. Its owners give them up once a write shows it, and one of them goes on when there is room.
func TestAnEngineThatIsFull(t *testing.T) {
	s := serve(filepath.Join(t.TempDir(), "etcd"), func(c *embed.Config) { c.QuotaBackendBytes = 1 << 20 })
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	var working atomic.Int64
	var events sync.Map
	const ttl = 4 * time.Second
	engine := open(t, address(s))
	var keepers []*coord.Keeper
	for _, name := range []string{"a", "b"} {
		k := coord.NewKeeper(coord.KeeperOptions{
			Engine: engine, Mirror: coord.NewMirror(engine), Member: coord.Member{Name: name}, TTL: ttl,
			Scopes: func() []coord.Scope { return []coord.Scope{{Key: "scope", Weight: 1}} },
			Run: func(l *coord.Lease) {
				if working.Add(1) > 1 {
					t.Error("two work on a key at once")
				}
				<-l.Context().Done()
				working.Add(-1)
			},
			Tell: func(e coord.Event) { events.Store(e.Kind, fmt.Sprint(e.Err)) },
		})
		keepers = append(keepers, k)
		all.Go(func() { k.Run(ctx) })
	}
	owner := func() (l *coord.Lease) {
		for _, k := range keepers {
			if got := k.Lease("scope"); got != nil {
				l = got
			}
		}
		return l
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: not after a minute", what)
			}
		}
	}
	until("an owner", func() bool { return owner() != nil && working.Load() == 1 })
	before := owner()
	if _, err := before.Write(t.Context(), coord.Op{Key: "result", Value: []byte("v"), If: coord.Any}); err != nil {
		t.Fatal(err)
	}
	mend := full(t, s)
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := before.Write(short, coord.Op{Key: "result", Value: []byte("w"), If: coord.Any}); err == nil || !strings.Contains(err.Error(), "etcdctl alarm disarm") {
		t.Errorf("written to an etcd that is full: %v", err)
	}
	until("the end of the lease", func() bool { return owner() == nil && working.Load() == 0 })
	if err := before.Fence.MayBegin(); err == nil {
		t.Error("it may write to AWS without a lease")
	}
	if lost, _ := events.Load(coord.Lost); lost == nil || !strings.Contains(lost.(string), "etcdctl alarm disarm") {
		t.Errorf("the loss is told with %v", lost)
	}
	if _, err := engine.Members(t.Context()); err != nil {
		t.Errorf("it answers no reads: %v", err)
	}
	for end := time.Now().Add(2 * ttl); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if owner() != nil {
			t.Fatal("somebody owns it by an engine that cannot say so")
		}
	}
	mend()
	until("an owner again", func() bool { return owner() != nil && working.Load() == 1 })
	if after := owner(); after.Owner.Epoch.N <= before.Owner.Epoch.N || after.Owner.Session == before.Owner.Session {
		t.Errorf("owned by %+v, before by %+v", after.Owner, before.Owner)
	}
	if since, err := engine.Refuses(); err != nil {
		t.Errorf("refuses since %s: %v", since, err)
	}
}
