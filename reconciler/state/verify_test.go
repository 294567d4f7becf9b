package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// overwrite writes into the existing file, as another process would.
func overwrite(t testing.TB, file string, data []byte, at int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(data, at)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// later gives the file another time, because the test writes within one tick of the file system's clock.
func later(t testing.TB, file string) {
	t.Helper()
	at := time.Now().Add(time.Hour)
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// mustBeLost uses the store until it has found the damage, and expects a loss.
func mustBeLost(t testing.TB, db *DB) {
	t.Helper()
	err := db.View(func(*Tx) error { return nil })
	var unreadable *UnreadableError
	if !errors.As(err, &unreadable) || db.Lost() == nil {
		t.Fatalf("nothing was found: %v, lost %v", err, db.Lost())
	}
	if l := lossOf(t, db); l == nil {
		t.Fatal("the new file does not say so")
	}
}

// If another process writes to the file between two transactions, and a record is then missing, older or changed, the
// next transaction reports it.
func TestAWriteOfAnotherProcessIsFound(t *testing.T) {
	page := int64(os.Getpagesize())
	zeros := func(from, to int64) func(testing.TB, string, []byte) {
		return func(t testing.TB, file string, _ []byte) { overwrite(t, file, make([]byte, to-from), from) }
	}
	for name, damage := range map[string]func(t testing.TB, file string, older []byte){
		"an older copy": func(t testing.TB, file string, older []byte) {
			overwrite(t, file, older, 0)
		},
		"an older copy and its size": func(t testing.TB, file string, older []byte) {
			if err := os.WriteFile(file, older, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"zeros at the end of each page": func(t testing.TB, file string, _ []byte) {
			for at := 2 * page; at < int64(len(mustRead(t, file))); at += page {
				overwrite(t, file, make([]byte, page/2), at+page/2)
			}
		},
		"no records in each page": func(t testing.TB, file string, _ []byte) {
			for at := 2 * page; at < int64(len(mustRead(t, file))); at += page {
				overwrite(t, file, make([]byte, 2), at+10)
			}
		},
		"pages that refer to themselves": func(t testing.TB, file string, _ []byte) {
			data := mustRead(t, file)
			for at := page; at < int64(len(data)); at += page {
				if native.Uint16(data[at+8:]) == flagBranch {
					self := make([]byte, 8)
					native.PutUint64(self, uint64(at/page))
					overwrite(t, file, self, at+headerSize+8)
				}
			}
		},
		"everything zero":    func(t testing.TB, file string, _ []byte) { zeros(0, int64(len(mustRead(t, file))))(t, file, nil) },
		"the first two zero": zeros(0, 2*page),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, File)
			db := mustOpen(t, dir)
			defer db.Close()
			fill(t, db, 500)
			older := mustRead(t, file)
			if err := db.Update(func(tx *Tx) error { return records.Put(tx, "suspended", record{"a", 1}) }); err != nil {
				t.Fatal(err)
			}
			damage(t, file, older)
			later(t, file)
			mustBeLost(t, db)
		})
	}
}

// Each cut of the file that grows again is found, unless all records are still there.
func TestAFileThatWasShortAndGrewAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, File)
	for cut := int64(0); ; cut += 1531 {
		db := mustOpen(t, dir)
		fill(t, db, 100)
		size := int64(len(mustRead(t, file)))
		if cut >= size {
			mustClose(t, db)
			return
		}
		if err := errors.Join(os.Truncate(file, cut), os.Truncate(file, size)); err != nil {
			t.Fatal(err)
		}
		later(t, file)
		got := 0
		err := db.View(func(tx *Tx) error { return records.ForEach(tx, "", func(string, record) error { got++; return nil }) })
		if err == nil && got != 100 || err != nil && db.Lost() == nil {
			t.Errorf("cut at %d: %d records, %v, lost %v", cut, got, err, db.Lost())
		}
		mustClose(t, db)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// A backup program that changes the file's times, or writes the same bytes again, causes no loss.
func TestATouchIsNoLoss(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, File)
	db := mustOpen(t, dir)
	defer db.Close()
	for name, touch := range map[string]func(){
		"times": func() { later(t, file) },
		"mode":  func() { _ = os.Chmod(file, 0o640) },
		"link":  func() { _ = os.Link(file, filepath.Join(dir, "copy")) },
		"bytes": func() { overwrite(t, file, mustRead(t, file), 0); later(t, file) },
		"end":   func() { overwrite(t, file, []byte("more"), int64(len(mustRead(t, file)))) },
	} {
		fill(t, db, 20)
		touch()
		if err := db.View(func(*Tx) error { return nil }); err != nil || db.Lost() != nil || len(keys(t, db)) != 20 {
			t.Errorf("%s: %v, lost %v", name, err, db.Lost())
		}
	}
}

// After each transaction, the digest in memory equals the digest of the records in the file.
func TestTheDigestIsThatOfTheFile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		db, err := Open(dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer db.Close()
		key := rapid.SampledFrom([]string{"a", "b", "c", strings.Repeat("k", 300)})
		for range rapid.IntRange(1, 12).Draw(rt, "transactions") {
			err := db.Update(func(tx *Tx) error {
				for range rapid.IntRange(1, 6).Draw(rt, "changes") {
					bucket, k := rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "bucket"), key.Draw(rt, "key")
					switch rapid.IntRange(0, 4).Draw(rt, "kind") {
					case 0:
						_ = tx.table.remove(bucket, k)
					case 1:
						_ = tx.table.put(bucket, strings.Repeat("k", 1<<15+1), []byte("too long a key is refused"))
					case 2:
						_ = tx.table.(boltTable).drop(bucket)
					case 3:
						_ = tx.table.add("log", []json.RawMessage{[]byte("1"), []byte("2")}, Keep{Most: 3}, func([]byte) bool { return false })
					default:
						_ = tx.table.put(bucket, k, bytes.Repeat([]byte("v"), rapid.IntRange(0, 6000).Draw(rt, "size")))
					}
				}
				if rapid.IntRange(0, 3).Draw(rt, "end") == 0 {
					return ErrStop
				}
				return nil
			})
			if err != nil && !errors.Is(err, ErrStop) {
				rt.Fatal(err)
			}
			if db.verify() != nil { // a new file has no image yet
				rt.Fatal(db.verify())
			}
			if found, err := imageOf(db.file); err != nil || found != db.left {
				rt.Fatalf("the file has %+v, weir noted %+v, %v", found, db.left, err)
			}
		}
	})
}
