package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/statetest"
)

// stores are those of one weir and of several.
func stores(t *testing.T) map[string]func() state.Store {
	return map[string]func() state.Store{
		"file": func() state.Store {
			db, err := state.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return db
		},
		"shared": func() state.Store { return statetest.Join(t, coordtest.NewMemory(), "one") },
	}
}

// recordOf is a record of some size.
func recordOf(pools int) rollout.Record {
	r := rollout.Record{Seq: 1}
	run := rollout.Run{Name: "default/nodes"}
	for i := range pools {
		id := rollout.ID{Target: fmt.Sprintf("cluster-%d", i%10), Pool: fmt.Sprintf("default/pool-%06d", i)}
		hash := fmt.Sprintf("%016x", i*2654435761)
		run.Members = append(run.Members, rollout.Member{ID: id, Hash: hash, Machines: 100, Earlier: &rollout.Version{Template: "t" + hash, Number: int64(i), Hash: hash}})
		r.Permits = append(r.Permits, rollout.Permit{ID: id, Hash: hash, Rollouts: []string{run.Name}, Wait: "waits for wave 3 of default/nodes: bakes until 1 Mar 12:00:00 UTC", Seq: 1})
	}
	r.Runs = []rollout.Run{run}
	return r
}

// TestARecordOfAnySizeIsReadAsItWasWritten goes over stores that take values of a limited
// size, from a small record to a large one and back.
func TestARecordOfAnySizeIsReadAsItWasWritten(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			db := open()
			l := Open(db)
			for seq, pools := range []int{0, 3, 8000, 3} {
				want := recordOf(pools)
				want.Seq = int64(seq + 1)
				if err := l.Change(nil, "fleet", func(rollout.Record) (rollout.Record, error) { return want, nil }); err != nil {
					t.Fatalf("%d pools: %v", pools, err)
				}
				for _, from := range []*Ledger{l, Open(db)} {
					if got, err := from.Read("fleet"); err != nil || !reflect.DeepEqual(*got, want) {
						t.Errorf("%d pools are read otherwise, %v", pools, err)
					}
				}
			}
			var keys []string
			err := db.View(func(tx *state.Tx) error {
				keys = nil
				return records.ForEach(tx, "", func(key string, _ json.RawMessage) error {
					keys = append(keys, key)
					return nil
				})
			})
			if err != nil || len(keys) != 1 {
				t.Errorf("what is left of the large record: %q, %v", keys, err)
			}
		})
	}
}

// TestRecordsOfOtherVersions: one of before is read and written anew, one of a newer weir
// is neither gone by nor written over.
func TestRecordsOfOtherVersions(t *testing.T) {
	db := stores(t)["file"]()
	l := Open(db)
	write := func(text string) {
		t.Helper()
		if err := db.Update(func(tx *state.Tx) error { return records.Put(tx, "fleet", json.RawMessage(text)) }); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"seq":7,"bad":[{"target":"prod","pool":"default/web","hash":"h","rollout":"r","why":"w","at":"2026-01-01T00:00:00Z"}]}`)
	if r, err := l.Read("fleet"); err != nil || r.Seq != 7 || r.BadOf(rollout.ID{Target: "prod", Pool: "default/web"}, "h") == nil {
		t.Errorf("%+v, %v", r, err)
	}
	next := func(r rollout.Record) (rollout.Record, error) {
		r.Seq++
		return r, nil
	}
	if err := l.Change(nil, "fleet", next); err != nil {
		t.Fatal(err)
	}
	if r, err := l.Read("fleet"); err != nil || r.Seq != 8 || len(r.Bad) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	write(`{"format":2,"parts":1,"data":"AAAA"}`)
	if _, err := l.Read("fleet"); !errors.Is(err, ErrNewer) {
		t.Errorf("read: %v", err)
	}
	if err := l.Change(nil, "fleet", next); !errors.Is(err, ErrNewer) {
		t.Errorf("changed: %v", err)
	}
	for _, broken := range []string{`{"format":1,"parts":1,"data":"AAAA"}`, `{"format":1,"parts":2,"data":"H4sI"}`, `"x"`} {
		write(broken)
		if _, err := l.Read("fleet"); err == nil {
			t.Errorf("%s is read", broken)
		}
	}
}
