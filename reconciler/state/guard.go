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
// truncates the file during a transaction, a read causes a memory fault that ends an unprepared process.
// If the file then grows again, the new pages contain zeros, and the library panics. guarded turns both into
// a damage. It cannot catch what the library does with other content that appears during a transaction: a page that
// refers to itself ends the process. Content that appears between two transactions is found by verify.
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

// damaged reports whether an error of the library says that the file cannot be used.
func damaged(err error) bool {
	var d *damage
	return errors.As(err, &d) || errors.Is(err, bolterrors.ErrInvalid) || errors.Is(err, bolterrors.ErrVersionMismatch) || errors.Is(err, bolterrors.ErrChecksum)
}

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
// like Open. refused is an error of the caller's function. It does not mean that the file is damaged.
func (db *DB) run(transaction func(*bolt.DB) (refused, err error)) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return bolterrors.ErrDatabaseNotOpen
	}
	if db.broken == nil {
		db.broken = db.verify()
	}
	if db.broken == nil {
		refused, err := db.perform(transaction)
		if refused == nil && errors.Is(err, bolterrors.ErrInvalidMapping) {
			if err = db.reopen(); err == nil {
				refused, err = db.perform(transaction)
			}
		}
		var unreadable *UnreadableError
		switch {
		case refused != nil:
			return err
		case errors.As(err, &unreadable):
			db.broken = unreadable.Why
		case damaged(err):
			db.broken = err
		default:
			return err
		}
	}
	return db.replace()
}

// perform runs a transaction. It returns the error of the caller's function separately from other errors.
func (db *DB) perform(transaction func(*bolt.DB) (refused, err error)) (refused, err error) {
	err = guarded(func() (err error) { refused, err = transaction(db.bolt); return err })
	var d *damage
	if errors.As(err, &d) {
		refused = nil // the library panicked afterwards
	}
	return refused, err
}

// replace puts a broken file aside and starts a new one, at most once in renewPause. It always returns an error that
// says why the file is broken, also if it was replaced. Until the new file contains the reason, a note keeps it: without
// the note, the next start would accept a valid older copy that another process wrote into the file.
func (db *DB) replace() error {
	why := &UnreadableError{File: db.file.Name(), Why: db.broken}
	if db.readOnly {
		return why
	}
	if !db.noted {
		db.noted = db.keepLoss(why) == nil // an error is reported below, before the replacement
	}
	if time.Since(db.tried) < renewPause {
		return why
	}
	db.tried = time.Now()
	db.giveUp()
	if err := noteLoss(db.dir, db.broken); err != nil {
		return errors.Join(why, err)
	}
	fresh, err := replaceUnreadable(db.dir, why)
	if err != nil {
		return errors.Join(why, err)
	}
	db.bolt, db.file, db.left, db.lost, db.broken, db.noted = fresh.bolt, fresh.file, fresh.left, why, nil, false
	return why
}

// keepLoss writes the note. If it cannot, for example because the disk is full, it puts the file aside, so that the next
// start finds that the file is missing.
func (db *DB) keepLoss(why *UnreadableError) error {
	err := noteLoss(db.dir, why.Why)
	if err == nil {
		return nil
	}
	if is, _ := begun(db.dir); is {
		err = errors.Join(err, setAside(why))
	}
	return err
}

// reopen opens the file again after the library lost its memory map, for example because there was not enough memory. The library
// refuses all later transactions then, but the file may be sound.
func (db *DB) reopen() error {
	db.giveUp()
	fresh, err := open(db.dir, db.readOnly, nil)
	if err != nil {
		return err
	}
	before := db.left
	db.bolt, db.file, db.left = fresh.bolt, fresh.file, fresh.left
	if !before.allows(fresh.left.fingerprint) {
		return &UnreadableError{File: db.file.Name(), Why: errChanged}
	}
	return nil
}

// giveUp closes an unusable file and unlocks it, because its memory map would keep the lock. It does not
// call the library, which may wait for its own locks.
func (db *DB) giveUp() {
	_ = syscall.Flock(int(db.file.Fd()), syscall.LOCK_UN) // an error here cannot be handled
	_ = db.file.Close()
}

var errChanged = errors.New("another process wrote to it")

// verify returns what another process did to the file since the last transaction, as an error, or nil. It is nil if the
// file was written but has the same last transaction and the same records.
func (db *DB) verify() error {
	info, err := db.file.Stat()
	if err != nil {
		return nil // the transaction reports it
	}
	there, err := os.Stat(db.file.Name())
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, there):
		return errGone
	case db.left.untouched(db.file, info):
		return nil
	}
	now, err := imageOf(db.file)
	switch {
	case err != nil:
		return err
	case !db.left.allows(now.fingerprint):
		return errChanged
	}
	db.left = now
	return nil
}
