package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"
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

// A write by another process between two transactions is found, whatever it wrote, if a record is then missing,
// older or changed.
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

// The digest that transactions keep is that of the records in the file, whatever they did.
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

// A commit that fails leaves the records before it or after it. Both are no loss.
func TestACommitThatFailsIsNoLoss(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	defer db.Close()
	fill(t, db, 20)
	size := uint64(len(mustRead(t, filepath.Join(dir, File)))) //nolint:gosec // not negative
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	err := db.Update(func(tx *Tx) error { return records.Put(tx, "large", record{strings.Repeat("y", 1<<20), 1}) })
	if back := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); back != nil {
		t.Fatal(back)
	}
	if err == nil {
		t.Fatal("there was room")
	}
	later(t, filepath.Join(dir, File))
	if got := keys(t, db); len(got) != 20 || db.Lost() != nil {
		t.Errorf("left are %d, lost %v", len(got), db.Lost())
	}
}

// mustHave expects n records, and no loss.
func mustHave(t testing.TB, db *DB, n int) {
	t.Helper()
	if got := keys(t, db); len(got) != n || db.Lost() != nil || lossOf(t, db) != nil {
		t.Errorf("it has %d records, want %d; lost %v", len(got), n, db.Lost())
	}
}

// The library finds keys by those of the branches above. A branch that leads to the wrong page hides records that are
// all there.
func TestABranchHidesNoRecords(t *testing.T) {
	data := whole(t)
	m, err := newestMeta(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	used := &walk{file: bytes.NewReader(data), meta: m, seen: map[uint64]bool{}}
	if err := used.tree(m.root, 0, "", limits{}); err != nil {
		t.Fatal(err)
	}
	branches := 0
	for at := 0; at < len(data); at += 4096 {
		if native.Uint16(data[at+8:]) != flagBranch || !used.seen[uint64(at/4096)] {
			continue
		}
		branches++
		for name, damage := range map[string]func(page []byte){
			"another key": func(page []byte) {
				item := page[headerSize+branchItemSize:]
				key := item[native.Uint32(item):]
				key[native.Uint32(item[4:])-1]++
			},
			"two pages exchanged": func(page []byte) {
				first, second := page[headerSize+8:headerSize+16], page[headerSize+branchItemSize+8:]
				was := native.Uint64(first)
				native.PutUint64(first, native.Uint64(second))
				native.PutUint64(second, was)
			},
		} {
			damaged := bytes.Clone(data)
			damage(damaged[at:])
			if _, err := check(bytes.NewReader(damaged), int64(len(damaged))); err == nil {
				t.Errorf("%s: it can be opened", name)
			}
		}
	}
	if branches == 0 {
		t.Error("no branches were tested")
	}
}

// A loss that was found while the file was in use is known after each restart, although an older copy has no fault.
func TestALossIsNotForgottenBeforeItIsWritten(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, db *DB){
		"no pause": func(*testing.T, *DB) {},
		"in pause": func(_ *testing.T, db *DB) { db.tried = time.Now() },
		"no rename": func(t *testing.T, db *DB) {
			db.broken = errChanged
			db.tried = time.Now()
			_ = db.View(func(*Tx) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, File)
			db := mustOpen(t, dir)
			fill(t, db, 10)
			older := mustRead(t, file)
			if err := db.Update(func(tx *Tx) error { return records.Put(tx, "suspended", record{"a", 1}) }); err != nil {
				t.Fatal(err)
			}
			overwrite(t, file, older, 0)
			prepare(t, db)
			var unreadable *UnreadableError
			if err := db.View(func(*Tx) error { return nil }); !errors.As(err, &unreadable) {
				t.Fatalf("nothing was found: %v", err)
			}
			mustClose(t, db)
			db = mustOpen(t, dir)
			if lossOf(t, db) == nil {
				t.Error("the loss is forgotten")
			}
			mustClose(t, db)
			if _, err := os.Stat(filepath.Join(dir, noteFile)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the note stays: %v", err)
			}
		})
	}
}

// The file that replaces a damaged one is watched from its first moment.
func TestTheNewFileIsWatched(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, File)
	db := mustOpen(t, dir)
	defer db.Close()
	fill(t, db, 10)
	older := mustRead(t, file)
	fill(t, db, 20)
	overwrite(t, file, older, 0)
	mustBeLost(t, db)
	db.tried = time.Time{}
	if err := os.WriteFile(file, older, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := db.View(func(*Tx) error { return nil }); err == nil {
		t.Error("the older copy is taken for the new file")
	}
	if lossOf(t, db) == nil {
		t.Error("the loss is forgotten")
	}
}

// After a commit that failed, weir takes neither an older copy nor another program's records for its own.
func TestAnOlderCopyAfterAFailedCommitIsFound(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, File)
	db := mustOpen(t, dir)
	defer db.Close()
	fill(t, db, 10)
	older := mustRead(t, file)
	fill(t, db, 20)
	db.left = db.left.unsure(99, 0)
	mustHave(t, db, 20)
	db.left = db.left.unsure(99, 0)
	overwrite(t, file, older, 0)
	mustBeLost(t, db)
}

// A program that sets the time of the last write back hides nothing.
func TestATimeThatIsSetBackHidesNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, File)
	db := mustOpen(t, dir)
	defer db.Close()
	fill(t, db, 500)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if changeTime(info).IsZero() {
		t.Skip("this system does not tell when a file was changed")
	}
	time.Sleep(20 * time.Millisecond) // the file system's clock goes on
	for at := int64(8192); at < info.Size(); at += 4096 {
		overwrite(t, file, make([]byte, 2), at+10)
	}
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	mustBeLost(t, db)
}

// Bytes behind the last page belong to nobody.
func TestTheEndOfTheFileIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, File)
	db := mustOpen(t, dir)
	fill(t, db, 20)
	size := int64(len(mustRead(t, file)))
	overwrite(t, file, []byte("more"), size)
	mustHave(t, db, 20)
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	mustHave(t, db, 20)
	fill(t, db, 400)
	mustHave(t, db, 400)
	mustClose(t, db)
	db = mustOpen(t, dir)
	defer db.Close()
	mustHave(t, db, 400)
}

// An error of a caller says nothing about the file, whatever it wraps.
func TestErrorsOfACallerAreNoDamage(t *testing.T) {
	db := mustOpen(t, t.TempDir())
	defer db.Close()
	fill(t, db, 5)
	for _, own := range []error{bolterrors.ErrInvalid, bolterrors.ErrChecksum, bolterrors.ErrInvalidMapping, &UnreadableError{File: "x", Why: errGone}} {
		for _, run := range []func(func(*Tx) error) error{db.View, db.Update} {
			if err := run(func(*Tx) error { return own }); !errors.Is(err, own) {
				t.Errorf("%v became %v", own, err)
			}
		}
	}
	mustHave(t, db, 5)
}

// A reader waits until the daemon has closed the file, and then finds it sound.
func TestAReaderWaitsForTheDaemon(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	fill(t, db, 50)
	if _, err := OpenReadOnly(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("beside a daemon: %v", err)
	}
	closed := make(chan error, 1)
	go func() {
		time.Sleep(100 * time.Millisecond)
		err := db.Update(func(tx *Tx) error { return records.Put(tx, "last", record{"a", 1}) })
		closed <- errors.Join(err, db.Close())
	}()
	reader, err := OpenReadOnly(dir)
	if err := errors.Join(err, <-closed); err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	mustHave(t, reader, 51)
}
