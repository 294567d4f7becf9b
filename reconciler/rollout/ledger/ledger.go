// Package ledger keeps the records of rollouts, one for each source, in a store.
//
// The member that speaks for a source writes what its conductor decides, under its lease.
// Commands of people change a record too, on whichever member they are given: both are
// transactions, so that neither undoes the other.
package ledger

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/state"
)

var records = state.Bucket[json.RawMessage]{Name: "rollouts"}

// Ledger reads and writes records. It is safe for concurrent use.
type Ledger struct {
	db state.Store

	mu sync.Mutex
	// read is what was read last: owners ask before each write.
	read map[string]entry
}

type entry struct {
	data   []byte
	record *rollout.Record
}

// Open keeps records in db.
func Open(db state.Store) *Ledger { return &Ledger{db: db, read: map[string]entry{}} }

// Read is the record of a source, which must not be changed.
func (l *Ledger) Read(source string) (*rollout.Record, error) {
	var data []byte
	err := l.db.View(func(tx *state.Tx) error {
		raw, _, err := records.Get(tx, source)
		data = bytes.Clone(raw)
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

func decode(data []byte) (*rollout.Record, error) {
	record := &rollout.Record{}
	if len(data) == 0 {
		return record, nil
	}
	return record, json.Unmarshal(data, record)
}

// Change writes what change makes of the record of a source, in one transaction; nothing
// where that is the same record. In is where it is written, nil for the ledger's own store.
func (l *Ledger) Change(in state.Store, source string, change func(rollout.Record) (rollout.Record, error)) error {
	if in == nil {
		in = l.db
	}
	return in.Update(func(tx *state.Tx) error {
		raw, _, err := records.Get(tx, source)
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
		data, err := json.Marshal(next)
		if err != nil {
			return err
		}
		return records.Put(tx, source, data)
	})
}
