package state

import (
	"encoding/json"
	"fmt"
	"time"
)

// A store whose records are moved, or were, is sealed: nothing else uses it. To move is to
// seal both, copy, verify, call the old one moved, and only then open the new one: so
// never may both be used, and after a crash the move is done again.
const (
	moving    = "moving"    // to the other
	moved     = "moved"     // to the other, whole
	receiving = "receiving" // from the other
)

// seal says what is done with a store's records.
type seal struct {
	State string    `json:"state"`
	Other string    `json:"other"`
	At    time.Time `json:"at"`
}

const sealKey = "sealed"

var seals = Bucket[seal]{aboutBucket}

// SealedError says that a store's records were moved, or are being moved.
type SealedError struct{ seal }

// Error says where they are, and what to do.
func (e *SealedError) Error() string {
	at := e.At.UTC().Format(time.RFC3339)
	switch e.State {
	case moving:
		return fmt.Sprintf("since %s these records are being moved to %s: run weir state move again, until it is done", at, e.Other)
	case receiving:
		return fmt.Sprintf("since %s records of %s are being moved here: run weir state move again, until it is done", at, e.Other)
	}
	return fmt.Sprintf("the records were moved to %s at %s, and weir goes on there: give it that configuration, or move them back with weir state move", e.Other, at)
}

// sealed is a SealedError where the records are not to be used.
func sealed(tx *Tx) error {
	s, is, err := seals.Get(tx, sealKey)
	if err != nil || !is {
		return err
	}
	return &SealedError{s}
}

// sealed looks at a replica, so that also a process that began before learns of it.
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
