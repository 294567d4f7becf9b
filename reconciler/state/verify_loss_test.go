package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"
)

// mustHave expects n records, and no loss.
func mustHave(t testing.TB, db *DB, n int) {
	t.Helper()
	if got := keys(t, db); len(got) != n || db.Lost() != nil || lossOf(t, db) != nil {
		t.Errorf("it has %d records, want %d; lost %v", len(got), n, db.Lost())
	}
}

// The library finds a key by the keys of the branches above it. A branch that leads to the wrong page hides records.
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

// Bytes after the last page do not count.
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

// An error of a caller does not count as damage of the file, even if it wraps an error of the library.
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

// A copy that is written during a transaction, or after the last one, is found as well.
func TestAnOlderCopyIsFoundAtTheEnd(t *testing.T) {
	suspend := func(db *DB) {
		if err := db.Update(func(tx *Tx) error { return records.Put(tx, "suspended", record{"a", 1}) }); err != nil {
			t.Fatal(err)
		}
	}
	for name, end := range map[string]func(db *DB, file string, older []byte){
		"written before Close": func(db *DB, file string, older []byte) { overwrite(t, file, older, 0) },
		"renamed before Close": func(db *DB, file string, older []byte) {
			err := os.WriteFile(file+".new", older, 0o600)
			if err := errors.Join(err, os.Rename(file+".new", file)); err != nil {
				t.Fatal(err)
			}
		},
		"written during a change": func(db *DB, file string, older []byte) {
			err := db.Update(func(tx *Tx) error { overwrite(t, file, older, 0); return records.Put(tx, "other", record{"b", 1}) })
			if err == nil {
				t.Error("the change was accepted")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, File)
			db := mustOpen(t, dir)
			fill(t, db, 10)
			older := mustRead(t, file)
			suspend(db)
			time.Sleep(20 * time.Millisecond) // the file system's clock goes on
			end(db, file, older)
			mustClose(t, db)
			db = mustOpen(t, dir)
			defer db.Close()
			if lossOf(t, db) == nil {
				t.Error("the suspension is gone without a loss")
			}
		})
	}
}

// An emptied directory is a new start, also for a daemon that is still running.
func TestADirectoryThatIsEmptiedBeforeClose(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	fill(t, db, 10)
	if err := errors.Join(os.Remove(filepath.Join(dir, File)), os.Remove(filepath.Join(dir, markerFile))); err != nil {
		t.Fatal(err)
	}
	mustClose(t, db)
	db = mustOpen(t, dir)
	defer db.Close()
	mustHave(t, db, 0)
}

// A found loss is not forgotten if there is no room for the note.
func TestALossWithoutRoomForItsNote(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, File)
	db := mustOpen(t, dir)
	fill(t, db, 10)
	older := mustRead(t, file)
	fill(t, db, 20)
	overwrite(t, file, older, 0)
	if err := os.Mkdir(filepath.Join(dir, noteFile), 0o700); err != nil { // the note cannot replace a directory
		t.Fatal(err)
	}
	if err := db.View(func(*Tx) error { return nil }); err == nil {
		t.Fatal("nothing was found")
	}
	mustClose(t, db)
	if err := os.Remove(filepath.Join(dir, noteFile)); err != nil {
		t.Fatal(err)
	}
	db = mustOpen(t, dir)
	defer db.Close()
	if lossOf(t, db) == nil {
		t.Error("the loss is forgotten")
	}
}

// While a daemon has the file, others learn that it is in use, although a note has a loss.
func TestAReaderBesideANote(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, File)
	db := mustOpen(t, dir)
	defer db.Close()
	fill(t, db, 10)
	older := mustRead(t, file)
	fill(t, db, 20)
	db.tried = time.Now()
	overwrite(t, file, older, 0)
	_ = db.View(func(*Tx) error { return nil }) // it finds the loss and writes the note
	for name, open := range map[string]func(string) (*DB, error){"reader": OpenReadOnly, "move": OpenToMove} {
		if _, err := open(dir); !errors.Is(err, ErrInUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
