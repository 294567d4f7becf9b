package state

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// The keys of records in an engine:
//
//	state/r/BUCKET/KEY  a record: "=" and the value, or "#" and the description of its parts
//	state/m/BUCKET      the bucket's mark, written with each change of the bucket, so that a
//	                    transaction that listed the bucket notices an addition
//	state/p/HASH/N      a part of a value that is too long for one record
//	log/NAME/KEY        values of a log
//
// An engine has conditions only on records that it writes. So a transaction also writes the
// records that it has only read, unchanged.
const (
	recordPrefix = "state/r/"
	markPrefix   = "state/m/"
	partPrefix   = "state/p/"
	// LogPrefix is the prefix of records that are read on demand.
	LogPrefix = "log/"
)

const (
	// partSize is the maximum length of a part, maxParts the maximum number of parts of a value.
	partSize = 256 << 10
	maxParts = 64
)

// errTorn says that a part of a long value is not in the replica, or no longer.
var errTorn = errors.New("a part of the value is missing")

// parted describes a value in parts.
type parted struct {
	Hash  string `json:"hash"`
	Parts int    `json:"parts"`
}

// sharedTx is a transaction over a replica.
type sharedTx struct {
	store   *Shared
	replica Replica
	// read has the records that were read, looked the marks of buckets that were listed.
	read, looked map[string]coord.Record
	// changed has new values by the engine's keys. A deleted record has nil.
	changed map[string][]byte
	touched map[string]bool // buckets
	parts   []coord.Op
	left    map[string]bool // parts of replaced values
	added   []logEntry
}

func newSharedTx(s *Shared, r Replica) *sharedTx {
	return &sharedTx{store: s, replica: r, read: map[string]coord.Record{}, looked: map[string]coord.Record{}, changed: map[string][]byte{}, touched: map[string]bool{}, left: map[string]bool{}}
}

func recordKey(bucket, key string) string { return recordPrefix + bucket + "/" + escape(key) }

func (t *sharedTx) get(bucket, key string) ([]byte, error) {
	at := recordKey(bucket, key)
	raw, changed := t.changed[at]
	if !changed {
		r := t.replica.Get(at)
		t.read[at] = r
		raw = r.Value
	}
	return t.value(raw)
}

// value returns the value of a record.
func (t *sharedTx) value(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if raw[0] == '=' {
		return raw[1:], nil
	}
	p, err := partsOf(raw)
	if err != nil {
		return nil, err
	}
	var whole []byte
	for i := range p.Parts {
		key := partKey(p.Hash, i)
		part := t.replica.Get(key).Value
		for _, op := range t.parts {
			if op.Key == key {
				part = op.Value
			}
		}
		if part == nil {
			return nil, errTorn
		}
		whole = append(whole, part...)
	}
	return whole, nil
}

func partsOf(raw []byte) (p parted, err error) {
	if raw[0] != '#' {
		return p, errors.New("it is not a record of weir's")
	}
	if err := json.Unmarshal(raw[1:], &p); err != nil || p.Parts > maxParts {
		return p, errors.New("it is not a record of weir's")
	}
	return p, nil
}

// sweep removes parts that no record names, which a crash left. They must be a day old, so that no
// transaction is about to name them.
func (s *Shared) sweep(ctx context.Context) {
	r := s.engine.Replica()
	named := map[string]bool{}
	for _, record := range r.List(recordPrefix) {
		if len(record.Value) > 0 && record.Value[0] == '#' {
			if p, err := partsOf(record.Value); err == nil {
				named[p.Hash] = true
			}
		}
	}
	young := fmt.Sprintf("%010x", s.now().Add(-24*time.Hour).Unix())
	var ops []coord.Op
	for _, part := range r.List(partPrefix) {
		hash, _, _ := strings.Cut(strings.TrimPrefix(part.Key, partPrefix), "/")
		if !named[hash] && hash < young && len(ops) < maxOps {
			ops = append(ops, coord.Op{Key: part.Key, Delete: true, If: part.Version})
		}
	}
	if len(ops) > 0 {
		_ = s.engine.Commit(ctx, ops) // after an error, the next start tries again
	}
}

func partKey(hash string, n int) string { return fmt.Sprintf("%s%s/%03d", partPrefix, hash, n) }

// put sets a record in the transaction. Large values are split into parts.
func (t *sharedTx) put(bucket, key string, value []byte) error {
	if key == "" {
		return errors.New("the key is empty")
	}
	t.replace(bucket, key)
	raw := append([]byte("="), value...)
	if len(raw) > t.store.partSize {
		var err error
		if raw, err = t.split(value); err != nil {
			return err
		}
	}
	t.changed[recordKey(bucket, key)] = raw
	return nil
}

// split splits a value into parts. Each value has its own parts, so that a transaction that replaces it may
// delete them.
func (t *sharedTx) split(value []byte) ([]byte, error) {
	salt := make([]byte, 8)
	if _, err := rand.Read(salt); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append(salt, value...))
	p := parted{Hash: fmt.Sprintf("%010x-%x", t.store.now().Unix(), sum[:12])}
	for part := range slices.Chunk(value, t.store.partSize) {
		t.parts = append(t.parts, coord.Op{Key: partKey(p.Hash, p.Parts), Value: part, If: 0})
		p.Parts++
	}
	if p.Parts > maxParts {
		return nil, fmt.Errorf("it has %d bytes, and a record takes %d", len(value), maxParts*partSize)
	}
	raw, err := json.Marshal(p)
	return append([]byte("#"), raw...), err
}

// replace marks a record's bucket as touched, and deletes the parts of the old value.
func (t *sharedTx) replace(bucket, key string) {
	at := recordKey(bucket, key)
	t.touched[bucket] = true
	r := t.replica.Get(at)
	raw, changed := t.changed[at]
	if !changed {
		raw = r.Value
	}
	if len(raw) == 0 || raw[0] != '#' {
		return
	}
	if p, err := partsOf(raw); err == nil {
		for i := range p.Parts {
			t.drop(partKey(p.Hash, i))
		}
	}
	if !changed {
		t.read[at] = r // its parts are deleted, so the record must still be the replaced one
	}
}

func (t *sharedTx) drop(part string) {
	if i := slices.IndexFunc(t.parts, func(op coord.Op) bool { return op.Key == part }); i >= 0 {
		t.parts = slices.Delete(t.parts, i, i+1)
		return
	}
	t.left[part] = true
}

// remove removes a record in the transaction. A missing record is no error.
func (t *sharedTx) remove(bucket, key string) error {
	at := recordKey(bucket, key)
	raw, changed := t.changed[at]
	if !changed {
		r := t.replica.Get(at)
		t.read[at] = r
		raw = r.Value
	}
	if raw == nil {
		return nil // no record
	}
	t.replace(bucket, key)
	t.changed[at] = nil
	return nil
}

// scan calls fn for the records of a bucket from a key on, with the changes of the transaction, in order of
// keys, or backwards from the last key to from.
func (t *sharedTx) scan(bucket, from string, backwards bool, fn func(key string, value []byte) error) error {
	if _, looked := t.looked[bucket]; !looked {
		t.looked[bucket] = t.replica.Get(markPrefix + bucket)
	}
	prefix := recordPrefix + bucket + "/"
	raw := map[string][]byte{}
	for _, r := range t.replica.List(prefix) {
		raw[r.Key] = r.Value
	}
	for key, value := range t.changed {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if raw[key] = value; value == nil {
			delete(raw, key)
		}
	}
	type entry struct{ key, at string }
	entries := make([]entry, 0, len(raw))
	for at := range raw {
		key, err := unescape(at[len(prefix):])
		if err != nil {
			return fmt.Errorf("%q is not a valid key of weir's: %w", at, err)
		}
		if key >= from {
			entries = append(entries, entry{key, at})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if backwards {
			a, b = b, a
		}
		return cmp.Compare(a.key, b.key)
	})
	for _, e := range entries {
		value, err := t.value(raw[e.at])
		if err == nil {
			err = fn(e.key, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// idle reports whether nothing was changed.
func (t *sharedTx) idle() bool { return len(t.changed) == 0 && len(t.added) == 0 }

// ops returns the changes, on the condition that the records read have not changed.
func (t *sharedTx) ops() (ops []coord.Op) {
	for _, key := range slices.Sorted(maps.Keys(t.changed)) {
		op := coord.Op{Key: key, Value: t.changed[key], Delete: t.changed[key] == nil, If: coord.Any}
		if r, read := t.read[key]; read {
			op.If = r.Version
		}
		ops = append(ops, op)
	}
	for _, key := range slices.Sorted(maps.Keys(t.read)) {
		if _, changed := t.changed[key]; !changed {
			r := t.read[key]
			ops = append(ops, coord.Op{Key: key, Value: r.Value, Delete: r.Version == 0, If: r.Version})
		}
	}
	marks := maps.Clone(t.touched)
	for bucket := range t.looked {
		marks[bucket] = true
	}
	for _, bucket := range slices.Sorted(maps.Keys(marks)) {
		op := coord.Op{Key: markPrefix + bucket, Value: []byte("."), If: coord.Any}
		if r, looked := t.looked[bucket]; looked {
			op.If = r.Version
		}
		ops = append(ops, op)
	}
	for _, key := range slices.Sorted(maps.Keys(t.left)) {
		ops = append(ops, coord.Op{Key: key, Delete: true, If: coord.Any})
	}
	for _, e := range t.added {
		ops = append(ops, coord.Op{Key: e.key, Value: e.value, If: 0})
	}
	return ops
}

// tooMuch returns an error if the transaction exceeds the engine's limits.
func (t *sharedTx) tooMuch() error {
	if t.idle() {
		return nil
	}
	ops, size := t.ops(), 0
	for _, op := range ops {
		size += len(op.Key) + len(op.Value)
	}
	if len(ops) > maxOps || size > maxCommit {
		return fmt.Errorf("write state: %d records of %d bytes are too much for one change", len(ops), size)
	}
	return nil
}

// escape encodes a key reversibly without control characters, because engines accept only such keys.
func escape(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c < ' ' || c == '%' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape reverses escape.
func unescape(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+3 > len(text) {
			return "", errors.New("it ends within an escape")
		}
		c, err := hex.DecodeString(text[i+1 : i+3])
		if err != nil {
			return "", err
		}
		b.WriteByte(c[0])
		i += 2
	}
	return b.String(), nil
}

// logEntry is a transaction's addition to a log: several values in one record.
type logEntry struct {
	log, key string
	value    []byte
	keep     Keep
}
