// Package state keeps what weir must remember and what is neither in Git nor in AWS: suspensions,
// approvals, sent messages, history.
//
// A Store has buckets of records, each under a key, which are read and changed in
// transactions. There are two:
//
//	DB      a file in the state directory of one weir, written with an fsync for
//	        each change. A file that cannot be read, or is gone, is put aside and a
//	        new one begins, which holds a Loss: nothing is written to AWS until a
//	        person accepts that, as what was suspended is not known any more.
//	Shared  the records of several weirs in an engine that all of them reach. Each
//	        reads from a replica, and what it changes is one conditional write.
//
// A keeper of records does not know which of them it has. In both, transactions happen one after
// another, and each sees all earlier changes.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
)

// format is the version of what a store holds. It goes up when a newer weir
// writes what an older one would misread.
const format = 1

const (
	aboutBucket = "weir"
	formatKey   = "format"
)

// Store keeps records.
type Store interface {
	// View calls fn with the records as they are at one moment.
	View(fn func(*Tx) error) error
	// Update calls fn and makes all of its changes at once. It makes none if Update or fn fails.
	// Both may call fn again, so fn must reset anything else that it changes.
	Update(fn func(*Tx) error) error
}

// Tx are the records at one moment, or a change of them. It is of no use after the
// function that was given it.
type Tx struct{ table table }

// table is the access of a transaction to a store. Returned values must not be changed or kept.
type table interface {
	get(bucket, key string) ([]byte, error) // nil for none
	put(bucket, key string, value []byte) error
	remove(bucket, key string) error
	// scan gives the records whose key is not less than from, in order or backwards.
	// fn changes nothing.
	scan(bucket, from string, backwards bool, fn func(key string, value []byte) error) error
	// add and newest are a Log's.
	add(log string, values []json.RawMessage, keep Keep, old func([]byte) bool) error
	newest(log string, fn func(value []byte) error) error
}

// Bucket holds values of one type as JSON, in the order of their keys.
type Bucket[T any] struct{ Name string }

// Put stores v under key, which is not empty.
func (b Bucket[T]) Put(tx *Tx, key string, v T) error {
	data, err := json.Marshal(v)
	if err == nil {
		err = tx.table.put(b.Name, key, data)
	}
	return b.wrap("write", key, err)
}

// Get returns the value under key; ok says whether there is something.
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

// Remove deletes the values for which gone says so. It is given an error with those
// that cannot be read.
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

// ForEach calls fn with every value from the key from on ("" for all), in order.
// fn must not change the bucket.
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

// wrap says where an error came from.
func (b Bucket[T]) wrap(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s state: %s %q: %w", verb, b.Name, key, err)
}
