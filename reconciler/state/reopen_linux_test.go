package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// changeBy makes a large change while the library's handle of the file has another access mode.
func changeBy(t *testing.T, db *DB, mode int) error {
	t.Helper()
	exchange := func(by uintptr) {
		if err := syscall.Dup3(int(by), int(db.file.Fd()), syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	other, err := os.OpenFile(db.file.Name(), mode, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	own, err := syscall.Dup(int(db.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	changed := db.Update(func(tx *Tx) error {
		exchange(other.Fd())
		return records.Put(tx, "large", record{strings.Repeat("y", 1<<20), 1})
	})
	exchange(uintptr(own))
	if err := syscall.Close(own); err != nil {
		t.Fatal(err)
	}
	return changed
}

// A library that lost its memory map refuses all transactions. weir opens the file again and loses nothing.
func TestTheFileIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	defer db.Close()
	fill(t, db, 20)
	if err := changeBy(t, db, os.O_WRONLY); err == nil { // such a handle cannot be mapped
		t.Fatal("the change succeeded")
	}
	if err := db.bolt.View(func(*bolt.Tx) error { return nil }); !errors.Is(err, bolterrors.ErrInvalidMapping) {
		t.Fatalf("the library can go on: %v", err)
	}
	if got := keys(t, db); len(got) != 20 || db.Lost() != nil {
		t.Errorf("left are %d, lost %v", len(got), db.Lost())
	}
	fill(t, db, 21)
	if _, err := OpenReadOnly(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("the file is not locked: %v", err)
	}
}

// A commit that fails leaves the records before it or after it. Both are no loss.
func TestACommitThatFailsIsNoLoss(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	defer db.Close()
	fill(t, db, 20)
	if err := changeBy(t, db, os.O_RDONLY); err == nil {
		t.Fatal("the change succeeded")
	}
	later(t, filepath.Join(dir, File))
	mustHave(t, db, 20)
}
