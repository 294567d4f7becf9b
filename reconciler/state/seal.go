package state

import (
	"encoding/json"
	"fmt"
	"time"
)

// A store is sealed during and after a move of its records, and nothing else uses it then. A move seals both
// stores, copies, compares, marks the old store as moved, and only then opens the new one. So the two stores
// are never usable at the same time, and after a crash the move runs again.
const (
	moving    = "moving"    // to the other store
	moved     = "moved"     // to the other store, completely
	receiving = "receiving" // from the other store
)

// seal is the state of a store's records during a move.
type seal struct {
	State string    `json:"state"`
	Other string    `json:"other"`
	At    time.Time `json:"at"`
}

const sealKey = "sealed"

var seals = Bucket[seal]{aboutBucket}

// SealedError says that a store's records were moved, or are being moved.
type SealedError struct{ seal }

// Error returns the place of the records and what to do.
func (e *SealedError) Error() string {
	at := e.At.UTC().Format(time.RFC3339)
	switch e.State {
	case moving:
		return fmt.Sprintf("since %s these records are being moved to %s: run weir state move again, until it is done", at, e.Other)
	case receiving:
		return fmt.Sprintf("since %s records of %s are being moved here: run weir state move again, until it is done", at, e.Other)
	}
	return fmt.Sprintf("the records were moved to %s at %s, and weir continues there: start it with that configuration, or move them back with weir state move", e.Other, at)
}

// sealed returns a SealedError if the records must not be used.
func sealed(tx *Tx) error {
	s, is, err := seals.Get(tx, sealKey)
	if err != nil || !is {
		return err
	}
	return &SealedError{s}
}

// sealed checks a replica, so that a process that started before the move notices the seal.
func (s *Shared) sealed(r Replica) error {
	raw := r.Get(recordKey(aboutBucket, sealKey)).Value
	if s.moves || len(raw) == 0 {
		return nil
	}
	var found seal
	if err := json.Unmarshal(raw[1:], &found); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	return &SealedError{found}
}
