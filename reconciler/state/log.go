package state

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Log contains values of one type, roughly in the order in which they were added. It is bounded, and is
// never completely in memory.
type Log[T any] struct {
	Name string
	// At returns the time of the event that a value describes.
	At func(T) time.Time
}

// Keep bounds a log by number and age of its values.
type Keep struct {
	Most  int
	Since time.Time
}

// Add appends values to the log, and removes values beyond its bounds. Shared removes them only now and
// then.
func (l Log[T]) Add(tx *Tx, values []T, keep Keep) error {
	if len(values) == 0 {
		return nil
	}
	raw := make([]json.RawMessage, len(values))
	for i, v := range values {
		var err error
		if raw[i], err = json.Marshal(v); err != nil {
			return fmt.Errorf("write state: log %s: %w", l.Name, err)
		}
	}
	old := func(data []byte) bool {
		var v T
		return json.Unmarshal(data, &v) == nil && l.At(v).Before(keep.Since)
	}
	return tx.table.add(l.Name, raw, keep, old)
}

// Newest calls fn with every value, the newest first, until fn returns ErrStop.
func (l Log[T]) Newest(tx *Tx, fn func(T) error) error {
	err := tx.table.newest(l.Name, func(data []byte) error {
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			return fmt.Errorf("read state: log %s: %w", l.Name, err)
		}
		return fn(v)
	})
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// In a file, keys are consecutive numbers. So the first and the last key give the number of values, and the
// oldest values come first.

// add appends values to a log, and deletes the values that keep does not keep.
func (t boltTable) add(log string, values []json.RawMessage, keep Keep, old func([]byte) bool) error {
	last, err := uint64(0), error(nil)
	read := t.scan(log, "", true, func(key string, _ []byte) error {
		last, err = strconv.ParseUint(key, 16, 64)
		return ErrStop
	})
	if err == nil && !errors.Is(read, ErrStop) {
		err = read
	}
	for _, v := range values {
		if err != nil {
			return err
		}
		last++
		err = t.put(log, fmt.Sprintf("%016x", last), v)
	}
	var gone []string
	read = t.scan(log, "", false, func(key string, data []byte) error {
		n, err := strconv.ParseUint(key, 16, 64)
		if err != nil {
			return err
		}
		if last-n < uint64(keep.Most) && !old(data) { //nolint:gosec // positive
			return ErrStop
		}
		gone = append(gone, key)
		return nil
	})
	if err == nil && !errors.Is(read, ErrStop) {
		err = read
	}
	for _, key := range gone {
		err = errors.Join(err, t.remove(log, key))
	}
	return err
}

func (t boltTable) newest(log string, fn func([]byte) error) error {
	return t.scan(log, "", true, func(_ string, data []byte) error { return fn(data) })
}

// In an engine, values that were added together form one record. The key starts with the time that remains
// until the greatest possible time, so that the newest records come first. It ends with the number of
// values.

const (
	// logRecord is the approximate maximum size of a log's record.
	logRecord = 64 << 10
	// trimEach is the number of its own records after which a member trims a log again.
	trimEach = 200
)

type logs struct {
	last  int64 // the last time in a key
	added map[string]int
}

// add adds values to a log when the transaction is committed, several in one record.
func (t *sharedTx) add(log string, values []json.RawMessage, keep Keep, _ func([]byte) bool) error {
	for len(values) > 0 {
		n, size := 0, 0
		for n < len(values) && (n == 0 || size+len(values[n]) < logRecord) {
			size += len(values[n])
			n++
		}
		data, err := json.Marshal(values[:n])
		if err != nil {
			return err
		}
		if len(data) > partSize {
			return fmt.Errorf("log %s: a value of %d bytes is too long", log, len(data))
		}
		l := t.store.logs
		l.last = max(l.last+1, t.store.now().UnixNano())
		t.added = append(t.added, logEntry{log: log, key: logKey(log, time.Unix(0, l.last), t.store.member, n), value: data, keep: keep})
		values = values[n:]
	}
	return nil
}

func logKey(log string, at time.Time, member string, n int) string {
	var unique [4]byte
	_, _ = rand.Read(unique[:]) // never fails
	return fmt.Sprintf("%s.%x.%s.%d", logTime(log, at), unique, escape(member), n)
}

// logTime returns the prefix of the keys for a time.
func logTime(log string, at time.Time) string {
	return fmt.Sprintf("%s%s/%016x", LogPrefix, log, uint64(math.MaxInt64-at.UnixNano())) //nolint:gosec // neither is negative
}

// newest calls fn for the values of a log, the newest first. It reads the engine instead of the replica.
func (t *sharedTx) newest(log string, fn func([]byte) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), updateFor)
	defer cancel()
	return t.store.eachRecord(ctx, LogPrefix+log+"/", "", func(r coord.Record) error {
		var values []json.RawMessage
		if err := json.Unmarshal(r.Value, &values); err != nil {
			return fmt.Errorf("read state: log %s: %w", log, err)
		}
		for i := len(values) - 1; i >= 0; i-- {
			if err := fn(values[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachRecord calls fn for all records of the engine with a prefix, after a key, page by page.
func (s *Shared) eachRecord(ctx context.Context, prefix, after string, fn func(coord.Record) error) error {
	for {
		page, next, err := s.engine.List(ctx, prefix, after)
		if err != nil {
			return fmt.Errorf("read state: the coordination engine does not answer: %w", err)
		}
		for _, r := range page {
			if err := fn(r); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

// trim sometimes removes values beyond the bounds of logs. The next trim, by any member, removes what this
// one misses.
func (s *Shared) trim(ctx context.Context, tx *sharedTx) {
	for _, e := range tx.added {
		s.logs.added[e.log]++
		if s.logs.added[e.log]%trimEach != 1 {
			continue
		}
		values, ops := 0, []coord.Op(nil)
		err := s.eachRecord(ctx, LogPrefix+e.log+"/", "", func(r coord.Record) error {
			old := r.Key > logTime(e.log, e.keep.Since)
			if values < e.keep.Most && !old {
				values += logCount(r.Key)
				return nil
			}
			if ops = append(ops, coord.Op{Key: r.Key, Delete: true, If: coord.Any}); len(ops) < maxOps {
				return nil
			}
			err := s.engine.Commit(ctx, ops)
			ops = nil
			return err
		})
		if err == nil && len(ops) > 0 {
			_ = s.engine.Commit(ctx, ops) // after an error, a later trim removes them
		}
	}
}

// logCount returns the number of values in a record.
func logCount(key string) int {
	n, err := strconv.Atoi(key[strings.LastIndexByte(key, '.')+1:])
	if err != nil {
		return 1
	}
	return n
}
