package transport

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadline lets servers send at several paces, on a clock of its own.
func TestDeadline(t *testing.T) {
	t.Parallel()
	const base = 2 * time.Minute
	for name, tt := range map[string]struct {
		// send says how many bytes come in each second, until there are none.
		send     func(second int) (bytes int, more bool)
		from, to time.Duration
	}{
		"nothing":             {func(int) (int, bool) { return 0, false }, base, base},
		"a byte a second":     {func(int) (int, bool) { return 1, true }, base, base + 2*time.Second},
		"half of the slowest": {func(int) (int, bool) { return slowest / 2, true }, 2*base - 5*time.Second, 2*base + 5*time.Second},
		"much, then nothing":  {func(s int) (int, bool) { return 1 << 30, s < 60 }, base + 58*time.Second, base + 60*time.Second},
		"enough":              {func(s int) (int, bool) { return 2 * slowest, s < 1800 }, base + 30*time.Minute - 2*time.Second, base + 30*time.Minute},
		"enough for ever":     {func(s int) (int, bool) { return 2 * slowest, true }, longestWait, longestWait + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := WithDeadline(t.Context(), base)
				defer cancel()
				start := time.Now()
				for s, more := 0, true; more && ctx.Err() == nil; s++ {
					var n int
					if n, more = tt.send(s); more {
						DeadlineOf(ctx).extend(n)
						time.Sleep(time.Second)
					}
				}
				<-ctx.Done()
				if took := time.Since(start); took < tt.from || took > tt.to || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("%v after %s, want between %s and %s", ctx.Err(), took, tt.from, tt.to)
				}
			})
		})
	}
}

func TestDeadlinePauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parent, stop := context.WithCancel(t.Context())
		ctx, cancel := WithDeadline(parent, time.Minute)
		defer cancel()
		resume := DeadlineOf(ctx).Pause()
		time.Sleep(3 * time.Hour) // A pack is read that came in a moment.
		if ctx.Err() != nil {
			t.Fatalf("it ended while it was at rest: %v", ctx.Err())
		}
		resume()
		time.Sleep(59 * time.Second)
		if ctx.Err() != nil {
			t.Fatalf("it ended too early: %v", ctx.Err())
		}
		stop()
		if <-ctx.Done(); !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("%v, want that it was given up", ctx.Err())
		}
	})
}
