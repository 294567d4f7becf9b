package source

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/snapshot"
)

func TestPollerTiming(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var looks []time.Duration
		var told []string
		outcomes := []any{"a", "a", "b", fault.Unreachable, fault.Unreachable, fault.Corrupt, fault.Corrupt, "b"}
		draws := []float64{0, 0.5, 1, 0.5, 0.5, 0.5, 0.5}
		wake := make(chan struct{}, 1)
		p := poller{
			interval: 10 * time.Second, wake: wake,
			rand: func() float64 { return draws[min(len(looks)-1, len(draws)-1)] },
			fetch: func(context.Context) (snapshot.Snapshot, error) {
				looks = append(looks, time.Since(start).Round(time.Millisecond))
				if len(looks) == len(outcomes) {
					defer cancel()
				}
				switch o := outcomes[len(looks)-1].(type) {
				case fault.Reason:
					return snapshot.Snapshot{}, &fault.UnavailableError{Source: "s", Reason: o, Err: errors.New("x")}
				default:
					return snapshot.Snapshot{Revision: o.(string)}, nil
				}
			},
			report: func(s snapshot.Snapshot, err error) {
				told = append(told, fmt.Sprint(s.Revision, outcomeOf(s, err).reason))
			},
		}
		p.run(ctx)
		// 9 s, 10 s, 11 s, 10 s, 10 s, then a second until the mirror is made
		// again, then the interval.
		want := []time.Duration{0, 9, 19, 30, 40, 50, 51, 61}
		for i := range want {
			want[i] *= time.Second
		}
		if diff := cmp.Diff(want, looks); diff != "" {
			t.Errorf("looks (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a", "b", "unreachable", "corrupt"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

func TestPollerSkipsToTheNewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		revision := 0
		wake := make(chan struct{}, 1)
		var told []string
		p := poller{
			interval: time.Hour, rand: rand.Float64, wake: wake,
			fetch: func(context.Context) (snapshot.Snapshot, error) {
				return snapshot.Snapshot{Revision: fmt.Sprint(revision)}, nil
			},
			report: func(s snapshot.Snapshot, _ error) {
				told = append(told, s.Revision)
				for range 5 { // Five commits come while the first is worked on.
					revision++
					select {
					case wake <- struct{}{}:
					default:
					}
				}
				if len(told) == 3 {
					cancel()
				}
			},
		}
		p.run(ctx)
		if diff := cmp.Diff([]string{"0", "5", "10"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

// TestPollerLeavesWasteAlone looks less often at a server whose packs come for
// nothing.
func TestPollerLeavesWasteAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		looks := 0
		p := poller{
			interval: 30 * time.Second, rand: func() float64 { return 0.5 }, wake: make(chan struct{}),
			fetch: func(context.Context) (snapshot.Snapshot, error) {
				if looks++; looks == 3 {
					cancel()
				}
				return snapshot.Snapshot{}, &fault.UnavailableError{Reason: fault.Unsupported, Err: errors.New("too large"), Wasted: 4 << 30}
			},
			report: func(snapshot.Snapshot, error) {},
		}
		p.run(ctx)
		if took := time.Since(start); took != 2*4096*time.Second {
			t.Errorf("three looks took %s: 4 GiB came each time", took)
		}
	})
}
