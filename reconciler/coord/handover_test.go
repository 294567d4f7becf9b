package coord_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
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
