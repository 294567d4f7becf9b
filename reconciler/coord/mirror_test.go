package coord_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// TestMirrorSeesWholeWrites has two keys that are only ever written together.
func TestMirrorSeesWholeWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		join := func(name string) (*coord.Engine, *coord.Session) {
			wire := coordtest.NewWire(memory)
			r := rand.New(rand.NewPCG(1, uint64(len(name)))) //nolint:gosec // it is to be repeated
			wire.Arm(func(string) coordtest.Fault {
				return coordtest.Fault{Slow: time.Duration(r.IntN(30)) * time.Millisecond}
			})
			e := coord.New(wire, coord.Options{Clock: coordtest.NewClock()})
			s, err := e.Join(t.Context(), coord.Member{Name: name}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return e, s
		}
		_, a := join("a")
		_, b := join("bb")
		e, _ := join("ccc")
		m := coord.NewMirror(e)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var all sync.WaitGroup
		number := func(r coord.Record) (n int) {
			fmt.Sscan(string(r.Value), &n)
			return n
		}
		for w, s := range []*coord.Session{a, b} {
			all.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					value := []byte(fmt.Sprint(s.ID(), i))
					ops := []coord.Op{{Key: "x", Value: value, If: coord.Any}, {Key: "y", Value: value, If: coord.Any}, {Key: fmt.Sprint("z", i%7), Value: value, If: coord.Any}}
					for j := range ops {
						ops[j].Delete = i%5 == 0
					}
					ops = append(ops, coord.Op{Key: fmt.Sprint("n", w), Value: []byte(fmt.Sprint(i)), If: coord.Any})
					_, _ = s.Write(ctx, coord.Write{Ops: ops}) // the last one is ended
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		seen := map[string]bool{}
		for ctx.Err() == nil {
			before, err := e.Get(t.Context(), "n0")
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Sync(ctx); err != nil {
				break
			}
			s := m.Snapshot()
			x, y := s.Get("x"), s.Get("y")
			if x.Version != y.Version || string(x.Value) != string(y.Value) {
				t.Fatalf("%+v beside %+v", x, y)
			}
			if number(s.Get("n0")) < number(before) {
				t.Fatalf("%s was read before, %s is there", before.Value, s.Get("n0").Value)
			}
			for _, r := range s.List("z") {
				if s.Get(r.Key).Version != r.Version {
					t.Fatal(r)
				}
			}
			seen[string(x.Value)] = true
		}
		all.Wait()
		if len(seen) < 50 {
			t.Errorf("%d states were seen", len(seen))
		}
		cancel()
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := m.Snapshot()
		if err := m.Sync(t.Context()); err != nil || m.Snapshot() != before {
			t.Errorf("nothing changed, and the snapshot is another: %v", err)
		}
	})
}

// TestMirrorSkips has more of what is skipped than fits on a page, and records behind it.
func TestMirrorSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := coord.New(coordtest.NewMemory(), coord.Options{Clock: coordtest.NewClock()})
		s, err := e.Join(t.Context(), coord.Member{Name: "a"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		put := func(key string) {
			if _, err := s.Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: key, If: coord.Any}}}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 35 {
			put(fmt.Sprint("log/", i))
			put(fmt.Sprint("a/", i))
			put(fmt.Sprint("z/", i))
		}
		m := coord.NewMirror(e, "log/")
		for range 2 {
			if err := m.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			now := m.Snapshot()
			if n, a, z := len(now.List("log/")), len(now.List("a/")), len(now.List("z/")); n != 0 || a != 35 || z != 35 || len(now.List("")) != 70 {
				t.Fatalf("%d %d %d", n, a, z)
			}
			put("log/new")
			put("z/0")
		}
	})
}
