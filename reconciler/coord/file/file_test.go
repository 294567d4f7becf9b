package file_test

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/coord/file"
	"github.com/weir-gitops/weir/reconciler/state"
)

// TestContract has several members in one process: what a file can show.
func TestContract(t *testing.T) {
	coordtest.Contract(t, coordtest.Back{Data: func(t *testing.T) coordtest.Data {
		db, err := state.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		store := file.New(db)
		return coordtest.Data{Store: func(coord.Clock) coord.Store { return kept{store} }}
	}})
}

// kept leaves the store open for the other members.
type kept struct{ *file.Store }

func (kept) Close() error { return nil }

// TestRestart shows that what is recorded is there for the next process, and that it does
// not wait for the one before.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	var earlier coord.Owner
	var mark coord.Mark
	for i, want := range []string{"", "1", "2"} {
		db, err := state.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		e := coord.New(file.New(db), coord.Options{})
		if !e.Alone() {
			t.Fatal("who has the file's lock is alone")
		}
		s, err := e.Join(t.Context(), coord.Member{Name: "a"}, coord.TTL)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Get(t.Context(), "k")
		if err != nil || string(r.Value) != want {
			t.Fatalf("%q %v, want %q", r.Value, err, want)
		}
		if c, err := e.Changes(t.Context(), mark); err != nil || c.All != (i == 0) || c.Replaced {
			t.Fatalf("%+v %v", c, err)
		}
		o, err := s.Take(t.Context(), "scope", earlier)
		if err != nil || o.Epoch.N <= earlier.Epoch.N {
			t.Fatal(o, err)
		}
		earlier = o
		if _, err := s.Write(t.Context(), coord.Write{Held: []coord.Owner{o}, Ops: []coord.Op{{Key: "k", Value: []byte{byte('1' + i)}, If: r.Version}}}); err != nil {
			t.Fatal(err)
		}
		c, err := e.Changes(t.Context(), coord.Mark{})
		if err != nil {
			t.Fatal(err)
		}
		mark = c.Mark
		if err := db.Close(); err != nil { // as a process that is killed: nobody left
			t.Fatal(err)
		}
	}
}
