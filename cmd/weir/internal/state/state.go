// Package state keeps what weir must remember and neither Git nor AWS can tell:
// suspensions, approvals, history. It is one file in the state directory, written
// with an fsync for each change, and nothing in it is needed to reconcile: a file
// that cannot be read is put aside and a new one begins.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// ErrInUse says that a process, a running daemon as a rule, has the file open.
var ErrInUse = errors.New("the state is in use by another weir")

// UnreadableError says that a file could not be used as it was.
type UnreadableError struct {
	// File is where it was, Aside where it was moved; Aside is empty where the
	// file was only to be read.
	File, Aside string
	Why         error
}

// Error says what happened and what it means.
func (e *UnreadableError) Error() string {
	if e.Aside == "" {
		return fmt.Sprintf("%s cannot be read: %v", e.File, e.Why)
	}
	return fmt.Sprintf("%s cannot be read: %v; it was moved to %s and a new one begun: suspensions, approvals and history that it held are forgotten", e.File, e.Why, e.Aside)
}

// Unwrap returns why.
func (e *UnreadableError) Unwrap() error { return e.Why }

// DB is an open file. It may be used by several goroutines; changes go one after
// another.
type DB struct {
	bolt *bolt.DB
	lost *UnreadableError
}

// Open opens the file below dir, whose lock the caller holds, and makes it where
// there is none. One that is damaged, of another program, or of a newer weir is
// moved to weir.db.unreadable-<time>, and Lost says so. It fails with ErrInUse
// while another process has the file open.
func Open(dir string) (*DB, error) {
	name := filepath.Join(dir, File)
	db, err := open(name)
	var unreadable *UnreadableError
	if !errors.As(err, &unreadable) {
		return db, err
	}
	unreadable.Aside, err = setAside(name)
	if err != nil {
		return nil, errors.Join(unreadable, err)
	}
	if db, err = open(name); err != nil {
		return nil, err
	}
	db.lost = unreadable
	return db, nil
}

// OpenReadOnly opens the file below dir to look at it. It fails with
// fs.ErrNotExist where there is none, with ErrInUse while a daemon runs, and with
// an UnreadableError where Open would put the file aside.
func OpenReadOnly(dir string) (*DB, error) {
	name := filepath.Join(dir, File)
	if err := readable(name); err != nil {
		return nil, err
	}
	b, err := openBolt(name, true)
	if err != nil {
		return nil, err
	}
	return begin(name, b, false)
}

// open opens or makes the file.
func open(name string) (*DB, error) {
	if err := readable(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	b, err := openBolt(name, false)
	if err != nil {
		return nil, err
	}
	return begin(name, b, true)
}

// readable looks at the file before the library does.
func readable(name string) (err error) {
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	if !info.Mode().IsRegular() {
		return &UnreadableError{File: name, Why: errors.New("it is no regular file")}
	}
	if info.Size() == 0 {
		return nil // just made; the library fills it
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

// openBolt opens a file that was looked at. What the library panics at
// nevertheless is an unreadable file.
func openBolt(name string, readOnly bool) (b *bolt.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			b, err = nil, &UnreadableError{File: name, Why: fmt.Errorf("%v", r)}
		}
	}()
	b, err = bolt.Open(name, 0o600, &bolt.Options{Timeout: lockWait, ReadOnly: readOnly, FreelistType: bolt.FreelistMapType, NoStatistics: true})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open state: %s: %w", name, ErrInUse)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return nil, &UnreadableError{File: name, Why: err}
	case err != nil:
		return nil, fmt.Errorf("open state: %w", err)
	}
	return b, nil
}

// begin reads the format of an open file, or writes it into a new one.
func begin(name string, b *bolt.DB, write bool) (*DB, error) {
	db := &DB{bolt: b}
	empty, version := false, 0
	err := db.View(func(tx *Tx) error {
		if first, _ := tx.bolt.Cursor().First(); first == nil {
			empty = true
			return nil
		}
		_, err := Bucket[int]{aboutBucket}.read(tx, formatKey, &version)
		return err
	})
	switch {
	case err != nil:
		err = &UnreadableError{File: name, Why: err}
	case empty && write:
		err = db.Update(func(tx *Tx) error { return Bucket[int]{aboutBucket}.Put(tx, formatKey, format) })
	case !empty && version == 0:
		err = &UnreadableError{File: name, Why: errors.New("it is no state of weir's")}
	case !empty && version != format:
		err = &UnreadableError{File: name, Why: fmt.Errorf("it has format %d, this weir knows %d", version, format)}
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return db, nil
}

// setAside moves the file out of the way.
func setAside(name string) (string, error) {
	aside := name + ".unreadable-" + time.Now().UTC().Format("20060102T150405.000000000Z")
	if err := os.Rename(name, aside); err != nil {
		return "", fmt.Errorf("put aside state: %w", err)
	}
	return aside, nil
}

// Lost says which file Open put aside and why, nil if none.
func (db *DB) Lost() error {
	if db.lost == nil {
		return nil
	}
	return db.lost
}

// Close closes the file once no transaction is under way.
func (db *DB) Close() error { return db.bolt.Close() }

// Tx is a view of the file at one moment, or a change of it.
type Tx struct{ bolt *bolt.Tx }

// View calls fn with a view of the file.
func (db *DB) View(fn func(*Tx) error) error {
	return db.bolt.View(func(tx *bolt.Tx) error { return fn(&Tx{tx}) })
}

// Update calls fn and writes all of its changes at once, on the disk when Update
// returns; none where fn fails.
func (db *DB) Update(fn func(*Tx) error) error {
	err := db.bolt.Update(func(tx *bolt.Tx) error { return fn(&Tx{tx}) })
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

// Get returns what is under key; ok says whether there is something.
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

// Delete removes what is under key, if anything.
func (b Bucket[T]) Delete(tx *Tx, key string) error {
	bucket := tx.bolt.Bucket([]byte(b.Name))
	if bucket == nil {
		return nil
	}
	return b.wrap("delete", key, bucket.Delete([]byte(key)))
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
