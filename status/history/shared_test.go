package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/state/statetest"
	"github.com/weir-gitops/weir/status/events"
)

// TestSeveralWeirsHaveOneHistory: what each adds is there once, for all of them, the newest
// first, and none has it in memory.
func TestSeveralWeirsHaveOneHistory(t *testing.T) {
	memory := coordtest.NewMemory()
	var members []*statetest.Member
	var archives []*Archive
	for i := range 3 {
		m := statetest.Join(t, memory, fmt.Sprint("member-", i))
		members, archives = append(members, m), append(archives, New(m, Options{Now: func() time.Time { return noon }}))
	}
	var want []string
	for n := range 30 {
		kind := fmt.Sprint(n)
		r := Record{Events: []events.Event{event(0, kind)}, Known: map[string]events.Known{"target prod": {Revision: kind}}}
		if n%5 == 0 {
			r.Runs = []Run{{Time: noon, Target: kind}}
		}
		if err := archives[n%3].Append(r); err != nil {
			t.Fatal(err)
		}
		want = append([]string{kind}, want...)
	}
	for i, a := range archives {
		got, err := a.Events(Filter{})
		if diff := cmp.Diff(want, texts(got)); diff != "" || err != nil {
			t.Errorf("events (-want +got):\n%s%v", diff, err)
		}
		got, err = a.Events(Filter{Skip: 2, Limit: 3})
		if diff := cmp.Diff(want[2:5], texts(got)); diff != "" || err != nil {
			t.Errorf("a page (-want +got):\n%s%v", diff, err)
		}
		if runs, err := a.Runs(Filter{}); err != nil || len(runs) != 6 || runs[0].Target != "25" {
			t.Errorf("passes: %v, %v", runs, err)
		}
		members[i].Sync(t)
		known, err := a.Known()
		if diff := cmp.Diff(map[string]events.Known{"target prod": {Revision: "29"}}, known); diff != "" || err != nil {
			t.Errorf("what was told (-want +got):\n%s%v", diff, err)
		}
	}
}
