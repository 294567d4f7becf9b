package members

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/status/events"
)

// A member of 200 scopes that stops, or dies, makes one event at each member, and not one a
// scope.
func TestMovesThatAreAlikeAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []events.Event
		var mu sync.Mutex
		n := NewNews("one", func(e events.Event) { mu.Lock(); defer mu.Unlock(); got = append(got, e) })
		var told []string
		want := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			told = nil
			for _, e := range got {
				told = append(told, e.Kind+": "+e.Text)
			}
			if got = nil; !slices.Equal(told, want) {
				t.Errorf("%s: %q", when, told)
			}
		}
		scope := func(i int) string { return fmt.Sprintf("scope/aws/%012d/eu-west-1", i) }
		for i := range 200 {
			before := coord.Owner{Key: scope(i), Member: "zero", Session: "00.gone", Released: i < 120}
			if !n.Add(coord.Event{Kind: coord.Took, Key: scope(i), Before: before}) {
				t.Fatal("no news")
			}
			if i == 50 {
				n.Add(coord.Event{Kind: coord.HandedOver, Key: scope(999), To: "two"})
				n.Add(coord.Event{Kind: coord.Took, Key: fleet, Before: coord.Owner{Key: fleet, Member: "zero", Session: "00.gone", Released: true}})
				n.Add(coord.Event{Kind: coord.Joined})
				if n.Add(coord.Event{Kind: coord.Released, Key: scope(998)}) {
					t.Error("what nobody wants is news")
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		want("meanwhile", "member-joined: one joined")
		time.Sleep(newsQuiet + time.Second)
		synctest.Wait()
		mu.Lock()
		if len(got) != 4 || got[0].Facts["count"] != "120" || strings.Count(got[0].Facts["keys"], ", ") != namedKeys-1 || got[0].Facts["before"] != "zero" || got[1].Facts["key"] != scope(999) {
			t.Errorf("%+v", got)
		}
		mu.Unlock()
		want("after", "owner-changed: one owns 120 scopes, which zero released", "owner-changed: one hands over scope aws/000000000999/eu-west-1 to two",
			"owner-changed: one owns source 0123456789ab, which zero released", "owner-replaced: one took over 80 scopes from zero, which no longer runs")

		// Moves that never end are told too.
		for i := range 20 {
			n.Add(coord.Event{Kind: coord.HandedOver, Key: scope(i)})
			time.Sleep(1100 * time.Millisecond) // never at the moment at which it is told
		}
		want("while it goes on", "owner-changed: one hands over 14 scopes")

		// A daemon that stops tells what waits, and what comes last at once.
		n.Close()
		want("when it stops", "owner-changed: one hands over 6 scopes")
		n.Add(coord.Event{Kind: coord.HandedOver, Key: scope(1)})
		want("at last", "owner-changed: one hands over scope aws/000000000001/eu-west-1")
		time.Sleep(time.Minute)
		want("never twice")
	})
}
