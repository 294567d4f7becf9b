package coordtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/coord"
)

func conditional(w *world) {
	a, b := w.join("a", long), w.join("b", long)
	w.wantRecord(a, "k", "")
	v1 := w.put(a, "k", "one", 0)
	_, err := b.Write(w.Context(), put("k", "two", 0))
	w.wants(err, coord.ErrConflict)
	if got := w.wantRecord(b, "k", "one"); got != v1 {
		w.Fatalf("version %d, the write returned %d", got, v1)
	}
	v2 := w.put(b, "k", "two", v1)
	_, err = a.Write(w.Context(), put("k", "three", v1))
	w.wants(err, coord.ErrConflict)
	w.wantRecord(a, "k", "two")
	w.put(a, "k", "any", coord.Any)
	_, err = b.Write(w.Context(), coord.Write{Ops: []coord.Op{{Key: "k", Delete: true, If: v2}}})
	w.wants(err, coord.ErrConflict)
	_, err = b.Write(w.Context(), coord.Write{Ops: []coord.Op{{Key: "k", Delete: true, If: coord.Any}, {Key: "never was", Delete: true, If: coord.Any}}})
	w.must(err)
	w.wantRecord(a, "k", "")
	// A version is never the version of a deleted record.
	if v := w.put(b, "k", "one", 0); v == v1 || v == v2 {
		w.Errorf("version %d is used again", v)
	}
	_, err = a.Write(w.Context(), put("k", "of the first", v1))
	w.wants(err, coord.ErrConflict)
}

func whole(w *world) {
	a, b := w.join("a", long), w.join("b", long)
	v := w.put(a, "x", "0", 0)
	_, err := b.Write(w.Context(), coord.Write{Ops: []coord.Op{{Key: "y", Value: []byte("1"), If: 0}, {Key: "x", Value: []byte("1"), If: v + 1}}})
	w.wants(err, coord.ErrConflict)
	w.wantRecord(a, "y", "")
	w.wantRecord(a, "x", "0")
	got, err := b.Write(w.Context(), coord.Write{Ops: []coord.Op{{Key: "y", Value: []byte("1"), If: 0}, {Key: "x", Delete: true, If: v}}})
	w.must(err)
	if w.wantRecord(a, "y", "1") != got {
		w.Error("the version is another")
	}
	w.wantRecord(a, "x", "")
}

func fenced(w *world) {
	a, b := w.join("a", long), w.join("b", long)
	first, second := w.acquire(a, "one"), w.acquire(a, "two")
	v, err := a.Write(w.Context(), put("k", "a", 0, first, second))
	w.must(err)
	_, err = b.Write(w.Context(), put("k", "b", v, first))
	w.wants(err, coord.ErrLost)
	w.must(a.Release(w.Context(), second))
	// The expected version may be a number, none or any: an engine may check each in its own way.
	refused := func(value string, held ...coord.Owner) {
		w.Helper()
		for key, version := range map[string]int64{"k": v, "none": 0, "any": coord.Any} {
			_, err := a.Write(w.Context(), put(key, value, version, held...))
			w.wants(err, coord.ErrLost)
		}
	}
	refused("again", first, second)
	theirs := w.acquire(b, "two")
	refused("again", second)
	w.must(b.Release(w.Context(), theirs))
	again := w.acquire(a, "two")
	w.put(a, "another", "v", coord.Any)
	refused("of an epoch before", second)
	w.wantRecord(b, "k", "a")
	w.wantRecord(b, "none", "")
	w.wantRecord(b, "any", "")
	_, err = a.Write(w.Context(), put("k", "now", v, again, first))
	w.must(err)
	w.wantRecord(b, "k", "now")
}

func limits(w *world) {
	a := w.join("a", long)
	for _, key := range []string{"", strings.Repeat("k", coord.MaxKey+1), "a\x00b", "\xff"} {
		if _, err := a.Write(w.Context(), put(key, "v", 0)); err == nil {
			w.Errorf("key %.20q was written", key)
		}
	}
	if _, err := a.Write(w.Context(), put("k", strings.Repeat("v", coord.MaxValue), 0)); err == nil {
		w.Error("a large value was written")
	}
	if _, err := a.Write(w.Context(), coord.Write{Ops: []coord.Op{{Key: "k"}, {Key: "k"}}}); err == nil {
		w.Error("a key was written twice at once")
	}
	whole := coord.Write{}
	for i := range coord.MaxOps {
		key := strings.Repeat("é", (coord.MaxKey-4)/2) + fmt.Sprintf("%04d", i)
		whole.Ops = append(whole.Ops, coord.Op{Key: key, Value: make([]byte, (coord.MaxWrite/coord.MaxOps)-len(key))})
	}
	_, err := a.Write(w.Context(), whole)
	w.must(err)
	largest := strings.Repeat("\x00\xff", (coord.MaxValue-1)/2)
	w.put(a, "large", largest, 0)
	w.wantRecord(a, "large", largest)
	for i := range coord.MaxOps {
		whole.Ops[i].Key = "x" + whole.Ops[i].Key[3:]
	}
	whole.Ops[0].Value = make([]byte, coord.MaxWrite/coord.MaxOps+1)
	whole.Ops = append(whole.Ops, coord.Op{Key: "one more"})
	if _, err := a.Write(w.Context(), whole); err == nil {
		w.Error("a large write was done")
	}
}

func (w *world) changes(m *member, since coord.Mark) coord.Changes {
	w.Helper()
	c, err := m.engine.Changes(w.Context(), since)
	w.must(err)
	return c
}

// wantChanges expects that a member reads the changes of some records and owners, and no others.
func (w *world) wantChanges(what string, m *member, since coord.Mark, records, owners []string) coord.Mark {
	w.Helper()
	c := w.changes(m, since)
	if c.All || c.Replaced || !slices.Equal(c.Records, records) || !slices.Equal(c.Owners, owners) {
		w.Fatalf("%s: %+v", what, c)
	}
	return c.Mark
}

func changes(w *world) {
	a, b := w.join("a", long), w.join("b", long)
	first := w.changes(b, coord.Mark{})
	if !first.All || first.Replaced || len(first.Alive) != 2 {
		w.Fatalf("first %+v", first)
	}
	w.wantChanges("nothing changed", b, first.Mark, nil, nil)
	w.put(a, "x", "1", 0)
	w.put(b, "y", "1", 0)
	w.put(a, "x", "2", coord.Any)
	mark := w.wantChanges("two changed", b, first.Mark, []string{"x", "y"}, nil)
	_, err := b.Write(w.Context(), coord.Write{Ops: []coord.Op{{Key: "x", Delete: true, If: coord.Any}}})
	w.must(err)
	mark = w.wantChanges("one was deleted", a, mark, []string{"x"}, nil)
	o := w.acquire(a, "scope")
	mark = w.wantChanges("one was taken", b, mark, nil, []string{"scope"})
	w.must(a.Release(w.Context(), o))
	mark = w.wantChanges("one was released", b, mark, nil, []string{"scope"})
	// A later session has a slot of its own, whose log is new in the mark.
	third := w.join("c", long)
	w.put(third, "z", "1", 0)
	mark = w.wantChanges("another came", b, mark, []string{"z"}, nil)
	w.must(third.Leave(w.Context()))
	third.rejoin(w, "d", long)
	w.put(third, "zz", "1", 0)
	w.wantChanges("the slot was used again", b, mark, []string{"zz"}, nil)
}

func boundedLogs(w *world) {
	a, b := w.join("a", long), w.join("b", long)
	mark := w.changes(b, coord.Mark{}).Mark
	key := strings.Repeat("k", 300)
	for i := range 20 {
		w.put(a, key+fmt.Sprint(i), "v", 0)
	}
	if c := w.changes(b, mark); !c.All || c.Replaced {
		w.Fatalf("more changed than is kept: %+v", c)
	}
	mark = w.changes(b, coord.Mark{}).Mark
	w.put(a, key+"1", "v", coord.Any)
	if c := w.changes(b, mark); c.All || len(c.Records) != 1 {
		w.Fatalf("one changed: %+v", c)
	}
}

func pages(w *world) {
	a := w.join("a", long)
	var want []string
	for i := range 60 {
		ops := []coord.Op{}
		for j := range 5 {
			key := fmt.Sprintf("p/%c%d", []rune("aBé~_")[j], i)
			want = append(want, key)
			ops = append(ops, coord.Op{Key: key, Value: []byte(strings.Repeat("v", 5000) + key)})
		}
		_, err := a.Write(w.Context(), coord.Write{Ops: append(ops, coord.Op{Key: fmt.Sprint("q", i)}, coord.Op{Key: fmt.Sprint("o", i)})})
		w.must(err)
	}
	slices.Sort(want)
	var got []string
	n := 0
	for after := ""; ; n++ {
		page, next, err := a.engine.List(w.Context(), "p/", after)
		w.must(err)
		for _, r := range page {
			got = append(got, r.Key)
			if !strings.HasSuffix(string(r.Value), r.Key) || r.Version == 0 {
				w.Fatalf("%s has %d bytes of version %d", r.Key, len(r.Value), r.Version)
			}
		}
		if after = next; next == "" {
			break
		}
	}
	if n < 1 || !slices.Equal(got, want) {
		w.Fatalf("%d keys on %d pages, want %d", len(got), n+1, len(want))
	}
	for _, none := range []string{"p/x", "r"} {
		if page, next, err := a.engine.List(w.Context(), none, ""); err != nil || len(page) > 0 || next != "" {
			w.Errorf("%s: %v %q %v", none, page, next, err)
		}
	}
	if page, _, err := a.engine.List(w.Context(), "", ""); err != nil || page[0].Key != "o0" {
		w.Errorf("all: %v", err)
	}
}
