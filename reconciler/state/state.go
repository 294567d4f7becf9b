// Package state keeps what weir must remember and neither Git nor AWS can tell:
// suspensions, approvals, history. It is one file in the state directory, written
// with an fsync for each change. A file that cannot be read, or is gone, is put aside
// and a new one begins, which says that something was lost until a person accepts it:
// nothing is written to AWS meanwhile, as what was suspended is not known any more.
package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// File is the file's name below the state directory.
const File = "weir.db"

// format is the version of what the file holds. It goes up when a newer weir
// writes what an older one would misread.
const format = 1

// lockWait bounds how long an open waits for the lock of another process.
const lockWait = time.Second

const (
	aboutBucket = "weir"
	formatKey   = "format"
)

// ErrInUse says that a process, a running daemon as a rule, holds the file open.
var ErrInUse = errors.New("the state is in use by another weir")

// UnreadableError says that a file could not be used as it was.
type UnreadableError struct {
	// File is where it was, Aside where it was moved; Aside is empty where the
	// file was only to be read, or was not there.
	File, Aside string
	Why         error
}

// Error says what happened.
func (e *UnreadableError) Error() string { return e.text(func(file string) string { return file }) }

func (e *UnreadableError) text(name func(string) string) string {
	text := fmt.Sprintf("%s cannot be read: %v", name(e.File), e.Why)
	if e.Aside != "" {
		text += "; it was moved to " + name(e.Aside)
	}
	return text
}

// Loss names the records that are lost with the file.
func (e *UnreadableError) Loss() *Loss { return &Loss{Since: time.Now(), Why: e.text(filepath.Base)} }

// Unwrap returns why.
func (e *UnreadableError) Unwrap() error { return e.Why }

// DB is an open file. It may be used by several goroutines; transactions go one
// after another, and none may begin another.
type DB struct {
	dir      string
	readOnly bool
	lost     *UnreadableError

	mu     sync.Mutex // held during a transaction
	bolt   *bolt.DB
	file   *os.File  // the library's
	size   int64     // what it had before the last transaction
	broken error     // why the file cannot be used any more
	tried  time.Time // when a new one last replaced it
	closed bool
}

// Open opens the file below dir, whose lock the caller holds, and makes it where
// there never was one. One that is damaged, of another program, of a newer weir, or
// gone, is moved to weir.db.unreadable-<time>, Lost says so, and the new one holds a
// Loss. So it is with a file that is damaged later. It fails with ErrInUse while
// another process holds the file open.
func Open(dir string) (*DB, error) {
	db, err := open(dir, false, nil)
	var unreadable *UnreadableError
	if !errors.As(err, &unreadable) {
		return db, err
	}
	return begin(dir, unreadable)
}

// OpenReadOnly opens the file below dir to read it. It fails with fs.ErrNotExist where
// there never was one, with ErrInUse while a daemon runs, and with an UnreadableError
// where Open would put the file aside.
func OpenReadOnly(dir string) (*DB, error) { return open(dir, true, nil) }

// begin replaces a file that cannot be read by a new one. A crash at any moment leaves
// one that says the same.
func begin(dir string, why *UnreadableError) (*DB, error) {
	err := markBegun(dir)
	if err == nil {
		err = setAside(why)
	}
	if err != nil {
		return nil, errors.Join(why, err)
	}
	return open(dir, false, why)
}

// open opens the file, or makes it. A new file replaces a lost one.
func open(dir string, readOnly bool, lost *UnreadableError) (*DB, error) {
	name := filepath.Join(dir, File)
	earlier, err := begun(dir)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
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
	if readOnly {
		return db, nil
	}
	if err := markBegun(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open state: %w", err), db.Close())
	}
	return db, nil
}

// readable looks at the file before the library does. An empty one is like a missing one.
func readable(name string) (err error) {
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	if !info.Mode().IsRegular() {
		return &UnreadableError{File: name, Why: errors.New("it is no regular file")}
	}
	if info.Size() == 0 { // another process was about to make it
		return fmt.Errorf("open state: %s is empty: %w", name, fs.ErrNotExist)
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := check(f, info.Size()); err != nil {
		return &UnreadableError{File: name, Why: err}
	}
	return nil
}

// openBolt opens a file that was looked at. If the library panics nevertheless, the
// file is unreadable.
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
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return &UnreadableError{File: name, Why: err}
	case err != nil:
		return fmt.Errorf("open state: %w", err)
	}
	return nil
}

// start reads the format of an open file, or writes it into a new one. An earlier
// weir that began the file has filled it.
func (db *DB) start(name string, earlier bool) error {
	empty, version := false, 0
	err := guarded(func() error {
		return db.bolt.View(func(tx *bolt.Tx) error {
			if first, _ := tx.Cursor().First(); first == nil {
				empty = true
				return nil
			}
			_, err := Bucket[int]{aboutBucket}.read(&Tx{tx}, formatKey, &version)
			return err
		})
	})
	switch {
	case err != nil:
		return &UnreadableError{File: name, Why: err}
	case empty && earlier && db.lost == nil:
		return &UnreadableError{File: name, Why: errGone}
	case empty && !db.readOnly:
		return guarded(func() error { return db.bolt.Update(db.fill) })
	case !empty && version == 0:
		return &UnreadableError{File: name, Why: errors.New("it is no state of weir's")}
	case !empty && version != format:
		return &UnreadableError{File: name, Why: fmt.Errorf("it has format %d, this weir knows %d", version, format)}
	}
	return nil
}

// fill writes what a new file has, all at once: without the loss it would look as
// if nothing had been lost.
func (db *DB) fill(tx *bolt.Tx) error {
	err := Bucket[int]{aboutBucket}.Put(&Tx{tx}, formatKey, format)
	if err == nil && db.lost != nil {
		err = losses.Put(&Tx{tx}, lossKey, *db.lost.Loss())
	}
	return err
}

// setAside moves the file out of the way, if it is there and holds anything.
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

// Lost says which file was put aside since Open, and why, nil if none.
func (db *DB) Lost() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.lost == nil {
		return nil
	}
	return db.lost
}

// Close closes the file once no transaction is under way.
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
	return guarded(db.bolt.Close)
}

// Tx is a view of the file at one moment, or a change of it.
type Tx struct{ bolt *bolt.Tx }

// View calls fn with a view of the file.
func (db *DB) View(fn func(*Tx) error) error {
	return db.run(func(b *bolt.DB) error { return b.View(func(tx *bolt.Tx) error { return fn(&Tx{tx}) }) })
}

// Update calls fn and writes all of its changes at once, on the disk when Update
// returns; none where fn fails.
func (db *DB) Update(fn func(*Tx) error) error {
	err := db.run(func(b *bolt.DB) error { return b.Update(func(tx *bolt.Tx) error { return fn(&Tx{tx}) }) })
	if errors.Is(err, bolterrors.ErrDatabaseReadOnly) {
		return fmt.Errorf("write state: it was opened to be read: %w", err)
	}
	return err
}

// Bucket holds values of one type as JSON, in the order of their keys.
type Bucket[T any] struct{ Name string }

// Put stores v under key, which is not empty.
func (b Bucket[T]) Put(tx *Tx, key string, v T) error {
	data, err := json.Marshal(v)
	if err != nil {
		return b.wrap("write", key, err)
	}
	bucket, err := tx.bolt.CreateBucketIfNotExists([]byte(b.Name))
	if err == nil {
		err = bucket.Put([]byte(key), data)
	}
	return b.wrap("write", key, err)
}

// Get returns the value under key; ok says whether there is something.
func (b Bucket[T]) Get(tx *Tx, key string) (v T, ok bool, err error) {
	ok, err = b.read(tx, key, &v)
	return v, ok, err
}

func (b Bucket[T]) read(tx *Tx, key string, into any) (bool, error) {
	bucket := tx.bolt.Bucket([]byte(b.Name))
	if bucket == nil {
		return false, nil
	}
	data := bucket.Get([]byte(key))
	if data == nil {
		return false, nil
	}
	return true, b.wrap("read", key, json.Unmarshal(data, into))
}

// Delete removes the value under key, if any.
func (b Bucket[T]) Delete(tx *Tx, key string) error {
	bucket := tx.bolt.Bucket([]byte(b.Name))
	if bucket == nil {
		return nil
	}
	return b.wrap("delete", key, bucket.Delete([]byte(key)))
}

// Remove deletes the values for which gone says so. It is given an error with those
// that cannot be read.
func (b Bucket[T]) Remove(tx *Tx, gone func(v T, err error) bool) error {
	bucket := tx.bolt.Bucket([]byte(b.Name))
	if bucket == nil {
		return nil
	}
	var keys [][]byte
	c := bucket.Cursor()
	for k, data := c.First(); k != nil; k, data = c.Next() {
		var v T
		if err := json.Unmarshal(data, &v); gone(v, err) {
			keys = append(keys, bytes.Clone(k))
		}
	}
	for _, k := range keys {
		if err := bucket.Delete(k); err != nil {
			return b.wrap("delete", string(k), err)
		}
	}
	return nil
}

// ErrStop ends ForEach and Backwards early and without an error.
var ErrStop = errors.New("stop")

// ForEach calls fn with every value from the key from on ("" for all), in order.
// fn must not change the bucket.
func (b Bucket[T]) ForEach(tx *Tx, from string, fn func(key string, v T) error) error {
	return b.each(tx, func(c *bolt.Cursor) ([]byte, []byte) { return c.Seek([]byte(from)) }, (*bolt.Cursor).Next, fn)
}

// Backwards calls fn with every value, the greatest key first. fn must not
// change the bucket.
func (b Bucket[T]) Backwards(tx *Tx, fn func(key string, v T) error) error {
	return b.each(tx, (*bolt.Cursor).Last, (*bolt.Cursor).Prev, fn)
}

func (b Bucket[T]) each(tx *Tx, first, next func(*bolt.Cursor) ([]byte, []byte), fn func(key string, v T) error) error {
	bucket := tx.bolt.Bucket([]byte(b.Name))
	if bucket == nil {
		return nil
	}
	c := bucket.Cursor()
	for k, data := first(c); k != nil; k, data = next(c) {
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			return b.wrap("read", string(k), err)
		}
		if err := fn(string(k), v); err != nil {
			if errors.Is(err, ErrStop) {
				return nil
			}
			return err
		}
	}
	return nil
}

// wrap says where an error came from.
func (b Bucket[T]) wrap(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s state: %s %q: %w", verb, b.Name, key, err)
}
