package membership

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/state"
)

// No member has the history in memory. Members read it from the engine when they need it.
func TestNoMemberHasLogsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		a, _ := joined(t, memory, "a", "scope/k")
		b, _ := joined(t, memory, "b", "")
		time.Sleep(5 * time.Second)
		const passes = 300
		log := state.Log[time.Time]{Name: "passes", At: func(at time.Time) time.Time { return at }}
		for range passes {
			if err := a.Store.Update(func(tx *state.Tx) error {
				return log.Add(tx, []time.Time{time.Now()}, state.Keep{Most: 2 * passes})
			}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		late, _ := joined(t, memory, "late", "")
		for name, c := range map[string]*Member{"writes": a, "follows": b, "reads all at once": late} {
			if err := c.Mirror.Sync(context.Background()); err != nil {
				t.Fatal(err)
			}
			if n := len(c.Mirror.Snapshot().List(state.LogPrefix)); n != 0 {
				t.Errorf("who %s has %d records of logs in memory", name, n)
			}
			var got int
			if err := c.Store.View(func(tx *state.Tx) error {
				return log.Newest(tx, func(time.Time) error { got++; return nil })
			}); err != nil || got != passes {
				t.Errorf("who %s reads %d of %d passes: %v", name, got, passes, err)
			}
		}
	})
}
