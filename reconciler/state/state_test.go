package state

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

type record struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

var records = Bucket[record]{"records"}

func mustOpen(t testing.TB, dir string) *DB {
	t.Helper()
	db, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func fill(t testing.TB, db *DB, n int) {
	t.Helper()
	err := db.Update(func(tx *Tx) error {
		for i := range n {
			if err := records.Put(tx, fmt.Sprintf("%05d", i), record{strings.Repeat("x", 100), i}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func keys(t testing.TB, db *DB) (out []string) {
	t.Helper()
	if err := db.View(func(tx *Tx) error {
		return records.ForEach(tx, "", func(key string, _ record) error { out = append(out, key); return nil })
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestValuesStay(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	if err := db.Update(func(tx *Tx) error {
		return errors.Join(records.Put(tx, "a", record{"one", 1}), records.Put(tx, "b", record{"two", 2}), records.Put(tx, "c", record{"three", 3}))
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *Tx) error { return records.Delete(tx, "b") }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = mustOpen(t, dir)
	defer db.Close()
	if db.Lost() != nil {
		t.Errorf("lost: %v", db.Lost())
	}
	if got := keys(t, db); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("keys are %q", got)
	}
	if err := db.View(func(tx *Tx) error {
		v, ok, err := records.Get(tx, "c")
		if err != nil || !ok || v != (record{"three", 3}) {
			t.Errorf("c is %+v, %v, %v", v, ok, err)
		}
		if _, ok, err := records.Get(tx, "b"); ok || err != nil {
			t.Errorf("b is there: %v, %v", ok, err)
		}
		if _, ok, err := (Bucket[record]{"none"}).Get(tx, "b"); ok || err != nil {
			t.Errorf("a bucket that nobody made: %v, %v", ok, err)
		}
		var from []string
		err = records.ForEach(tx, "b", func(key string, _ record) error { from = append(from, key); return nil })
		if err != nil || !slices.Equal(from, []string{"c"}) {
			t.Errorf("from b: %q, %v", from, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestFailedUpdateChangesNothing(t *testing.T) {
	db := mustOpen(t, t.TempDir())
	defer db.Close()
	fill(t, db, 2)
	broken := errors.New("broken")
	err := db.Update(func(tx *Tx) error {
		if err := records.Delete(tx, "00000"); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	if got := keys(t, db); len(got) != 2 {
		t.Errorf("keys are %q", got)
	}
}

func TestValueOfAnotherShape(t *testing.T) {
	db := mustOpen(t, t.TempDir())
	defer db.Close()
	if err := db.Update(func(tx *Tx) error { return Bucket[string](records).Put(tx, "a", "text") }); err != nil {
		t.Fatal(err)
	}
	err := db.View(func(tx *Tx) error { _, _, err := records.Get(tx, "a"); return err })
	if err == nil || !strings.Contains(err.Error(), `records "a"`) {
		t.Errorf("error is %v", err)
	}
}

func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("second open: %v", err)
	}
	if _, err := OpenReadOnly(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("read-only open beside it: %v", err)
	}
	fill(t, db, 1)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if got := keys(t, reader); len(got) != 1 {
		t.Errorf("keys are %q", got)
	}
	if err := reader.Update(func(*Tx) error { return nil }); err == nil {
		t.Error("a read-only file can be written")
	}
}

func TestReadOnlyMakesNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenReadOnly(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("it made %v", left)
	}
}

// whole is a file with buckets in pages of their own, branches and free pages.
func whole(t testing.TB) []byte {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	fill(t, db, 500)
	if err := db.Update(func(tx *Tx) error {
		for i := range 200 {
			if err := records.Delete(tx, fmt.Sprintf("%05d", i)); err != nil {
				return err
			}
		}
		return Bucket[string]{"small"}.Put(tx, "a", "b")
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func foreign(t *testing.T) []byte {
	name := filepath.Join(t.TempDir(), "other.db")
	b, err := bolt.Open(name, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("other")); return err })
	if err := errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func newer(t *testing.T) []byte {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	err := db.Update(func(tx *Tx) error { return Bucket[int]{aboutBucket}.Put(tx, formatKey, format+1) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestUnreadableFileIsPutAside(t *testing.T) {
	good := whole(t)
	for name, data := range map[string][]byte{
		"garbage":             bytes.Repeat([]byte("garbage "), 4000),
		"short":               []byte("x"),
		"zeros":               make([]byte, 64<<10),
		"truncated":           good[:len(good)/2/4096*4096],
		"truncated in a page": good[:len(good)/2+17],
		"first page only":     good[:4096],
		"another program's":   foreign(t),
		"a newer weir's":      newer(t),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, File)
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			var unreadable *UnreadableError
			if _, err := OpenReadOnly(dir); !errors.As(err, &unreadable) {
				t.Errorf("read-only open: %v", err)
			}
			db := mustOpen(t, dir)
			if !errors.As(db.Lost(), &unreadable) {
				t.Fatalf("lost is %v", db.Lost())
			}
			if !strings.Contains(unreadable.Error(), unreadable.Aside) || !strings.HasPrefix(unreadable.Aside, file+".unreadable-") {
				t.Errorf("it says %v", unreadable)
			}
			if kept, err := os.ReadFile(unreadable.Aside); err != nil || !bytes.Equal(kept, data) {
				t.Errorf("what was put aside differs: %v", err)
			}
			fill(t, db, 1)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = mustOpen(t, dir)
			defer db.Close()
			if got := keys(t, db); len(got) != 1 || db.Lost() != nil {
				t.Errorf("the new file has %q, lost %v", got, db.Lost())
			}
		})
	}
}

func TestDirectoryInItsPlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, File), 0o700); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, dir)
	defer db.Close()
	if db.Lost() == nil {
		t.Error("nothing says so")
	}
}

func TestEmptyFileIsNew(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, dir)
	defer db.Close()
	if db.Lost() != nil {
		t.Errorf("lost: %v", db.Lost())
	}
}

// TestDamageEndsInAnAnswer changes bytes anywhere, the pages' numbers above all:
// whatever the file then holds, it is opened or put aside, and can be used.
func TestDamageEndsInAnAnswer(t *testing.T) {
	good := whole(t)
	rapid.Check(t, func(rt *rapid.T) {
		data := bytes.Clone(good)
		for range rapid.IntRange(1, 8).Draw(rt, "changes") {
			page := rapid.IntRange(0, len(data)/4096-1).Draw(rt, "page")
			at := rapid.OneOf(rapid.IntRange(0, 95), rapid.IntRange(0, 4095)).Draw(rt, "at")
			data[page*4096+at] = rapid.Byte().Draw(rt, "byte")
		}
		data = data[:rapid.OneOf(rapid.Just(len(data)), rapid.IntRange(0, len(data))).Draw(rt, "size")]
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, File), data, 0o600); err != nil {
			rt.Fatal(err)
		}
		db, err := Open(dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer db.Close()
		// A value may be damaged where no page is: that is an error of its own.
		_ = db.View(func(tx *Tx) error { return records.ForEach(tx, "", func(string, record) error { return nil }) })
		for i := range 3 {
			if err := db.Update(func(tx *Tx) error { return records.Put(tx, fmt.Sprintf("new%d", i), record{}) }); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// TestTheTopHoldsBucketsAlone: the library opens a file where a bucket's name has become
// that of a value, and refuses to write into it.
func TestTheTopHoldsBucketsAlone(t *testing.T) {
	data := whole(t)
	m, err := newestMeta(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	native.PutUint32(data[m.root*m.pageSize+headerSize:], 0)
	if _, err := check(bytes.NewReader(data), int64(len(data))); err == nil {
		t.Error("it can be opened")
	}
}

// TestABranchNamesItsPages: the library writes no branch without keys, and panics at one
// as it writes.
func TestABranchNamesItsPages(t *testing.T) {
	data := whole(t)
	found := false
	for at := 0; at < len(data); at += 4096 {
		if native.Uint16(data[at+8:]) == flagBranch {
			native.PutUint32(data[at+headerSize+4:], 0)
			found = true
		}
	}
	if _, err := check(bytes.NewReader(data), int64(len(data))); !found || err == nil {
		t.Errorf("a branch found: %t, error %v", found, err)
	}
}
