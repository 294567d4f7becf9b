package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Movable is a store whose records can be moved. OpenToMove and OpenSharedToMove return one.
type Movable interface {
	Store
	// buckets returns the names of buckets with records.
	buckets(*Tx) []string
	// wipe deletes all records except those about the store itself.
	wipe(logs []string) error
}

// OpenToMove opens the file in dir, sealed or not, and creates it on the first start. It does not put a
// damaged file aside.
func OpenToMove(dir string) (*DB, error) { return open(dir, false, nil) }

// OpenSharedToMove is like OpenShared, but also opens sealed records.
func OpenSharedToMove(ctx context.Context, e Engine, member string) (*Shared, error) {
	return openShared(ctx, e, member, true)
}

// Place is a store in a move, and its name for people.
type Place struct {
	Movable
	Name string
}

// The approximate sizes of transactions during a move.
const (
	moveRecords = 30
	moveBytes   = 400 << 10
	moveValues  = 500 // of logs
)

// Move moves all records from one store to another. The new store must be empty, or contain only records
// that were moved away before. alone fails while another process may write to the old store. Move calls it
// after sealing the old store. also prepares everything else that must exist before the new store is opened.
// After a crash or an error, call Move again to continue.
func Move(from, to Place, logs []string, alone, also func() error) error {
	done, err := sealBoth(from, to, alone)
	if err != nil || done {
		return err
	}
	if err := to.wipe(logs); err != nil {
		return err
	}
	if s, is := from.Movable.(*Shared); is { // includes writes just before the seal
		ctx, cancel := context.WithTimeout(context.Background(), s.updateFor)
		defer cancel()
		if err := s.engine.Refresh(ctx); err != nil {
			return Unreachable(err)
		}
	}
	all, err := contents(from, logs)
	if err != nil {
		return err
	}
	if err := all.write(to); err != nil {
		return err
	}
	if err := also(); err != nil {
		return err
	}
	return finish(from, to, logs)
}

// sealBoth seals both stores. done says that the move was already complete.
func sealBoth(from, to Place, alone func() error) (done bool, err error) {
	there, err := to.seal()
	if err != nil {
		return false, err
	}
	here, err := from.seal()
	switch {
	case err != nil:
		return false, err
	case here.State == moved && here.Other == to.Name:
		if there.State == receiving {
			return true, to.open()
		}
		return true, nil
	case here.State == moved || here.State == receiving || here.State == moving && here.Other != to.Name:
		return false, &SealedError{here}
	case there.State == moving || there.State == receiving && there.Other != from.Name:
		return false, fmt.Errorf("%s: %w", to.Name, &SealedError{there})
	case there.State == "":
		if n, err := count(to); err != nil || n > 0 {
			return false, errors.Join(err, fmt.Errorf("%s has records of its own (%d): move to a place that has none", to.Name, n))
		}
	}
	if err := from.put(seal{moving, to.Name, time.Now()}); err != nil {
		return false, err
	}
	if err := alone(); err != nil && here.State == "" {
		return false, errors.Join(err, from.unseal(moving))
	} else if err != nil {
		return false, err
	}
	return false, to.Update(func(tx *Tx) error {
		return errors.Join(adopt(tx), seals.Put(tx, sealKey, seal{receiving, from.Name, time.Now()}))
	})
}

// finish compares the stores, closes the old one and then opens the new one.
func finish(from, to Place, logs []string) error {
	want, err := contents(from, logs)
	if err != nil {
		return err
	}
	got, err := contents(to, logs)
	if err != nil {
		return err
	}
	if diff := want.differs(got); diff != "" {
		return fmt.Errorf("the moved records differ from the records in %s; run the command again", diff)
	}
	if err := from.put(seal{moved, to.Name, time.Now()}); err != nil {
		return err
	}
	return to.open()
}

func (p Place) seal() (s seal, err error) {
	err = p.View(func(tx *Tx) (err error) { s, _, err = seals.Get(tx, sealKey); return err })
	return s, err
}

func (p Place) put(s seal) error {
	return p.Update(func(tx *Tx) error { return seals.Put(tx, sealKey, s) })
}

// unseal removes the seal if it has the given state.
func (p Place) unseal(state string) error {
	return p.Update(func(tx *Tx) error {
		if s, is, err := seals.Get(tx, sealKey); err != nil || !is || s.State != state {
			return err
		}
		return seals.Delete(tx, sealKey)
	})
}

// open opens a store that received all records, so it no longer counts as new.
func (p Place) open() error {
	return p.Update(func(tx *Tx) error {
		return errors.Join(seals.Delete(tx, sealKey), fresh.Delete(tx, freshKey))
	})
}

// moves reports whether the records of a bucket are moved. Records about the store itself and its members
// are not, nor keys, because each store protects them in its own way.
func moves(bucket string) bool {
	return bucket != aboutBucket && bucket != "keys" && bucket != begunScopes.Name && bucket != "coord" && !strings.HasPrefix(bucket, "coord-")
}

// count returns the number of records in the buckets that a move copies.
func count(p Place) (n int, err error) {
	err = p.View(func(tx *Tx) error {
		n = 0
		for _, b := range p.buckets(tx) {
			if !moves(b) {
				continue
			}
			if err := tx.table.scan(b, "", false, func(string, []byte) error { n++; return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// content contains everything in a store: records by bucket and key, the values of logs, the oldest first,
// and a loss that nobody has accepted.
type content struct {
	records map[string]map[string][]byte
	logs    map[string][][]byte
	loss    *Loss
}

// contents reads everything that a move copies: the records, the given logs, and the recorded loss.
func contents(p Place, logs []string) (c content, err error) {
	err = p.View(func(tx *Tx) (err error) {
		c = content{map[string]map[string][]byte{}, map[string][][]byte{}, nil}
		for _, b := range p.buckets(tx) {
			if !moves(b) || slices.Contains(logs, b) {
				continue
			}
			c.records[b] = map[string][]byte{}
			err := tx.table.scan(b, "", false, func(key string, value []byte) error { c.records[b][key] = bytes.Clone(value); return nil })
			if err != nil {
				return err
			}
		}
		for _, l := range logs {
			err := tx.table.newest(l, func(value []byte) error { c.logs[l] = append(c.logs[l], bytes.Clone(value)); return nil })
			if err != nil {
				return err
			}
			slices.Reverse(c.logs[l])
		}
		c.loss, err = LossOf(tx)
		return err
	})
	return c, err
}

// differs returns the name of a bucket or log with different content.
func (c content) differs(other content) string {
	for _, b := range slices.Sorted(maps.Keys(c.records)) {
		if !maps.EqualFunc(c.records[b], other.records[b], bytes.Equal) {
			return b
		}
	}
	for b := range other.records {
		if c.records[b] == nil {
			return b
		}
	}
	for l, values := range c.logs {
		if !slices.EqualFunc(values, other.logs[l], bytes.Equal) {
			return l
		}
	}
	if c.loss != nil && other.loss == nil { // a loss of the new place stays, too
		return "the loss"
	}
	return ""
}

// write writes the content to another place, in several transactions of bounded size.
func (c content) write(to Place) error {
	for _, b := range slices.Sorted(maps.Keys(c.records)) {
		keys := slices.Sorted(maps.Keys(c.records[b]))
		for len(keys) > 0 {
			n, size := 0, 0
			for n < len(keys) && n < moveRecords && (n == 0 || size+len(c.records[b][keys[n]]) < moveBytes) {
				size += len(c.records[b][keys[n]])
				n++
			}
			err := to.Update(func(tx *Tx) error {
				for _, key := range keys[:n] {
					if err := tx.table.put(b, key, c.records[b][key]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			keys = keys[n:]
		}
	}
	for l, values := range c.logs {
		for some := range slices.Chunk(values, moveValues) {
			raw := make([]json.RawMessage, len(some))
			for i, v := range some {
				raw[i] = v
			}
			err := to.Update(func(tx *Tx) error {
				return tx.table.add(l, raw, Keep{Most: 1 << 30, Since: time.Unix(0, 0)}, func([]byte) bool { return false })
			})
			if err != nil {
				return err
			}
		}
	}
	if c.loss == nil {
		return nil
	}
	return to.Update(func(tx *Tx) error { return losses.Put(tx, lossKey, *c.loss) })
}

func (db *DB) buckets(tx *Tx) (names []string) {
	if t, is := tx.table.(boltTable); is {
		_ = t.tx.ForEach(func(name []byte, _ *bolt.Bucket) error { names = append(names, string(name)); return nil })
	}
	return names
}

func (db *DB) wipe([]string) error {
	return db.Update(func(tx *Tx) error {
		for _, b := range db.buckets(tx) {
			if !moves(b) {
				continue
			}
			if err := tx.table.(boltTable).drop(b); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Shared) buckets(tx *Tx) []string {
	names := map[string]bool{}
	if t, is := tx.table.(*sharedTx); is {
		for _, r := range t.replica.List(recordPrefix) {
			name, _, _ := strings.Cut(strings.TrimPrefix(r.Key, recordPrefix), "/")
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// wipe deletes all records that a move copies, and the given logs, from the engine.
func (s *Shared) wipe(logs []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := s.engine.Refresh(ctx); err != nil {
		return Unreachable(err)
	}
	var ops []coord.Op
	flush := func(least int) error {
		if len(ops) < least {
			return nil
		}
		err := s.engine.Commit(ctx, ops)
		ops = nil
		return err
	}
	gone := func(r coord.Record) error {
		ops = append(ops, coord.Op{Key: r.Key, Delete: true, If: coord.Any})
		return flush(maxOps)
	}
	for _, prefix := range []string{recordPrefix, partPrefix} {
		for _, r := range s.engine.Replica().List(prefix) {
			name, _, _ := strings.Cut(strings.TrimPrefix(r.Key, recordPrefix), "/")
			if prefix == recordPrefix && !moves(name) {
				continue
			}
			if err := gone(r); err != nil {
				return Unreachable(err)
			}
		}
	}
	for _, l := range logs {
		if err := s.eachRecord(ctx, LogPrefix+l+"/", "", gone); err != nil {
			return Unreachable(err)
		}
	}
	if err := flush(1); err != nil {
		return Unreachable(err)
	}
	return s.engine.Refresh(ctx)
}
