package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// value is what the transactions of the property write: a number made of all that the
// transaction has read, and a text that may need several records.
type value struct {
	N   int    `json:"n"`
	Pad string `json:"pad,omitempty"`
}

// act is one thing that a transaction does.
type act struct {
	Do, Bucket, Key string
	Long            bool
}

var (
	buckets = []string{"one", "two"}
	someKey = []string{"a", "a\x00b", "a/b", "ä%"}
	drawAct = rapid.Custom(func(t *rapid.T) act {
		return act{
			rapid.SampledFrom([]string{"get", "get", "put", "put", "put", "delete", "scan", "remove"}).Draw(t, "do"),
			rapid.SampledFrom(buckets).Draw(t, "bucket"), rapid.SampledFrom(someKey).Draw(t, "key"), rapid.IntRange(0, 19).Draw(t, "long") == 0,
		}
	})
)

// model is a serial store: bucket, key, value.
type model map[string]map[string]value

// table is what both are asked for.
type tester interface {
	get(bucket, key string) (value, bool)
	put(bucket, key string, v value)
	remove(bucket, key string)
	all(bucket string, fn func(key string, v value))
}

func (m model) get(bucket, key string) (value, bool) { v, ok := m[bucket][key]; return v, ok }
func (m model) put(bucket, key string, v value)      { m[bucket][key] = v }
func (m model) remove(bucket, key string)            { delete(m[bucket], key) }
func (m model) all(bucket string, fn func(string, value)) {
	for _, key := range slices.Sorted(maps.Keys(m[bucket])) {
		fn(key, m[bucket][key])
	}
}

func newModel() model { return model{"one": {}, "two": {}} }

// real is a transaction; err is what it met.
type realTx struct {
	tx  *Tx
	err error
}

func (r *realTx) get(bucket, key string) (value, bool) {
	v, ok, err := Bucket[value]{bucket}.Get(r.tx, key)
	r.err = errors.Join(r.err, err)
	return v, ok
}

func (r *realTx) put(bucket, key string, v value) {
	r.err = errors.Join(r.err, Bucket[value]{bucket}.Put(r.tx, key, v))
}

func (r *realTx) remove(bucket, key string) {
	r.err = errors.Join(r.err, Bucket[value]{bucket}.Delete(r.tx, key))
}

func (r *realTx) all(bucket string, fn func(string, value)) {
	r.err = errors.Join(r.err, Bucket[value]{bucket}.ForEach(r.tx, "", func(key string, v value) error { fn(key, v); return nil }))
}

// perform does what a transaction does, and returns what it saw.
func perform(t tester, acts []act, id int) (saw []string) {
	sum := id
	note := func(key string, v value) {
		sum = sum*31 + v.N
		saw = append(saw, fmt.Sprintf("%q=%d,%d", key, v.N, len(v.Pad)))
	}
	for _, a := range acts {
		switch a.Do {
		case "get":
			v, _ := t.get(a.Bucket, a.Key)
			note(a.Key, v)
		case "put":
			v := value{N: sum % 1000}
			if a.Long {
				v.Pad = strings.Repeat("x", 150+(sum%100+100)%100)
			}
			t.put(a.Bucket, a.Key, v)
		case "delete":
			t.remove(a.Bucket, a.Key)
		case "scan":
			t.all(a.Bucket, note)
		case "remove": // what is odd
			var gone []string
			t.all(a.Bucket, func(key string, v value) {
				if note(key, v); v.N%2 == 1 {
					gone = append(gone, key)
				}
			})
			for _, key := range gone {
				t.remove(a.Bucket, key)
			}
		}
	}
	return saw
}

func allOf(t *rapid.T, s Store) model {
	out := newModel()
	err := s.View(func(tx *Tx) error {
		for _, b := range buckets {
			if err := (Bucket[value]{b}).ForEach(tx, "", func(key string, v value) error { out.put(b, key, v); return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTransactionsHaveASerialOrder: whatever members do beside each other, with old
// replicas, conflicts, lost answers and commits that arrive late, there is an order in
// which one after another would have seen and left the same. It is that in which they
// were answered, and a commit that nobody answered for has its place when it arrives.
func TestTransactionsHaveASerialOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, want := newEngine(), newModel()
		var members []*Shared
		var ways []*way
		for i := range 3 {
			w := e.way()
			ways, members = append(ways, w), append(members, mustShare(t, w, fmt.Sprint("m", i)))
			members[i].partSize = 100
		}
		id := 0
		type late struct {
			acts []act
			id   int
		}
		var waiting []late
		arrive := func() {
			before := e.version
			e.arrive()
			if len(waiting) > 0 {
				if e.version != before {
					perform(want, waiting[0].acts, waiting[0].id)
				}
				waiting = waiting[1:]
			}
		}
		var run func(depth int)
		run = func(depth int) {
			i := rapid.IntRange(0, len(members)-1).Draw(t, "member")
			for j := range i { // within another's transaction, its own process waits
				if !members[j].changing.TryLock() {
					return
				}
				members[j].changing.Unlock()
			}
			w, s := ways[i], members[i]
			if !s.changing.TryLock() {
				return
			}
			s.changing.Unlock()
			id++
			acts, mine := rapid.SliceOfN(drawAct, 1, 6).Draw(t, "acts"), id
			last, effect := "", 0
			w.fate = func() string {
				last = rapid.SampledFrom([]string{"", "", "", "", "conflict", "lost before", "lost after", "later"}).Draw(t, "fate")
				if len(e.later) > 3 && last == "later" {
					last = "lost before"
				}
				effect = int(e.version)
				return last
			}
			var saw []string
			tries := 0
			err := s.Update(func(tx *Tx) error {
				r := &realTx{tx: tx}
				saw = perform(r, acts, mine)
				if tries++; depth == 0 && tries == 1 && rapid.Bool().Draw(t, "meanwhile") {
					fate := w.fate
					run(1)
					w.fate = fate
				}
				return r.err
			})
			w.fate = func() string { return "" }
			switch {
			case err == nil:
				if diff := cmp.Diff(perform(want, acts, mine), saw); diff != "" {
					t.Fatalf("transaction %d %+v saw something else than in its place:\n%s", mine, acts, diff)
				}
			case !errors.Is(err, coord.ErrUnknown):
				t.Fatal(err)
			case last == "later" && len(e.later) > len(waiting):
				waiting = append(waiting, late{acts, mine})
			case last == "lost after" && int(e.version) != effect:
				perform(want, acts, mine)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"run":     func(*rapid.T) { run(0) },
			"refresh": func(t *rapid.T) { _ = ways[rapid.IntRange(0, 2).Draw(t, "member")].Refresh(context.Background()) },
			"arrive":  func(*rapid.T) { arrive() },
			"": func(t *rapid.T) {
				s := mustShare(t, e.way(), "reader")
				if diff := cmp.Diff(want, allOf(t, s), cmp.Comparer(func(a, b value) bool { return a == b })); diff != "" {
					t.Fatal("the engine has something else:\n", diff)
				}
			},
		})
	})
}

// TestAnEngineThatCannotBeReached: nothing counts as stored, and the error says so.
func TestAnEngineThatCannotBeReached(t *testing.T) {
	w := newEngine().way()
	s := mustShare(t, w, "a")
	w.cut = true
	err := s.Update(func(tx *Tx) error { return records.Put(tx, "k", record{}) })
	if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "nothing is stored") {
		t.Error(err)
	}
	if err := s.Update(func(tx *Tx) error { _, _, err := records.Get(tx, "k"); return err }); !errors.Is(err, errDown) {
		t.Errorf("a change that changes nothing was believed: %v", err)
	}
	if err := s.View(func(tx *Tx) error { _, _, err := records.Get(tx, "k"); return err }); err != nil {
		t.Errorf("what is known is not shown: %v", err)
	}
	if err := s.View(func(tx *Tx) error { return Log[record]{Name: "l"}.Newest(tx, func(record) error { return nil }) }); !errors.Is(err, errDown) {
		t.Errorf("an empty log is made up: %v", err)
	}
	if _, err := OpenShared(context.Background(), w, "b"); !errors.Is(err, errDown) {
		t.Error(err)
	}
	w.cut = false
	w.fate = func() string { return "conflict" }
	s.updateFor = 20 * time.Millisecond
	if err := s.Update(func(tx *Tx) error { return records.Put(tx, "k", record{}) }); !errors.Is(err, coord.ErrConflict) {
		t.Error(err)
	}
}

// TestAChangeCostsOneCommit: one that nobody contradicts is written without reading.
func TestAChangeCostsOneCommit(t *testing.T) {
	w := newEngine().way()
	s := mustShare(t, w, "a")
	w.commits = 0
	if err := s.Update(func(tx *Tx) error { return records.Put(tx, "k", record{}) }); err != nil || w.commits != 1 {
		t.Errorf("%d commits, %v", w.commits, err)
	}
}

func TestALogIsBounded(t *testing.T) {
	e := newEngine()
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	log := Log[record]{Name: "events", At: func(r record) time.Time { return time.Date(2026, 3, 1, 0, r.N, 0, 0, time.UTC) }}
	var members []*Shared
	for _, name := range []string{"a", "b"} {
		s := mustShare(t, e.way(), name)
		s.now = func() time.Time { return at }
		members = append(members, s)
	}
	for n := range 3 * trimEach {
		at = at.Add(time.Minute)
		s := members[n%2]
		keep := Keep{Most: 100, Since: at.Add(-300 * time.Minute)}
		if err := s.Update(func(tx *Tx) error {
			return log.Add(tx, []record{{N: n}, {N: n, Name: strings.Repeat("x", logRecord)}}, keep)
		}); err != nil {
			t.Fatal(err)
		}
	}
	var got []int
	if err := members[0].View(func(tx *Tx) error {
		return log.Newest(tx, func(r record) error { got = append(got, r.N); return nil })
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(got, func(a, b int) int { return b - a }) || got[0] != 3*trimEach-1 || got[1] != got[0] {
		t.Errorf("the newest are %v", got[:4])
	}
	if len(got) < 100 || len(got) > 100+4*trimEach {
		t.Errorf("%d values are kept", len(got))
	}
	if n := len(members[0].engine.Replica().List(LogPrefix)); n != 0 {
		t.Errorf("a replica has %d records of logs", n)
	}
}

// TestPartsOfLongValues go with the value, and with the process that did not live to name
// them.
func TestPartsOfLongValues(t *testing.T) {
	e := newEngine()
	w := e.way()
	s := mustShare(t, w, "a")
	long := func(n int) error {
		return s.Update(func(tx *Tx) error { return records.Put(tx, "k", record{Name: strings.Repeat("x", n)}) })
	}
	parts := func() int { _ = w.Refresh(context.Background()); return len(w.Replica().List(partPrefix)) }
	for _, step := range []struct{ size, parts int }{{partSize * 3, 4}, {partSize, 2}, {10, 0}, {partSize * 40, 41}} {
		if err := long(step.size); err != nil || parts() != step.parts {
			t.Errorf("%d bytes: %d parts, %v", step.size, parts(), err)
		}
	}
	if err := long(partSize * (maxParts + 1)); err == nil || parts() != 41 {
		t.Errorf("too long: %v, %d parts", err, parts())
	}
	if err := s.Update(func(tx *Tx) error { return records.Delete(tx, "k") }); err != nil || parts() != 0 {
		t.Errorf("deleted: %d parts, %v", parts(), err)
	}
	n := 0
	w.parts = true
	w.fate = func() string {
		if n++; n == 3 { // after two parts
			return "down"
		}
		return ""
	}
	if err := long(partSize * 3); err == nil || parts() != 2 {
		t.Fatalf("%d parts, %v", parts(), err)
	}
	mustShare(t, w, "b")
	if parts() != 2 {
		t.Error("parts that somebody may be about to name are gone")
	}
	s.now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	if s.sweep(context.Background()); parts() != 0 {
		t.Errorf("%d parts stay", parts())
	}
}

// TestANewStoreBelievesNothing: where AWS holds something of ours and a new store knows
// nothing of the scope, that is a loss until somebody accepts it.
func TestANewStoreBelievesNothing(t *testing.T) {
	e := newEngine()
	s := mustShare(t, e.way(), "a")
	loss := func() (l *Loss) {
		t.Helper()
		if err := mustShare(t, e.way(), "b").View(func(tx *Tx) (err error) { l, err = LossOf(tx); return err }); err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, step := range []struct {
		scope string
		holds bool
		lost  bool
	}{{"one", false, false}, {"one", true, false}, {"two", true, true}, {"three", false, true}} {
		var said *LossError
		if err := CheckLoss(s, step.scope, step.holds); (err != nil) != (step.lost && step.holds) || err != nil && !errors.As(err, &said) {
			t.Fatalf("%+v: %v", step, err)
		}
		if l := loss(); (l != nil) != step.lost {
			t.Errorf("%+v: %v", step, l)
		}
	}
	if err := s.Update(AcceptLoss); err != nil {
		t.Fatal(err)
	}
	if err := CheckLoss(s, "four", true); err != nil || loss() != nil {
		t.Errorf("after it was accepted: %v, %v", loss(), err)
	}
	file := mustOpen(t, t.TempDir())
	defer file.Close()
	if err := CheckLoss(file, "one", true); err != nil || file.View(func(tx *Tx) error { l, err := LossOf(tx); return errors.Join(err, asError(l)) }) != nil {
		t.Error("a file of one weir alone is no loss")
	}
}

func asError(l *Loss) error {
	if l == nil {
		return nil
	}
	return errors.New(l.Why)
}
