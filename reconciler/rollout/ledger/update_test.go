package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/state"
)

func open(t *testing.T) (*Ledger, state.Store) {
	t.Helper()
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return Open(db), db
}

func add(name string) func(rollout.Record) (rollout.Record, error) {
	return func(r rollout.Record) (rollout.Record, error) {
		r.Seq++
		r.Runs = append(r.Runs, rollout.Run{Name: name})
		return r, nil
	}
}

func TestRecordsAreKeptBySource(t *testing.T) {
	l, db := open(t)
	if r, err := l.Read("pools"); err != nil || r.Seq != 0 || r.Runs != nil {
		t.Errorf("before anything: %+v, %v", r, err)
	}
	for _, source := range []string{"pools", "other", "pools"} {
		if err := l.Change(nil, source, add(source)); err != nil {
			t.Fatal(err)
		}
	}
	for source, want := range map[string]int{"pools": 2, "other": 1} {
		for _, of := range []*Ledger{l, Open(db)} { // and for who starts anew
			if r, err := of.Read(source); err != nil || len(r.Runs) != want || int(r.Seq) != want || r.Runs[0].Name != source {
				t.Errorf("%s: %+v, %v", source, r, err)
			}
		}
	}
}

func TestWhatIsTheSameIsNotWritten(t *testing.T) {
	l, db := open(t)
	if err := l.Change(nil, "pools", add("a")); err != nil {
		t.Fatal(err)
	}
	before := raw(t, db)
	// The number of a record says whether it is another one.
	same := func(r rollout.Record) (rollout.Record, error) { r.Runs = nil; return r, nil }
	if err := l.Change(nil, "pools", same); err != nil || raw(t, db) != before {
		t.Errorf("%v: %s, not %s", err, raw(t, db), before)
	}
	wrong := errors.New("not so")
	failing := func(r rollout.Record) (rollout.Record, error) { r.Seq++; r.Runs = nil; return r, wrong }
	if err := l.Change(nil, "pools", failing); !errors.Is(err, wrong) || raw(t, db) != before {
		t.Errorf("%v: %s, not %s", err, raw(t, db), before)
	}
}

func raw(t *testing.T, db state.Store) (text string) {
	t.Helper()
	err := db.View(func(tx *state.Tx) error {
		data, _, err := records.Get(tx, "pools")
		text = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Commands of people and the conductor change a record beside each other.
func TestNoChangeUndoesAnother(t *testing.T) {
	l, _ := open(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := l.Change(nil, "pools", add(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
			if r, err := l.Read("pools"); err != nil || int(r.Seq) != len(r.Runs) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if r, err := l.Read("pools"); err != nil || len(r.Runs) != 20 {
		t.Errorf("%d changes are left: %v", len(r.Runs), err)
	}
}

// A record that cannot be read is no empty one: what was stopped would start again.
func TestABrokenRecordIsNoEmptyOne(t *testing.T) {
	l, db := open(t)
	err := db.Update(func(tx *state.Tx) error { return records.Put(tx, "pools", json.RawMessage(`{"seq":"x"}`)) })
	if err != nil {
		t.Fatal(err)
	}
	if r, err := l.Read("pools"); err == nil {
		t.Errorf("it is read as %+v", r)
	}
	if err := l.Change(nil, "pools", add("a")); err == nil {
		t.Error("it is written over")
	}
	if r, err := l.Read("other"); err != nil || r.Seq != 0 {
		t.Errorf("another source's: %+v, %v", r, err)
	}
}

func TestTheWrittenStoreIsTheOneThatIsGiven(t *testing.T) {
	l, db := open(t)
	_, leased := open(t)
	if err := l.Change(leased, "pools", add("a")); err != nil {
		t.Fatal(err)
	}
	if raw(t, db) != "" || raw(t, leased) == "" {
		t.Errorf("own %q, given %q", raw(t, db), raw(t, leased))
	}
}
