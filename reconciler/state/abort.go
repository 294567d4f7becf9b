package state

import (
	"errors"
	"fmt"
	"time"
)

// Abort ends a move that stopped half way: weir goes on where it was, and the new store counts as moved back. alone fails while somebody may write to
// the first one, or moves it. A nil to is a store that cannot be reached: a move that was not whole can be aborted all the same, as the new store
// stays sealed. After a crash or an error, the next call goes on.
//
// At no moment may both be used: the new one is never opened, and the old one only while the new one is sealed or empty.
func Abort(from Place, to *Place, toName string, logs []string, alone func() error) error {
	if err := alone(); err != nil {
		return err
	}
	here, err := from.seal()
	if err != nil {
		return err
	}
	var there seal
	if to != nil {
		if there, err = to.seal(); err != nil {
			return err
		}
	}
	receives := there.State == receiving && there.Other == from.Name
	switch {
	case here.State == "" && receives: // an earlier call stopped half way
	case here.State == "":
		return fmt.Errorf("no move from %s to %s is in progress, so there is nothing to abort", from.Name, toName)
	case here.State == receiving || here.Other != toName:
		return &SealedError{here}
	case here.State == moved && to == nil:
		return fmt.Errorf("all records were moved, and weir may be running on %s: that place must be reachable to check this", toName)
	case here.State == moved && !receives:
		return fmt.Errorf("the move is done: move the records back with weir state move, from %s to %s", toName, from.Name)
	}
	if err := from.unseal(here.State); err != nil || !receives {
		return err
	}
	return errors.Join(to.put(seal{moved, from.Name, time.Now()}), to.wipe(logs))
}
