package coord_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// A large write has the time that a slow line takes. A small one that takes so long has lost its answer, and is sent again.
func TestALargeWriteTakesItsTime(t *testing.T) {
	for _, c := range []struct {
		records, size int
		takes         time.Duration
		calls         int
	}{
		{1, 100, time.Second, 1},
		{1, 100, 3 * time.Second, 2},
		{1, 200 << 10, 5 * time.Second, 1},
		{4, 200 << 10, 12 * time.Second, 1},
		{4, 200 << 10, 15 * time.Second, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			wire := coordtest.NewWire(coordtest.NewMemory())
			engine := coord.New(wire, coord.Options{Clock: coordtest.NewClock()})
			defer func() { _ = engine.Close() }()
			s, err := engine.Join(t.Context(), coord.Member{Name: "a"}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			wire.Arm(func(call string) coordtest.Fault {
				if call == "Commit" {
					return coordtest.Fault{Slow: c.takes}
				}
				return coordtest.Fault{}
			})
			w := coord.Write{}
			for i := range c.records {
				w.Ops = append(w.Ops, coord.Op{Key: fmt.Sprint("k", i), Value: make([]byte, c.size)})
			}
			ctx, cancel := context.WithTimeout(t.Context(), c.takes+time.Second)
			defer cancel()
			if _, err := s.Write(ctx, w); (err == nil) != (c.calls == 1) || err != nil && !errors.Is(err, coord.ErrUnknown) {
				t.Errorf("%+v: %v", c, err)
			}
			if got := wire.Calls("Commit"); got != c.calls {
				t.Errorf("%+v: sent %d times", c, got)
			}
		})
	}
}
