package proposaltest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
)

// Kind is a kind of proposal in its own world, with one thing that it can propose.
type Kind struct {
	*World
	// Record is the name of the stored record. Every is the minimum time between two changes of a pull
	// request.
	Record string
	Every  time.Duration
	// Earlier contains the fields of an entry that the version before Machine stored.
	Earlier string
	// Restart simulates another process: everything in memory is lost.
	Restart func()
	// Need makes the proposal wanted, and Drop makes it unneeded. Again makes the same proposal wanted
	// again after Drop.
	Need, Drop, Again func()
	// Reopens says that the kind opens a new pull request for something after weir has closed one for it.
	Reopens bool
	// Change changes the wanted content; nil for a kind that never updates pull requests.
	Change func()
	// Turn runs a turn at the current time.
	Turn func() error
	// State returns the stored state; the zero state if nothing is stored.
	State func() proposal.State
	// Wants returns the expected result of Changes.
	Wants func() string
	// Goes says that weir continues a pull request after its record is lost. A kind that cannot do so does
	// not change the pull request.
	Goes bool
}

// turn runs a turn at a time when failures may be retried and open pull requests may be changed.
func (k *Kind) turn() proposal.State {
	k.T.Helper()
	k.Now.Time = k.Now.Time.Add(max(k.Every, time.Hour))
	return k.soon()
}

// soon runs a turn at the current time.
func (k *Kind) soon() proposal.State {
	k.T.Helper()
	if err := k.Turn(); err != nil {
		k.T.Fatal(err)
	}
	return k.State()
}

// Forget deletes the stored record.
func (k *Kind) Forget() {
	k.T.Helper()
	if err := k.Store.Update(func(tx *state.Tx) error { return state.Bucket[struct{}]{Name: k.Record}.Delete(tx, "s") }); err != nil {
		k.T.Fatal(err)
	}
	k.Restart()
}

// proposes checks that exactly n pull requests exist, and that the last one is open and up to date.
func (k *Kind) proposes(n int) {
	k.T.Helper()
	s := k.State()
	if len(k.Pulls) != n || s.Phase != proposal.Open || s.Number != int64(n) || k.Last().State != forge.Open {
		k.T.Fatalf("%d pull requests, want %d; kept: %+v", len(k.Pulls), n, s)
	}
	if got, want := k.Changes(), k.Wants(); got != want {
		k.T.Fatalf("proposed is %s, want %s", got, want)
	}
}

// count returns the number of events of a kind.
func (k *Kind) count(what proposal.What) (n int) {
	for _, e := range k.Events {
		if strings.HasSuffix(e, "-"+string(what)) {
			n++
		}
	}
	return n
}

var busy = &forgehttp.Error{Fault: forgehttp.FaultBusy, Message: "busy"}

// Contract tests a kind against the rules of all proposals. begin creates it in a new world, in which
// nothing is wanted yet.
func Contract(t *testing.T, begin func(t *testing.T) *Kind) {
	for name, test := range map[string]func(*testing.T, func(*testing.T) *Kind){
		"one pull request":                    once,
		"it follows what is wanted":           follows,
		"each write may be lost":              writesMayBeLost,
		"the process ends after each write":   endsAfterWrites,
		"closed once nobody needs it":         closedByWeir,
		"closed by somebody":                  closedBySomebody,
		"merged":                              merged,
		"who closed it":                       whoClosedIt,
		"somebody else's commits":             somebodyElse,
		"somebody else's branch":              branchOfSomebody,
		"forks and other branches":            forks,
		"a lost record":                       lostRecord,
		"a token that may not":                mayNot,
		"a server that takes no push":         noPush,
		"a forge that is slow, and then busy": slowForge,
		"nothing of it is left open":          leftOpen,
		"a record of an earlier version":      earlierRecord,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, begin)
		})
	}
}

// once: it is opened once, whatever else is committed, and turns without changes only list pull requests.
func once(t *testing.T, begin func(*testing.T) *Kind) {
	k := begin(t)
	k.Need()
	k.turn()
	k.proposes(1)
	if k.count(proposal.WasOpened) != 1 || len(k.Events) != 1 || len(k.Said) != 0 {
		t.Errorf("told %q, said %q", k.Events, k.Said)
	}
	message := k.Repo.Git("log", "-1", "--format=%an <%ae> %B", k.Last().HeadRef)
	for _, text := range append(k.Told, message, k.Bodies[0], k.Last().Title) {
		if strings.Contains(text, "hunter2") {
			t.Errorf("a secret: %q", text)
		}
	}
	if !strings.HasPrefix(message, "weir <weir@localhost>") || !strings.HasPrefix(k.Last().HeadRef, "weir/") || !strings.Contains(k.Bodies[0], "https://weir.example.com/") {
		t.Errorf("%s: %s\n%s", k.Last().HeadRef, message, k.Bodies[0])
	}
	clear(k.Calls)
	for range 5 {
		k.Now.Time = k.Now.Time.Add(20 * time.Second)
		k.soon()
	}
	if got := fmt.Sprint(k.Calls); got != "map[list:5]" {
		t.Errorf("turns without news make the calls %s", got)
	}
	k.Restart()
	k.Commit("other", "unrelated", "x")
	k.turn()
	k.proposes(1)
	if len(k.Bodies) != 1 || k.Calls["push"] != 0 || len(k.Events) != 1 {
		t.Errorf("it was written again: %v, %q", k.Calls, k.Events)
	}
}

// follows: weir pushes a changed proposal to an open pull request as a descendant, at most once per Every.
func follows(t *testing.T, begin func(*testing.T) *Kind) {
	k := begin(t)
	if k.Change == nil {
		t.Skip("the kind has no Change: its pull requests stay as they were opened, so there is nothing to follow")
	}
	k.Need()
	k.turn()
	first := k.Repo.Tip(k.Last().HeadRef)
	k.Last().Title = "A title of somebody's"
	k.Change()
	k.Restart()
	k.Now.Time = k.Now.Time.Add(k.Every - time.Second)
	if k.soon(); k.Repo.Tip(k.Last().HeadRef) != first {
		t.Error("it was changed too soon")
	}
	k.turn()
	k.proposes(1)
	if _, code := k.Repo.Try("merge-base", "--is-ancestor", first, k.Last().HeadRef); code != 0 {
		t.Error("the branch was forced")
	}
	if k.Last().Title != "A title of somebody's" || len(k.Bodies) != 2 || k.count(proposal.WasUpdated) != 1 {
		t.Errorf("%q, %d texts, told %q", k.Last().Title, len(k.Bodies), k.Events)
	}
}

// closedByWeir: it is closed with a reason when it is no longer needed.
func closedByWeir(t *testing.T, begin func(*testing.T) *Kind) {
	k := begin(t)
	k.Need()
	k.turn()
	k.Drop()
	k.Restart()
	k.turn()
	if k.Last().State != forge.Closed || len(k.Said) != 1 || !strings.HasPrefix(k.Said[0], "weir closed this: ") || k.count(proposal.WasClosed) != 1 {
		t.Errorf("%+v, said %q, told %q", k.State(), k.Said, k.Events)
	}
	if k.turn(); len(k.Pulls) != 1 || len(k.Said) != 1 {
		t.Errorf("again: %q", k.Said)
	}
	k.Again()
	if k.turn(); k.Reopens {
		k.proposes(2)
	} else if len(k.Pulls) != 1 {
		t.Errorf("it is proposed again: %+v", k.State())
	}
}

// closedBySomebody: it stays closed, and weir opens no other one for the same thing.
func closedBySomebody(t *testing.T, begin func(*testing.T) *Kind) {
	for _, forgets := range []bool{false, true} {
		k := begin(t)
		k.Need()
		k.turn()
		k.Last().State = forge.Closed
		k.Repo.DeleteBranch(k.Last().HeadRef)
		for range 3 {
			if forgets {
				k.Forget()
			}
			if k.turn(); len(k.Pulls) != 1 || k.Branches() != "" {
				t.Fatalf("forgets %t: %+v, %s", forgets, k.State(), k.Branches())
			}
		}
		if n := k.count(proposal.WasClosed); !forgets && n != 1 || len(k.Said) != 0 {
			t.Errorf("told %q, said %q", k.Events, k.Said)
		}
	}
}

// merged: it has ended, even before Git shows the merge.
func merged(t *testing.T, begin func(*testing.T) *Kind) {
	for _, method := range []string{"merge", "squash"} {
		k := begin(t)
		k.Need()
		k.turn()
		k.Merge(method)
		k.turn()
		k.Follow()
		k.turn()
		if len(k.Pulls) != 1 || k.count(proposal.WasClosed) != 1 || len(k.Said) != 0 {
			t.Errorf("%s: %+v, told %q", method, k.State(), k.Events)
		}
	}
}
