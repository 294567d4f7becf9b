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

// A library that lost its memory map refuses all transactions. weir opens the file again and loses nothing.
func TestTheFileIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	defer db.Close()
	fill(t, db, 20)
	exchange := func(by uintptr) { // the handle of the library
		if err := syscall.Dup3(int(by), int(db.file.Fd()), syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	unreadable, err := os.OpenFile(filepath.Join(dir, File), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unreadable.Close()
	own, err := syscall.Dup(int(db.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *Tx) error {
		exchange(unreadable.Fd()) // it cannot be mapped
		return records.Put(tx, "large", record{strings.Repeat("y", 1<<20), 1})
	})
	exchange(uintptr(own))
	if err := syscall.Close(own); err != nil {
		t.Fatal(err)
	}
	if err == nil {
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
