package state

import (
	"bytes"
	"errors"

	bolt "go.etcd.io/bbolt"
)

// boltTable implements table in a transaction of bbolt, and keeps the digest of all records. It returns copies of values, because bbolt's own are in
// a memory map, and would change during decoding if another process truncated the file.
type boltTable struct {
	tx      *bolt.Tx
	records *digest // nil if nothing needs it
}

// change sets or removes a record of a bucket by do, and updates the digest unless do fails. to is nil if the record
// is removed.
func (t boltTable) change(bucket, key string, was, to []byte, do func() error) error {
	if t.records == nil {
		return do()
	}
	next := *t.records
	if was != nil {
		next.toggle(bucket, key, was)
	}
	if to != nil {
		next.toggle(bucket, key, to)
	}
	err := do()
	if err == nil {
		*t.records = next
	}
	return err
}

func (t boltTable) get(bucket, key string) ([]byte, error) {
	if b := t.tx.Bucket([]byte(bucket)); b != nil {
		return bytes.Clone(b.Get([]byte(key))), nil
	}
	return nil, nil
}

func (t boltTable) put(bucket, key string, value []byte) error {
	b, err := t.tx.CreateBucketIfNotExists([]byte(bucket))
	if err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	return t.change(bucket, key, b.Get([]byte(key)), value, func() error { return b.Put([]byte(key), value) })
}

func (t boltTable) remove(bucket, key string) error {
	if b := t.tx.Bucket([]byte(bucket)); b != nil {
		return t.change(bucket, key, b.Get([]byte(key)), nil, func() error { return b.Delete([]byte(key)) })
	}
	return nil
}

// drop removes a bucket with all its records.
func (t boltTable) drop(bucket string) error {
	b := t.tx.Bucket([]byte(bucket))
	if b == nil {
		return nil
	}
	err := b.ForEach(func(key, value []byte) error { t.records.toggle(bucket, string(key), value); return nil })
	return errors.Join(err, t.tx.DeleteBucket([]byte(bucket)))
}

// scan calls fn for each record whose key is at least from: in ascending order, or backwards from the last key of
// the bucket. It stops at the first error of fn, and returns that error.
func (t boltTable) scan(bucket, from string, backwards bool, fn func(key string, value []byte) error) error {
	b := t.tx.Bucket([]byte(bucket))
	if b == nil {
		return nil
	}
	c := b.Cursor()
	first, next := func() ([]byte, []byte) { return c.Seek([]byte(from)) }, c.Next
	if backwards {
		first, next = c.Last, c.Prev
	}
	for k, value := first(); k != nil && (!backwards || bytes.Compare(k, []byte(from)) >= 0); k, value = next() {
		if err := fn(string(k), bytes.Clone(value)); err != nil {
			return err
		}
	}
	return nil
}
