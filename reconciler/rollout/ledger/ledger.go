// Package ledger stores the records of rollouts, one for each source.
//
// The member that speaks for a source writes its conductor's decisions, under its lease. Commands
// of people also change a record, on any member. Both use transactions, so neither undoes the
// other's change.
package ledger

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/state"
)

var records = state.Bucket[json.RawMessage]{Name: "rollouts"}

// Ledger reads and writes records. It is safe for concurrent use.
type Ledger struct {
	db state.Store

	mu sync.Mutex
	// read caches the last read records, because owners need them before each write.
	read map[string]entry
}

type entry struct {
	data   []byte
	record *rollout.Record
}

// Open returns a Ledger that stores records in db.
func Open(db state.Store) *Ledger { return &Ledger{db: db, read: map[string]entry{}} }

// format is the version of the record format. It increases when a newer weir writes something that
// an older one would misread. Members of two consecutive versions run concurrently. A member that
// does not know the format must neither use nor overwrite the record.
const format = 1

// ErrNewer is the error for a record that a newer weir has written.
var ErrNewer = errors.New("a newer weir has written the record of rollouts: start that version; until then pools of FleetRollouts are held")

// stored is a record in its stored form: compressed, and in parts for engines that accept no values
// of its size. Earlier releases wrote plain records without a format.
type stored struct {
	Format int    `json:"format,omitempty"`
	Parts  int    `json:"parts,omitempty"`
	Data   []byte `json:"data"`
}

// partSize is the number of bytes of a compressed record in one part. Parts are stored in base64.
const partSize = 200 << 10

// Read returns the record of a source. The caller must not change it.
func (l *Ledger) Read(source string) (*rollout.Record, error) {
	var data []byte
	err := l.db.View(func(tx *state.Tx) (err error) {
		data, err = get(tx, source)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, is := l.read[source]; is && bytes.Equal(known.data, data) {
		return known.record, nil
	}
	record, err := decode(data)
	if err != nil {
		return nil, err
	}
	l.read[source] = entry{data, record}
	return record, nil
}

func partKey(source string, n int) string {
	if n == 0 {
		return source
	}
	return source + "\x00" + strconv.Itoa(n)
}

// get returns the stored data of a record, joined from its parts, nil for none.
func get(tx *state.Tx, source string) ([]byte, error) {
	raw, is, err := records.Get(tx, source)
	if err != nil || !is {
		return nil, err
	}
	var first stored
	if err := json.Unmarshal(raw, &first); err != nil {
		return nil, fmt.Errorf("the record of rollouts: %w", err)
	}
	switch {
	case first.Format > format:
		return nil, ErrNewer
	case first.Format == 0:
		return bytes.Clone(raw), nil
	}
	data := first.Data
	for n := 1; n < first.Parts; n++ {
		raw, _, err := records.Get(tx, partKey(source, n))
		if err != nil {
			return nil, err
		}
		var part stored
		if err := json.Unmarshal(raw, &part); err != nil {
			return nil, fmt.Errorf("part %d of the record of rollouts: %w", n, err)
		}
		data = append(data, part.Data...)
	}
	return data, nil
}

// put stores data in parts of at most partSize, and deletes the remaining parts of an earlier,
// longer record.
func put(tx *state.Tx, source string, data []byte) error {
	parts := slices.Collect(slices.Chunk(data, partSize))
	for n, data := range parts {
		part := stored{Data: data}
		if n == 0 {
			part.Format, part.Parts = format, len(parts)
		}
		raw, err := json.Marshal(part)
		if err == nil {
			err = records.Put(tx, partKey(source, n), raw)
		}
		if err != nil {
			return err
		}
	}
	for n := len(parts); ; n++ { // remaining parts of a longer, earlier record
		if _, is, err := records.Get(tx, partKey(source, n)); err != nil || !is {
			return err
		}
		if err := records.Delete(tx, partKey(source, n)); err != nil {
			return err
		}
	}
}

func encode(record *rollout.Record) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if err := json.NewEncoder(w).Encode(record); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// decode reads a stored record, compressed or plain. No data means an empty record.
func decode(data []byte) (*rollout.Record, error) {
	record := &rollout.Record{}
	switch {
	case len(data) == 0:
		return record, nil
	case data[0] == '{':
		return record, json.Unmarshal(data, record)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the record of rollouts: %w", err)
	}
	if err := json.NewDecoder(r).Decode(record); err != nil {
		return nil, fmt.Errorf("the record of rollouts: %w", err)
	}
	return record, nil
}

// Change replaces the record of a source by the result of change, in one transaction. It writes
// nothing if the result is the same record. in is the store to write to, nil for the ledger's own
// store.
func (l *Ledger) Change(in state.Store, source string, change func(rollout.Record) (rollout.Record, error)) error {
	if in == nil {
		in = l.db
	}
	return in.Update(func(tx *state.Tx) error {
		raw, err := get(tx, source)
		if err != nil {
			return err
		}
		old, err := decode(raw)
		if err != nil {
			return err
		}
		next, err := change(*old)
		if err != nil || next.Seq == old.Seq {
			return err
		}
		data, err := encode(&next)
		if err != nil {
			return err
		}
		return put(tx, source, data)
	})
}
