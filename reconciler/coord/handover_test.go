package coord_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// Two members never work on a key at once at a planned hand-over. Nothing is released before the others could hear of it, so what another member does
// a moment after its owner was told to stop is about what it owned already; and where the work gave up a call that AWS has not answered, the call has
// Quiet to have its effect before anybody else looks.
func TestAPlannedHandOverLeavesNothingUnderWay(t *testing.T) {
	for name, test := range map[string]struct{ stops, least, most time.Duration }{
		"work that ends at once":                  {0, 0, time.Second},
		"work that waits for an answer":           {3 * time.Second, 0, time.Second},
		"work that gave up a call without answer": {5 * time.Second, coord.Quiet, coord.Quiet + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 6)
				var mu sync.Mutex
				ended := map[string]time.Time{}
				slow := func(_ *node, l *coord.Lease) {
					progress(l)
					time.Sleep(test.stops)
					mu.Lock()
					defer mu.Unlock()
					ended[l.Owner.Key] = time.Now()
				}
				a := f.start("a", slow)
				time.Sleep(40 * time.Second)
				f.start("b")
				time.Sleep(2 * time.Minute)
				its := map[string]bool{}
				for _, s := range f.scopes {
					its[s.Key] = f.at(s.Key) == "a"
				}
				stop := time.Now()
				a.stop()
				<-a.done
				time.Sleep(5 * time.Second)
				f.mu.Lock()
				defer f.mu.Unlock()
				moved := 0
				for _, took := range f.took {
					if took.at.Before(stop) || !its[took.key] {
						continue
					}
					moved++
					if after := took.at.Sub(stop); after < coord.PollEvery {
						t.Errorf("%s was taken %s after its owner was told to stop", took.key, after)
					}
					mu.Lock()
					gap := took.at.Sub(ended[took.key])
					mu.Unlock()
					if gap < test.least || gap > test.most || !took.released {
						t.Errorf("%s was taken %s after the last work on it, which had ended %s after the stop", took.key, gap, ended[took.key].Sub(stop))
					}
				}
				if moved != 3 {
					t.Errorf("%d of 3 scopes have moved", moved)
				}
			})
		})
	}
}

// That a member drains is told to the others although it owns nothing, and although the engine did not hear it at once: else they would go on to
// choose it.
func TestOthersHearOfADrain(t *testing.T) {
	for name, lost := range map[string]bool{"at once": false, "with the next renewal": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 1)
				a := f.start("a")
				f.all(time.Minute)
				b := f.start("b")
				time.Sleep(65 * time.Second) // what it says of itself anyway, each half minute, is just over
				if keys := f.of("b"); len(keys) > 0 {
					t.Fatalf("b has %v", keys)
				}
				drains := func(want bool) {
					t.Helper()
					time.Sleep(2 * coord.RenewEvery)
					for _, m := range a.mirror.Snapshot().Alive {
						if m.Member.Draining != (want && m.Member.Name == "b") {
							t.Errorf("%s drains: %t", m.Member.Name, m.Member.Draining)
						}
					}
				}
				if lost {
					b.wire.Once("Renew", coordtest.Fault{LoseRequest: true})
				}
				if err := b.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				drains(true)
				if lost {
					b.wire.Once("Renew", coordtest.Fault{LoseRequest: true})
				}
				if err := b.Undrain(t.Context()); (err != nil) != lost {
					t.Error(err)
				}
				drains(false)
			})
		})
	}
}
