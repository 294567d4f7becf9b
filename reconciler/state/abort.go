package state

import (
	"errors"
	"fmt"
	"time"
)

// Abort ends an incomplete move. weir continues with the old store, and the new store counts as moved back.
// alone fails while another process may write to the old store or move it. A nil to means that the new store
// is unreachable. An incomplete move can still be aborted then, because the new store stays sealed. After a
// crash or an error, call Abort again.
//
// The two stores are never usable at the same time: Abort never opens the new one, and opens the old one
// only while the new one is sealed or empty.
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
	case here.State == "" && receives: // an earlier call stopped halfway
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
