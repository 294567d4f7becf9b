package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

func lossOf(t testing.TB, db *DB) (l *Loss) {
	t.Helper()
	if err := db.View(func(tx *Tx) (err error) { l, err = LossOf(tx); return err }); err != nil {
		t.Fatal(err)
	}
	return l
}

func mustClose(t testing.TB, db *DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLossIsRememberedUntilItIsAccepted: a file that is gone, empty or damaged is
// known as a loss over any number of starts, also where a start crashed in between.
func TestLossIsRememberedUntilItIsAccepted(t *testing.T) {
	for name, lose := range map[string]func(file string) error{
		"gone":  os.Remove,
		"empty": func(file string) error { return os.Truncate(file, 0) },
		"damaged": func(file string) error {
			return os.WriteFile(file, []byte("no state"), 0o600)
		},
		"made by a start that crashed": func(file string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			b, err := bolt.Open(file, 0o600, nil)
			if err != nil {
				return err
			}
			return b.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := mustOpen(t, dir)
			if l := lossOf(t, db); l != nil || db.Lost() != nil {
				t.Fatalf("a first start has lost %v, %v", l, db.Lost())
			}
			fill(t, db, 3)
			mustClose(t, db)
			if err := lose(filepath.Join(dir, File)); err != nil {
				t.Fatal(err)
			}
			var unreadable *UnreadableError
			if _, err := OpenReadOnly(dir); !errors.As(err, &unreadable) {
				t.Errorf("read-only open: %v", err)
			}
			var first *Loss
			for range 3 {
				db = mustOpen(t, dir)
				l := lossOf(t, db)
				if l == nil || !strings.HasPrefix(l.Why, File+" cannot be read: ") || strings.Contains(l.Why, dir) || time.Since(l.Since) > time.Hour {
					t.Fatalf("the loss is %+v", l)
				}
				if first != nil && !l.Since.Equal(first.Since) || (first == nil) != (db.Lost() != nil) {
					t.Errorf("later the loss is %+v, lost %v", l, db.Lost())
				}
				first = l
				fill(t, db, 1)
				mustClose(t, db)
			}
			db = mustOpen(t, dir)
			if err := db.Update(AcceptLoss); err != nil {
				t.Fatal(err)
			}
			mustClose(t, db)
			db = mustOpen(t, dir)
			defer db.Close()
			if l := lossOf(t, db); l != nil || len(keys(t, db)) != 1 {
				t.Errorf("after it was accepted: %+v, %q", l, keys(t, db))
			}
		})
	}
}

// TestEmptyDirectoryIsAFirstStart: whoever empties the directory means to begin anew.
func TestEmptyDirectoryIsAFirstStart(t *testing.T) {
	dir := t.TempDir()
	mustClose(t, mustOpen(t, dir))
	if err := errors.Join(os.Remove(filepath.Join(dir, File)), os.Remove(filepath.Join(dir, markerFile))); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, dir)
	defer db.Close()
	if l := lossOf(t, db); l != nil {
		t.Errorf("lost: %+v", l)
	}
}

// TestShortenedWhileOpen shortens and removes the file before and during
// transactions, while others wait for theirs: each ends, nothing ends the process,
// and what comes after has a file that says what was lost.
func TestShortenedWhileOpen(t *testing.T) {
	all := func(db *DB) error {
		return db.View(func(tx *Tx) error { return records.ForEach(tx, "", func(string, record) error { return nil }) })
	}
	add := func(db *DB, n int) error {
		return db.Update(func(tx *Tx) error {
			for i := range n {
				if err := records.Put(tx, fmt.Sprintf("new%05d", i), record{strings.Repeat("y", 200), i}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	shorten := func(size int64) func(file string) error {
		return func(file string) error { return os.Truncate(file, size) }
	}
	harms := map[string]func(file string) error{
		"to nothing": shorten(0), "to a page": shorten(4096), "in the middle": shorten(9 * 4096), "removed": os.Remove,
		"to nothing and back": func(file string) error {
			f, err := os.OpenFile(file, os.O_RDWR, 0) // it may be moved aside in between
			if err != nil {
				return err
			}
			info, err := f.Stat()
			if err != nil {
				return err
			}
			return errors.Join(f.Truncate(0), f.Truncate(info.Size()), f.Close())
		},
		"by the like of itself": func(file string) error {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return errors.Join(os.Remove(file), os.WriteFile(file, data, 0o600))
		},
	}
	uses := map[string]func(db *DB, harm func()) error{
		"before a view":   func(db *DB, harm func()) error { harm(); return all(db) },
		"before a change": func(db *DB, harm func()) error { harm(); return add(db, 500) },
		"in a view": func(db *DB, harm func()) error {
			return db.View(func(tx *Tx) error {
				harm()
				return records.ForEach(tx, "", func(string, record) error { return nil })
			})
		},
		"in a change": func(db *DB, harm func()) error {
			return db.Update(func(tx *Tx) error {
				harm()
				for i := range 500 {
					if err := records.Put(tx, fmt.Sprintf("%05d", i), record{strings.Repeat("y", 300), i}); err != nil {
						return err
					}
				}
				return nil
			})
		},
		"at the end of a change": func(db *DB, harm func()) error {
			return db.Update(func(tx *Tx) error {
				err := records.Put(tx, "00100", record{strings.Repeat("z", 9000), 1})
				harm()
				return err
			})
		},
		"in a change that fails": func(db *DB, harm func()) error {
			return db.Update(func(tx *Tx) error {
				err := records.Put(tx, "00100", record{strings.Repeat("z", 9000), 1})
				harm()
				return errors.Join(err, errors.New("changed its mind"))
			})
		},
	}
	for how, harm := range harms {
		for when, use := range uses {
			t.Run(how+" "+when, func(t *testing.T) {
				dir := t.TempDir()
				db := mustOpen(t, dir)
				fill(t, db, 500)
				var others sync.WaitGroup
				done := make(chan struct{})
				for range 2 {
					others.Go(func() {
						for {
							select {
							case <-done:
								return
							default:
								_, _ = all(db), add(db, 1) // whatever comes of it, it ends
							}
						}
					})
				}
				first := use(db, func() {
					if err := harm(filepath.Join(dir, File)); err != nil {
						t.Error(err)
					}
				})
				var second error
				for range 2 { // what the first left may be found by a later one only
					second = errors.Join(second, all(db), add(db, 500))
				}
				close(done)
				waited := make(chan struct{})
				go func() { others.Wait(); close(waited) }()
				select {
				case <-waited:
				case <-time.After(time.Minute):
					t.Fatal("a transaction never ends")
				}
				if db.Lost() == nil {
					t.Errorf("nothing is lost: %v, then %v", first, second)
				}
				if err := errors.Join(all(db), add(db, 1)); err != nil {
					t.Errorf("it cannot be used any more: %v", err)
				}
				if l := lossOf(t, db); l == nil {
					t.Error("the new file does not say so")
				}
				mustClose(t, db)
				db = mustOpen(t, dir)
				defer db.Close()
				if l := lossOf(t, db); l == nil {
					t.Error("a later start does not say so")
				}
			})
		}
	}
}

// TestFaultOfACallerStaysOne: a panic that is not about the file is not taken for a
// damage of it.
func TestFaultOfACallerStaysOne(t *testing.T) {
	db := mustOpen(t, t.TempDir())
	defer db.Close()
	fill(t, db, 1)
	for name, cause := range map[string]func(){
		"nil": func() { var r *record; _ = r.Name }, "index": func() { var none []int; _ = none[len(os.Args)] }, "text": func() { panic("assertion failed") },
	} {
		for _, run := range []func(func(*Tx) error) error{db.View, db.Update} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", name)
					}
				}()
				_ = run(func(*Tx) error { cause(); return nil })
			}()
		}
	}
	if got := keys(t, db); len(got) != 1 || db.Lost() != nil {
		t.Errorf("left are %q, lost %v", got, db.Lost())
	}
}

// TestNoRoomForANewFile: where no new file can be begun, each transaction fails and
// leaves nothing behind, and the next try comes after a while.
func TestNoRoomForANewFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, dir)
	fill(t, db, 10)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	look := func() error { return db.View(func(*Tx) error { return nil }) }
	for range 3 {
		if err := look(); !errors.Is(err, errGone) {
			t.Errorf("without a directory: %v", err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := look(); !errors.Is(err, errGone) {
		t.Errorf("before its time: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != noteFile {
		t.Errorf("left are %v, %v, and not the note alone", left, err)
	}
	db.tried = db.tried.Add(-renewPause)
	if err := look(); !errors.Is(err, errGone) {
		t.Errorf("the one that begins it: %v", err)
	}
	if l := lossOf(t, db); l == nil {
		t.Error("the new file says nothing")
	}
	mustClose(t, db)
}
