package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"golang.org/x/crypto/bcrypt"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/coord/etcd"
)

// server is the etcd of this package's tests: one member, on this machine, that does not
// wait for its disk.
var server *embed.Etcd

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		panic(err)
	}
	server = serve(dir, nil)
	code := m.Run()
	server.Close()
	os.RemoveAll(dir)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

func serve(dir string, change func(*embed.Config)) *embed.Etcd {
	c := embed.NewConfig()
	any := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.Dir, c.UnsafeNoFsync, c.LogLevel = dir, true, "fatal"
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{any}, []url.URL{any}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{any}, []url.URL{any}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, 100
	if change != nil {
		change(c)
	}
	s, err := embed.StartEtcd(c)
	if err != nil {
		panic(err)
	}
	select {
	case <-s.Server.ReadyNotify():
	case <-time.After(time.Minute):
		panic("etcd does not start")
	}
	return s
}

func address(s *embed.Etcd) string { return s.Clients[0].Addr().String() }

var instances atomic.Int64

func data(t *testing.T) coordtest.Data {
	instance := fmt.Sprint("test", instances.Add(1))
	admin := connect(t, server)
	prefix := "/weir/" + instance + "/"
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	wipe := func() {
		_, err := admin.Delete(context.Background(), prefix, clientv3.WithPrefix())
		must(err)
	}
	return coordtest.Data{
		Store: func(coord.Clock) coord.Store {
			s, err := etcd.Open(t.Context(), etcd.Config{Instance: instance, Endpoints: []string{address(server)}})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Wipe: wipe,
		Save: func() func() {
			saved, err := admin.Get(context.Background(), prefix, clientv3.WithPrefix())
			must(err)
			return func() {
				wipe()
				for _, kv := range saved.Kvs {
					_, err := admin.Put(context.Background(), string(kv.Key), string(kv.Value), clientv3.WithLease(clientv3.LeaseID(kv.Lease)))
					must(err)
				}
			}
		},
	}
}

func connect(t *testing.T, s *embed.Etcd) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address(s)}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestContract(t *testing.T) {
	coordtest.Contract(t, coordtest.Back{Data: data, Lease: 3 * time.Second})
}

// TestOpenExplains has an etcd with users.
func TestOpenExplains(t *testing.T) {
	dir := t.TempDir()
	// etcd hashes passwords for as long as a slow machine under the race detector has no time.
	s := serve(filepath.Join(dir, "etcd"), func(c *embed.Config) { c.BcryptCost = uint(bcrypt.MinCost) })
	defer s.Close()
	admin := connect(t, s)
	for _, do := range []func() error{
		func() error { _, err := admin.UserAdd(t.Context(), "root", "r"); return err },
		func() error { _, err := admin.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := admin.UserAdd(t.Context(), "weir", "secret"); return err },
		func() error { _, err := admin.RoleAdd(t.Context(), "weir"); return err },
		func() error { _, err := admin.UserGrantRole(t.Context(), "weir", "weir"); return err },
		func() error {
			_, err := admin.RoleGrantPermission(t.Context(), "weir", "/weir/mine/", clientv3.GetPrefixRangeEnd("/weir/mine/"), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := admin.AuthEnable(t.Context()); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	user, right, wrong := file("user", "weir\n"), file("right", "secret\n"), file("wrong", "other")
	for _, tc := range []struct {
		c    etcd.Config
		want string
	}{
		{etcd.Config{Instance: "mine"}, "usernameFile"},
		{etcd.Config{Instance: "mine", UsernameFile: user, PasswordFile: wrong}, "authentication failed"},
		{etcd.Config{Instance: "other", UsernameFile: user, PasswordFile: right}, "--prefix=true readwrite /weir/other/"},
		{etcd.Config{Instance: "mine", UsernameFile: user, PasswordFile: filepath.Join(dir, "none")}, "none"},
		{etcd.Config{Instance: "mine", CertFile: user}, "go together"},
		{etcd.Config{Instance: "mine", CAFile: user}, "no certificate"},
		{etcd.Config{Instance: "mine", UsernameFile: user, PasswordFile: right}, ""},
	} {
		tc.c.Endpoints = []string{address(s)}
		store, err := etcd.Open(t.Context(), tc.c)
		if err == nil {
			_, err = coord.New(store, coord.Options{}).Join(t.Context(), coord.Member{Name: "a"}, coord.TTL)
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}
		var away *coord.AwayError
		if errors.As(err, &away) {
			t.Errorf("%+v: who starts would wait for what does not go away: %v", tc.c, err)
		}
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.c, err, tc.want)
		}
	}
}

// TestServerRestarts: while etcd is away leases run out by their own clock; afterwards the
// same session may go on if it is alive, and what was written is there.
func TestServerRestarts(t *testing.T) {
	dir := t.TempDir()
	s := serve(dir, nil)
	at := s.Clients[0].Addr().String()
	fixed := func(c *embed.Config) { c.ListenClientUrls = []url.URL{{Scheme: "http", Host: at}} }
	store, err := etcd.Open(t.Context(), etcd.Config{Instance: "i", Endpoints: []string{at}})
	if err != nil {
		t.Fatal(err)
	}
	e := coord.New(store, coord.Options{})
	defer e.Close()
	session, err := e.Join(t.Context(), coord.Member{Name: "a"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	held, err := session.Take(t.Context(), "scope", coord.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	left := session.Left()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := session.Renew(ctx); err == nil || session.Left() > left {
		t.Errorf("renewed by nobody: %v", err)
	}
	var written sync.WaitGroup
	written.Go(func() {
		if _, err := session.Write(t.Context(), coord.Write{Held: []coord.Owner{held}, Ops: []coord.Op{{Key: "k", Value: []byte("v"), If: 0}}}); err != nil {
			t.Error(err)
		}
	})
	s = serve(dir, fixed)
	defer s.Close()
	written.Wait()
	// Since left was read, half a second has passed; a renewal takes some milliseconds itself.
	if err := session.Renew(t.Context()); err != nil || session.Left() < left-250*time.Millisecond {
		t.Errorf("%v, %s left", err, session.Left())
	}
	if r, err := e.Get(t.Context(), "k"); err != nil || string(r.Value) != "v" {
		t.Errorf("%q %v", r.Value, err)
	}
}

// TestAResultIsOneRequest: what an owner writes under its epoch needs no reading before it,
// and one that is refused is told from what etcd answers.
func TestAResultIsOneRequest(t *testing.T) {
	s, err := etcd.Open(t.Context(), etcd.Config{Instance: fmt.Sprint("test", instances.Add(1)), Endpoints: []string{address(server)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	requests := 0
	s.Counting(func(string) { requests++ })
	e := coord.New(s, coord.Options{})
	join := func(name string) *coord.Session {
		session, err := e.Join(t.Context(), coord.Member{Name: name}, coord.TTL)
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	a, b := join("a"), join("b")
	owner, err := a.Take(t.Context(), "scope", coord.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(by *coord.Session, want error, most int, held []coord.Owner, ops ...coord.Op) {
		t.Helper()
		requests = 0
		if _, err := by.Write(t.Context(), coord.Write{Held: held, Ops: ops}); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if requests > most {
			t.Errorf("%d requests for a write, at most %d", requests, most)
		}
	}
	held := []coord.Owner{owner}
	result := coord.Op{Key: "result", Value: []byte("v"), If: coord.Any}
	write(a, nil, 1, held, result)
	write(a, nil, 1, held, result, coord.Op{Key: "new", Value: []byte("v")})
	write(a, coord.ErrConflict, 1, held, coord.Op{Key: "new", Value: []byte("w")})
	// Another session's writes in between do not matter. Its first write finds its log.
	write(b, nil, 2, nil, coord.Op{Key: "other", Value: []byte("v"), If: coord.Any})
	write(a, nil, 2, held, result)
	// A version is read first.
	records, err := s.Get(t.Context(), []string{"result"})
	if err != nil {
		t.Fatal(err)
	}
	write(a, nil, 2, held, coord.Op{Key: "result", Value: []byte("w"), If: records[0].Version})
	write(a, coord.ErrConflict, 2, held, coord.Op{Key: "result", Value: []byte("x"), If: records[0].Version})
	// A former owner writes nothing.
	if err := a.Release(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Take(t.Context(), "scope", func() coord.Owner { o := owner; o.Released = true; return o }()); err != nil {
		t.Fatal(err)
	}
	write(a, coord.ErrLost, 1, held, result)
	// Nor does a session that has ended.
	if err := s.End(t.Context(), a.ID()); err != nil {
		t.Fatal(err)
	}
	write(a, coord.ErrLost, 1, nil, result)
}

// A lease lasts as long as etcd grants it, which may be longer than it was asked to, counted from when it was asked.
func TestALeaseLastsAsLongAsItIsGranted(t *testing.T) {
	s := serve(t.TempDir(), func(c *embed.Config) { c.TickMs, c.ElectionMs = 100, 4000 }) // it grants one and a half elections at least
	defer s.Close()
	session, err := open(t, address(s)).Join(t.Context(), coord.Member{Name: "a"}, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if ttl, left := session.TTL(), session.Left(); ttl != 6*time.Second || left > ttl || left < 3*time.Second {
			t.Errorf("%s of %s are left", left, ttl)
		}
		began := time.Now()
		if err := session.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left, most := session.Left(), 6*time.Second; left > most || left < most-time.Since(began)-time.Second {
			t.Errorf("%s are left, %s after it was asked", left, time.Since(began))
		}
	}
}
