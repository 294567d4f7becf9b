// Package state stores what weir must remember and what is neither in Git nor in AWS: suspensions,
// approvals, sent messages, history.
//
// A Store has buckets of records, each with a key. Transactions read and change them. Two kinds of stores
// exist:
//
//	DB      a file in the state directory of one daemon, written with an fsync for
//	        each change. If the file is missing or unreadable, it is put aside and
//	        replaced by a new one with a Loss: weir writes nothing to AWS until a
//	        person accepts the loss, because suspensions may be missing.
//	Shared  the records of several members in an engine that all of them reach. Each
//	        member reads from a replica, and each change is one conditional write.
//
// Users of a Store do not know its kind. In both, transactions run one after the other, and
// each sees all earlier changes.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
)

// format is the version of a store's format. It increases when a newer weir writes something that an older
// one would misread.
const format = 1

const (
	aboutBucket = "weir"
	formatKey   = "format"
)

// Store stores records.
type Store interface {
	// View calls fn with the records of one moment.
	View(fn func(*Tx) error) error
	// Update calls fn and makes all its changes atomically. If Update or fn fails, it makes none. Both View
	// and Update may call fn again, so fn must reset other state that it changes.
	Update(fn func(*Tx) error) error
}

// Tx is a transaction. It must not be used after the function that received it returns.
type Tx struct{ table table }

// table is the access of a transaction to a store. Returned values must not be changed or kept.
type table interface {
	get(bucket, key string) ([]byte, error) // nil if missing
	put(bucket, key string, value []byte) error
	remove(bucket, key string) error
	// scan calls fn with the records from the key from on, in order or backwards. fn must not change
	// anything.
	scan(bucket, from string, backwards bool, fn func(key string, value []byte) error) error
	// add and newest implement Log.
	add(log string, values []json.RawMessage, keep Keep, old func([]byte) bool) error
	newest(log string, fn func(value []byte) error) error
}

// Bucket holds values of one type as JSON, in the order of their keys.
type Bucket[T any] struct{ Name string }

// Put stores v under key, which must not be empty.
func (b Bucket[T]) Put(tx *Tx, key string, v T) error {
	data, err := json.Marshal(v)
	if err == nil {
		err = tx.table.put(b.Name, key, data)
	}
	return b.wrap("write", key, err)
}

// Get returns the value under key. ok reports whether it exists.
func (b Bucket[T]) Get(tx *Tx, key string) (v T, ok bool, err error) {
	ok, err = b.read(tx, key, &v)
	return v, ok, err
}

func (b Bucket[T]) read(tx *Tx, key string, into any) (bool, error) {
	data, err := tx.table.get(b.Name, key)
	if data == nil || err != nil {
		return false, b.wrap("read", key, err)
	}
	return true, b.wrap("read", key, json.Unmarshal(data, into))
}

// Delete removes the value under key, if any.
func (b Bucket[T]) Delete(tx *Tx, key string) error {
	return b.wrap("delete", key, tx.table.remove(b.Name, key))
}

// Remove deletes the values for which gone returns true. For an unreadable value, gone receives the error.
func (b Bucket[T]) Remove(tx *Tx, gone func(v T, err error) bool) error {
	var keys []string
	err := tx.table.scan(b.Name, "", false, func(key string, data []byte) error {
		var v T
		if err := json.Unmarshal(data, &v); gone(v, err) {
			keys = append(keys, key)
		}
		return nil
	})
	if err != nil {
		return b.wrap("read", "", err)
	}
	for _, key := range keys {
		if err := b.Delete(tx, key); err != nil {
			return err
		}
	}
	return nil
}

// ErrStop ends ForEach and Newest early and without an error.
var ErrStop = errors.New("stop")

// ForEach calls fn in order with every value whose key is not less than from. fn must not change the bucket.
func (b Bucket[T]) ForEach(tx *Tx, from string, fn func(key string, v T) error) error {
	err := tx.table.scan(b.Name, from, false, func(key string, data []byte) error {
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			return b.wrap("read", key, err)
		}
		return fn(key, v)
	})
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// wrap adds the bucket and key to an error.
func (b Bucket[T]) wrap(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s state: %s %q: %w", verb, b.Name, key, err)
}
