package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// guarded wraps all calls of the library, which reads the file through a memory map. If another process
// truncates the file under a running daemon, a read causes a memory fault that ends an unprepared process.
// If the file then grows again, the new pages contain zeros, and the library panics. guarded turns both into
// a damage.
func guarded(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if _, fault := r.(interface{ Addr() uintptr }); !fault && !panicsInLibrary() {
			panic(r)
		}
		err = &damage{fmt.Sprint(r)}
	}()
	return do()
}

// damage is a fault that guarded caught.
type damage struct{ text string }

func (d *damage) Error() string { return d.text }

// panicsInLibrary reports whether the current panic started in the library.
func panicsInLibrary() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for begun := false; ; {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			begun = true
		case begun && !strings.HasPrefix(f.Function, "runtime."):
			return strings.HasPrefix(f.Function, "go.etcd.io/bbolt")
		case !more:
			return false
		}
	}
}

// renewPause is the minimum time between two attempts to create a new file. If the disk is full, each
// attempt leaves a file behind.
const renewPause = 10 * time.Second

// run runs one transaction at a time. A transaction that ends in a fault leaves the library's locks locked,
// and later transactions would wait forever. So run then puts the damaged file aside and starts a new one,
// like Open.
func (db *DB) run(transaction func(*bolt.DB) error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return bolterrors.ErrDatabaseNotOpen
	}
	if db.broken == nil {
		db.broken = db.changed()
	}
	if db.broken == nil {
		err := guarded(func() error { return transaction(db.bolt) })
		var d *damage
		if !errors.As(err, &d) {
			return err
		}
		db.broken = d
	}
	why := &UnreadableError{File: db.file.Name(), Why: db.broken}
	if db.readOnly || time.Since(db.tried) < renewPause {
		return why
	}
	db.tried = time.Now()
	db.giveUp()
	fresh, err := replaceUnreadable(db.dir, why)
	if err != nil {
		return errors.Join(why, err)
	}
	db.bolt, db.file, db.size, db.lost, db.broken = fresh.bolt, fresh.file, 0, why, nil
	return why
}

// giveUp closes an unusable file and unlocks it, because its memory map would keep the lock. It does not
// call the library, which may wait for its own locks.
func (db *DB) giveUp() {
	_ = syscall.Flock(int(db.file.Fd()), syscall.LOCK_UN) // an error here cannot be handled
	_ = db.file.Close()
}

// changed returns how other processes changed the file since the last transaction.
func (db *DB) changed() error {
	have, err := db.file.Stat()
	if err != nil {
		return nil // the next read reports it
	}
	if have.Size() < db.size {
		return fmt.Errorf("it was shortened from %d to %d bytes", db.size, have.Size())
	}
	db.size = have.Size()
	there, err := os.Stat(db.file.Name())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(have, there) {
		return errGone
	}
	return nil
}
