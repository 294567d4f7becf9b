package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Fence guards the writes to AWS that the owner of a key makes.
type Fence struct {
	Member *Member
	Key    func() string
	// May returns an error if users forbid the write, according to the last read of the records. It may be
	// nil.
	May func() error
}

// errNotOwned means that another member is the owner, or may be.
var errNotOwned = errors.New("this weir does not own the account and region now")

// readWithin is the maximum wait for current records. Records that take longer to arrive are already too
// old.
const readWithin = coord.InputsWithin

// MayBegin returns an error unless a write may start: this member owns the key for long enough, has read
// users' requests within coord.InputsWithin, and no check forbids the write. It may wait for a read of the
// records.
func (f Fence) MayBegin() error {
	l := f.Member.Leases.Get(f.Key())
	if l == nil {
		return errNotOwned
	}
	ctx, cancel := context.WithTimeout(l.Context(), readWithin)
	defer cancel()
	if _, err := f.Member.Mirror.Within(ctx, coord.InputsWithin); err != nil {
		return fmt.Errorf("cannot read suspensions and approvals now: %w", err)
	}
	if f.May != nil {
		if err := f.May(); err != nil {
			return err
		}
	}
	return l.Fence.MayBegin()
}

// Until returns the time at which the fence cuts off a write. A write that has started may continue while the key is being handed over.
func (f Fence) Until() time.Time {
	if l := f.Member.Leases.ending(f.Key()); l != nil {
		return l.Fence.Until()
	}
	return time.Time{}
}
