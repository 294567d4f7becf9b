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

// guarded is the only way into the library, which reads the file through a memory map. If another
// process truncates the file under a running daemon, a read is a fault of the processor, which ends
// an unprepared process. If the file then grows again, the new pages hold zeros, at which the
// library panics. guarded turns both into a damage.
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

// damage is the fault that guarded caught.
type damage struct{ text string }

func (d *damage) Error() string { return d.text }

// panicsInLibrary reports whether the library began the panic that is under way.
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

// renewPause is the least time between two tries to begin a new file: where the disk
// is full, each leaves one behind.
const renewPause = 10 * time.Second

// run does one transaction at a time. A transaction that ends in a fault leaves the library's own
// locks held, and further transactions would wait forever. So run then moves the damaged file aside
// and begins a new one, like Open.
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

// giveUp closes a file that cannot be used, and unlocks it: memory that is mapped to
// it would keep the lock. The library is not asked, as it may wait for its own locks.
func (db *DB) giveUp() {
	_ = syscall.Flock(int(db.file.Fd()), syscall.LOCK_UN) // no more can be done about it
	_ = db.file.Close()
}

// changed says how others changed the file since the last transaction.
func (db *DB) changed() error {
	have, err := db.file.Stat()
	if err != nil {
		return nil // reading will tell
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
