package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// File is the name of the file in the state directory.
const File = "weir.db"

// lockWait bounds the time that an open waits for the lock of another process.
const lockWait = time.Second

// ErrInUse says that another process, usually a running daemon, has the file open.
var ErrInUse = errors.New("the state is in use by another weir")

// UnreadableError says that a file could not be used.
type UnreadableError struct {
	// File is the original path of the file, and Aside its new path. Aside is empty if the file was opened
	// for reading only, or did not exist.
	File, Aside string
	Why         error
}

// Error returns the fault and both paths.
func (e *UnreadableError) Error() string { return e.text(func(file string) string { return file }) }

func (e *UnreadableError) text(name func(string) string) string {
	text := fmt.Sprintf("%s cannot be read: %v", name(e.File), e.Why)
	if e.Aside != "" {
		text += "; it was moved to " + name(e.Aside)
	}
	return text
}

// Loss returns the loss of the records in the file.
func (e *UnreadableError) Loss() *Loss { return &Loss{Since: time.Now(), Why: e.text(filepath.Base)} }

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Why }

// DB is an open file. It is safe for concurrent use. Transactions run one after the other, and must not be
// nested.
type DB struct {
	dir      string
	readOnly bool
	lost     *UnreadableError

	mu     sync.Mutex // held during a transaction
	bolt   *bolt.DB
	file   *os.File  // the library's handle
	left   image     // the file after the last transaction
	broken error     // why the file can no longer be used
	noted  bool      // a note has the reason
	tried  time.Time // time of the last attempt to replace it
	closed bool
}

// Open opens the file in dir, and creates it on the first start. The caller holds the lock of dir. If the
// file is damaged, missing, or written by another program or a newer weir, Open renames it
// to weir.db.unreadable-<time> and starts a new file that contains a Loss; Lost returns the reason. A file
// that is damaged later is replaced in the same way. Open fails with ErrInUse while another process has the
// file open.
func Open(dir string) (*DB, error) {
	db, err := open(dir, false, nil)
	var unreadable *UnreadableError
	if !errors.As(err, &unreadable) {
		return db.unsealed(err)
	}
	return replaceUnreadable(dir, unreadable)
}

// OpenReadOnly opens the file in dir for reading. It fails with fs.ErrNotExist if no file was ever created,
// with ErrInUse while a daemon runs, and with an UnreadableError in the cases in which Open replaces the
// file.
func OpenReadOnly(dir string) (*DB, error) {
	db, err := open(dir, true, nil)
	return db.unsealed(err)
}

// unsealed returns the opened store, unless its records were moved away.
func (db *DB) unsealed(err error) (*DB, error) {
	if err != nil {
		return nil, err
	}
	var s *SealedError
	if err := db.View(sealed); errors.As(err, &s) { // other errors appear on use
		return nil, errors.Join(fmt.Errorf("%s: %w", filepath.Join(db.dir, File), err), db.Close())
	}
	return db, nil
}

// replaceUnreadable replaces an unreadable file by a new one. After a crash at any moment, the next open
// detects the same loss.
func replaceUnreadable(dir string, why *UnreadableError) (*DB, error) {
	err := markBegun(dir)
	if err == nil {
		err = setAside(why)
	}
	if err != nil {
		return nil, errors.Join(why, err)
	}
	db, err := open(dir, false, why)
	if err != nil {
		return nil, err
	}
	if err := forgetNote(dir); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// open opens the file, or creates it. A new file replaces a lost one.
func open(dir string, readOnly bool, lost *UnreadableError) (*DB, error) {
	name := filepath.Join(dir, File)
	earlier, err := begun(dir)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	if why, err := notedLoss(dir); err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	} else if why != "" && lost == nil {
		if err := readable(name); errors.Is(err, ErrInUse) { // a daemon will replace it
			return nil, err
		}
		return nil, &UnreadableError{File: name, Why: errors.New(why)}
	}
	switch err := readable(name); {
	case !errors.Is(err, fs.ErrNotExist):
		if err != nil {
			return nil, err
		}
	case earlier && lost == nil:
		return nil, &UnreadableError{File: name, Why: errGone}
	case readOnly:
		return nil, err
	}
	db := &DB{dir: dir, readOnly: readOnly, lost: lost}
	if err := db.openBolt(name); err != nil {
		return nil, err
	}
	if db.broken = db.start(name, earlier); db.broken != nil {
		return nil, errors.Join(db.broken, db.Close())
	}
	// With the library's lock held, no weir writes to the file.
	if db.left, err = imageOf(db.file); err != nil {
		return nil, errors.Join(&UnreadableError{File: name, Why: err}, db.Close())
	}
	if readOnly {
		return db, nil
	}
	if err := markBegun(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open state: %w", err), db.Close())
	}
	return db, nil
}

// readable checks the file before the library opens it. An empty file counts as missing.
func readable(name string) (err error) {
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	if !info.Mode().IsRegular() {
		return &UnreadableError{File: name, Why: errors.New("it is not a regular file")}
	}
	if info.Size() == 0 { // another process was about to create it
		return fmt.Errorf("open state: %s is empty: %w", name, fs.ErrNotExist)
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := lock(f); err != nil {
		return fmt.Errorf("open state: %s: %w", name, err)
	}
	if _, err := imageOf(f); err != nil {
		return &UnreadableError{File: name, Why: err}
	}
	return nil
}

// lock takes a shared lock of a file until it is closed, because another process that is writing leaves pages that do not
// belong together. It fails with ErrInUse.
func lock(f *os.File) error {
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		switch {
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return err
		case time.Since(begun) > lockWait:
			return ErrInUse
		}
	}
}

// openBolt opens a file that was checked. If the library still panics, the file is unreadable.
func (db *DB) openBolt(name string) error {
	err := guarded(func() (err error) {
		db.bolt, err = bolt.Open(name, 0o600, &bolt.Options{
			Timeout: lockWait, ReadOnly: db.readOnly, FreelistType: bolt.FreelistMapType, NoStatistics: true,
			OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
				f, err = os.OpenFile(name, flag, mode)
				db.file = f
				return f, err
			},
		})
		return err
	})
	var d *damage
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("open state: %s: %w", name, ErrInUse)
	case errors.As(err, &d):
		db.giveUp()
		return &UnreadableError{File: name, Why: err}
	case damaged(err):
		return &UnreadableError{File: name, Why: err}
	case err != nil:
		return fmt.Errorf("open state: %w", err)
	}
	return nil
}

// start reads the format of an open file, or writes it into a new one. An empty file that an earlier weir
// created is damaged.
func (db *DB) start(name string, earlier bool) error {
	empty, version := false, 0
	err := guarded(func() error {
		return db.bolt.View(func(tx *bolt.Tx) error {
			if first, _ := tx.Cursor().First(); first == nil {
				empty = true
				return nil
			}
			_, err := Bucket[int]{aboutBucket}.read(&Tx{boltTable{tx: tx}}, formatKey, &version)
			return err
		})
	})
	switch {
	case err != nil:
		return &UnreadableError{File: name, Why: err}
	case empty && earlier && db.lost == nil:
		return &UnreadableError{File: name, Why: errGone}
	case !empty && version == 0:
		return &UnreadableError{File: name, Why: errors.New("it is not a state of weir's")}
	case !empty && version != format:
		return &UnreadableError{File: name, Why: fmt.Errorf("it has format %d, this weir knows %d", version, format)}
	case (empty || db.lost != nil) && !db.readOnly:
		if err := guarded(func() error { return db.bolt.Update(db.fill) }); damaged(err) {
			return &UnreadableError{File: name, Why: err}
		} else if err != nil {
			return fmt.Errorf("create state: %s: %w", name, err)
		}
	}
	return nil
}

// fill writes the initial records of a new file in one transaction. Without the loss, the file would look as
// if nothing had been lost.
func (db *DB) fill(tx *bolt.Tx) error {
	write := &Tx{boltTable{tx: tx}}
	err := Bucket[int]{aboutBucket}.Put(write, formatKey, format)
	if err == nil && db.lost != nil {
		err = losses.Put(write, lossKey, *db.lost.Loss())
	}
	return err
}

// setAside renames the file if it exists and is not empty. It removes an empty file.
func setAside(of *UnreadableError) error {
	if info, err := os.Stat(of.File); err == nil && info.Size() == 0 {
		return os.Remove(of.File)
	}
	aside := of.File + ".unreadable-" + time.Now().UTC().Format("20060102T150405.000000000Z")
	switch err := os.Rename(of.File, aside); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("put aside state: %w", err)
	}
	of.Aside = aside
	return nil
}

// Lost returns which file was put aside since Open, and why, or nil.
func (db *DB) Lost() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.lost == nil {
		return nil
	}
	return db.lost
}

// Close waits for a running transaction and closes the file.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case db.closed:
		return nil
	case db.broken != nil:
		db.closed = true
		db.giveUp()
		return nil
	}
	db.closed = true
	return errors.Join(db.verifyLast(), guarded(db.bolt.Close))
}

// verifyLast keeps a loss that happened since the last transaction, because the next start cannot recognize a valid older
// copy. An emptied directory is a new start, and no loss.
func (db *DB) verifyLast() error {
	why := db.verify()
	if is, err := begun(db.dir); why == nil || db.readOnly || err == nil && !is {
		return nil
	}
	return db.keepLoss(&UnreadableError{File: db.file.Name(), Why: why})
}

// View implements Store.
func (db *DB) View(fn func(*Tx) error) error {
	return db.run(func(b *bolt.DB) (refused, err error) {
		err = b.View(func(tx *bolt.Tx) error {
			refused = fn(&Tx{boltTable{tx: tx}})
			return refused
		})
		return refused, err
	})
}

// Update implements Store. The changes are on disk when it returns.
func (db *DB) Update(fn func(*Tx) error) error {
	err := db.run(func(b *bolt.DB) (refused, err error) { return db.update(b, fn) })
	if errors.Is(err, bolterrors.ErrDatabaseReadOnly) {
		return fmt.Errorf("write state: it was opened to be read: %w", err)
	}
	return err
}

// update runs a transaction and notes what it left in the file. refused is the error of fn.
func (db *DB) update(b *bolt.DB, fn func(*Tx) error) (refused, err error) {
	number, records := 0, db.left.records
	err = b.Update(func(tx *bolt.Tx) error {
		number = tx.ID()
		if refused = fn(&Tx{boltTable{tx, &records}}); refused != nil {
			return refused
		}
		if info, err := db.file.Stat(); err != nil || db.left.stamp == stampOf(info) {
			return nil
		}
		if why := db.verify(); why != nil { // the library writes nothing before the commit
			return &UnreadableError{File: db.file.Name(), Why: why}
		}
		return nil
	})
	switch {
	case err == nil:
		db.left = db.left.after(db.file, number, records)
	case number > 0 && refused == nil:
		db.left = db.left.unsure(number, records) // the commit failed
	}
	return refused, err
}
