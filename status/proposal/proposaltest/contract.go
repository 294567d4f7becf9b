package proposaltest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
)

// Kind is a kind of proposal in a world of its own, with one thing that it may propose.
type Kind struct {
	*World
	// Record names what is kept. Every is the least time between two changes of a pull request.
	Record string
	Every  time.Duration
	// Earlier are the fields of an entry that the version before Machine kept.
	Earlier string
	// Restart begins another process: what is in memory is lost.
	Restart func()
	// Need makes the thing be wanted, and Drop makes nobody need it. Again makes the same be wanted
	// once more after Drop.
	Need, Drop, Again func()
	// Reopens says that the kind proposes a thing again that weir closed.
	Reopens bool
	// Change makes it something else; nil for a kind whose pull requests stay as they were opened.
	Change func()
	// Turn turns now.
	Turn func() error
	// State is what is kept of the thing; the zero state if nothing is kept.
	State func() proposal.State
	// Wants is what Changes must return.
	Wants func() string
	// Goes says that weir goes on with a pull request after its record is lost. A kind that cannot
	// leaves it alone.
	Goes bool
}

// turn turns after what failed may be tried again, and what is open may be changed.
func (k *Kind) turn() proposal.State {
	k.T.Helper()
	k.Now.Time = k.Now.Time.Add(max(k.Every, time.Hour))
	return k.soon()
}

// soon turns now.
func (k *Kind) soon() proposal.State {
	k.T.Helper()
	if err := k.Turn(); err != nil {
		k.T.Fatal(err)
	}
	return k.State()
}

// Forget loses what is kept.
func (k *Kind) Forget() {
	k.T.Helper()
	if err := k.Store.Update(func(tx *state.Tx) error { return state.Bucket[struct{}]{Name: k.Record}.Delete(tx, "s") }); err != nil {
		k.T.Fatal(err)
	}
	k.Restart()
}

// proposes checks that there are n pull requests, of which the last one is open and up to date.
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

// count is how many events of a kind there were.
func (k *Kind) count(what proposal.What) (n int) {
	for _, e := range k.Events {
		if strings.HasSuffix(e, "-"+string(what)) {
			n++
		}
	}
	return n
}

var busy = &forgehttp.Error{Fault: forgehttp.FaultBusy, Message: "busy"}

// Contract holds a kind against the rules of all proposals. begin makes it in a new world, in which
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

// once: it is opened once, whatever else is committed, and turns without news ask for the list alone.
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

// follows: an open one is brought to what is wanted, by descendants, and at most every Every.
func follows(t *testing.T, begin func(*testing.T) *Kind) {
	k := begin(t)
	if k.Change == nil {
		t.Skip("this kind leaves it as it was opened")
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

// writesMayBeLost: an answer does not come, before or after its effect; the process may end then, or
// the record may be lost. It ends with one pull request that has what is wanted.
func writesMayBeLost(t *testing.T, begin func(*testing.T) *Kind) {
	of := begin(t)
	for _, what := range []string{"push", "open", "edit", "list"} {
		for _, lost := range []bool{false, true} {
			for _, after := range []string{"goes on", "ends", "forgets"} {
				for _, second := range []bool{false, true} {
					if second && (of.Change == nil || what == "open") || !second && what == "edit" || what == "list" && lost || after == "forgets" && !of.Goes {
						continue
					}
					k := begin(t)
					k.Need()
					if second {
						k.turn()
						k.Change()
					}
					k.Fails[what], k.Lost = busy, lost
					k.turn()
					switch after {
					case "ends":
						k.Restart()
					case "forgets":
						k.Forget()
					}
					k.turn()
					if second && after == "forgets" { // the one that was found counts as changed now
						k.turn()
					}
					t.Log(what, "done:", lost, after, "second:", second)
					k.proposes(1)
					if n := k.count(proposal.WasOpened); after != "forgets" && n != 1 {
						t.Errorf("told %q", k.Events)
					}
				}
			}
		}
	}
}

// endsAfterWrites: the process ends right after a write, and what it did not store before is lost.
func endsAfterWrites(t *testing.T, begin func(*testing.T) *Kind) {
	of := begin(t)
	for _, call := range []string{"push", "open", "edit", "close"} {
		if call == "edit" && of.Change == nil {
			continue
		}
		k := begin(t)
		k.Need()
		switch call {
		case "edit":
			k.turn()
			k.Change()
		case "close":
			k.turn()
			k.Drop()
		}
		k.Crash, k.Now.Time = call, k.Now.Time.Add(max(k.Every, time.Hour))
		if err := k.Turn(); err == nil {
			t.Errorf("%s: the process goes on", call)
		}
		k.Revive()
		k.Restart()
		k.turn()
		if call != "close" {
			k.turn()
			k.proposes(1)
		} else if last := k.Told[len(k.Told)-1]; !strings.Contains(last, "was closed: ") || strings.Contains(last, "was closed: weir") {
			t.Errorf("weir closed it itself, and reports %q", last)
		}
	}
}

// closedByWeir: it is closed once nobody needs it, and said why.
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

// closedBySomebody: it stays closed, and weir opens no other one for the same.
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

// merged: it is done, also before Git shows the merge.
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

// whoClosedIt: closing has no answer. If it was done, weir closed it; if not, and it is needed again,
// it is somebody's to close.
func whoClosedIt(t *testing.T, begin func(*testing.T) *Kind) {
	for _, lost := range []bool{false, true} {
		k := begin(t)
		k.Need()
		k.turn()
		k.Drop()
		k.Fails["close"], k.Lost = busy, lost
		if s := k.turn(); s.Closing == "" || !s.IsOpen() {
			t.Fatalf("%+v", s)
		}
		k.Restart()
		if !lost {
			k.Again()
			if s := k.turn(); s.Closing != "" {
				t.Errorf("%+v", s)
			}
			k.proposes(1)
			k.Last().State = forge.Closed
		}
		k.turn()
		if k.Last().State != forge.Closed || len(k.Pulls) != 1 || k.count(proposal.WasClosed) != 1 {
			t.Errorf("done %t: %+v, told %q", lost, k.State(), k.Events)
		}
		closed := k.Told[len(k.Told)-1]
		if s := k.State(); s.Phase == proposal.Closed && lost || s.Phase == proposal.Obsolete && !lost {
			t.Errorf("done %t: %+v, told %q", lost, s, closed)
		}
	}
}

// somebodyElse: once somebody else has pushed, weir neither pushes nor closes, whatever is wanted, and
// says so once; also if that person takes the commits back.
func somebodyElse(t *testing.T, begin func(*testing.T) *Kind) {
	for _, end := range []forge.State{forge.Merged, forge.Closed} {
		for _, back := range []bool{false, true} {
			k := begin(t)
			k.Need()
			k.turn()
			branch := k.Last().HeadRef
			ours := k.Repo.Tip(branch)
			theirs := k.Push(branch)
			k.turn()
			if s := k.State(); s.Phase != proposal.Theirs || !strings.Contains(s.Text, "commits of somebody else") {
				t.Fatalf("%+v", s)
			}
			if back {
				k.Repo.Branch(branch, ours)
				theirs = ours
			}
			if k.Change != nil {
				k.Change()
			}
			k.turn()
			k.Restart()
			k.Drop()
			k.turn()
			if s := k.State(); s.Phase != proposal.Theirs || k.Repo.Tip(branch) != theirs || k.Last().State != forge.Open || len(k.Bodies) != 1 || len(k.Pulls) != 1 {
				t.Fatalf("%+v", s)
			}
			if n := k.count(proposal.WasLeft); n > 1 || len(k.Said) > 1 || len(k.Said) == 1 && !strings.Contains(k.Said[0], "leaves it alone") {
				t.Errorf("told %q, said %q", k.Events, k.Said)
			}
			k.Last().State = end
			if s := k.turn(); s.IsOpen() || k.count(proposal.WasClosed) != 1 {
				t.Errorf("%+v, told %q", s, k.Events)
			}
		}
	}
}

// branchOfSomebody: weir pushed the branch, and before there is a pull request somebody else pushes to
// it. weir does not push over that, and opens none.
func branchOfSomebody(t *testing.T, begin func(*testing.T) *Kind) {
	for _, forgets := range []bool{false, true} {
		k := begin(t)
		k.Need()
		k.Fails["open"] = busy
		k.turn()
		branch, _, _ := strings.Cut(k.Branches(), " ")
		theirs := k.Push(branch)
		if forgets && k.Goes {
			k.Forget()
		}
		k.turn()
		if k.turn(); k.Repo.Tip(branch) != theirs || len(k.Pulls) != 0 || k.count(proposal.WasRefused) != 1 {
			t.Errorf("forgets %t: %+v, told %q", forgets, k.State(), k.Events)
		}
	}
}

// forks: a pull request of a fork whose branch has the name, or one into another branch, is not weir's.
func forks(t *testing.T, begin func(*testing.T) *Kind) {
	for name, foreign := range map[string]forge.PullRequest{"fork": {Fork: true, BaseRef: "main"}, "base": {BaseRef: "release"}} {
		for _, state := range []forge.State{forge.Open, forge.Closed} {
			k := begin(t)
			k.Need()
			k.Fails["open"] = busy
			k.turn()
			branch, _, _ := strings.Cut(k.Branches(), " ")
			p := foreign
			p.Number, p.State, p.HeadRef, p.HeadSHA = 1, state, branch, k.Repo.Tip("main")
			k.Pulls = append(k.Pulls, &p)
			if s := k.turn(); len(k.Pulls) != 2 || s.Number != 2 || s.Phase != proposal.Open || p.State != state {
				t.Errorf("%s, %s: %+v", name, state, s)
			}
		}
	}
}

// lostRecord: the pull request is open, and nothing is kept of it. weir goes on with its own commits,
// and leaves alone what it did not make.
func lostRecord(t *testing.T, begin func(*testing.T) *Kind) {
	for _, foreign := range []bool{false, true} {
		k := begin(t)
		k.Need()
		k.turn()
		branch := k.Last().HeadRef
		at := k.Repo.Tip(branch)
		if foreign {
			at = k.Push(branch)
		}
		k.Forget()
		k.Need()
		k.turn()
		k.turn()
		if s := k.State(); s.Number != 1 || s.Phase != map[bool]proposal.Phase{false: proposal.Open, true: proposal.Theirs}[foreign || !k.Goes] || k.Repo.Tip(branch) != at || len(k.Pulls) != 1 {
			t.Errorf("foreign %t: %+v", foreign, s)
		}
		k.Drop()
		if k.turn(); (k.Last().State == forge.Open) != (foreign || !k.Goes) {
			t.Errorf("foreign %t: it is %s", foreign, k.Last().State)
		}
	}
}

// mayNot: it is reported once, tried seldom, and mended by a better token.
func mayNot(t *testing.T, begin func(*testing.T) *Kind) {
	for _, call := range []string{"push", "open"} {
		k := begin(t)
		k.Need()
		for range 3 {
			k.Fails[call] = &forgehttp.Error{Forge: "gitea", Fault: forgehttp.FaultDenied, Status: 403, Message: "the token needs more, hunter2"}
			k.turn()
			clear(k.Calls)
			k.Now.Time = k.Now.Time.Add(5 * time.Minute)
			if s := k.soon(); !s.Refused || len(k.Calls) != 0 || strings.Contains(s.Text, "hunter2") || !strings.Contains(s.Text, "the token needs more") {
				t.Fatalf("%s: %+v, %v", call, s, k.Calls)
			}
		}
		if k.count(proposal.WasRefused) != 1 || len(k.Events) != 1 {
			t.Errorf("%s: told %q", call, k.Events)
		}
		if s := k.turn(); s.Refused {
			t.Errorf("%s: %+v", call, s)
		}
		k.proposes(1)
	}
}

// noPush: weir's branches are protected. That is reported, and mended without a restart.
func noPush(t *testing.T, begin func(*testing.T) *Kind) {
	k := begin(t)
	hook := filepath.Join(k.Repo.Dir(), "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho weir/ is protected >&2\nexit 1\n"), 0o700); err != nil { //nolint:gosec // Git runs it.
		t.Fatal(err)
	}
	k.Need()
	for range 2 {
		if s := k.turn(); !s.Refused || k.Branches() != "" || k.count(proposal.WasRefused) != 1 || len(k.Pulls) != 0 {
			t.Fatalf("%+v, told %q", s, k.Events)
		}
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	k.turn()
	k.proposes(1)
}

// slowForge: a forge that does not know the branch for a moment, or is down for an hour, is asked again
// and again. Nothing is reported of that.
func slowForge(t *testing.T, begin func(*testing.T) *Kind) {
	for name, err := range map[string]error{"slow": &forgehttp.Error{Fault: forgehttp.FaultRefused, Status: 422, Message: "head is invalid"}, "busy": busy} {
		k := begin(t)
		k.Need()
		for range map[string]int{"slow": 1, "busy": 5}[name] {
			k.Fails["open"] = err
			if s := k.turn(); s.IsOpen() || s.Refused || s.After.IsZero() || len(k.Events) != 0 {
				t.Fatalf("%s: %+v, told %q", name, s, k.Events)
			}
		}
		k.turn()
		k.proposes(1)
	}
}

// leftOpen: a pull request is opened and its answer lost, and by the time that weir looks again nobody
// needs it.
func leftOpen(t *testing.T, begin func(*testing.T) *Kind) {
	for name, do := range map[string]func(k *Kind){
		"open":    func(*Kind) {},
		"theirs":  func(k *Kind) { k.Push(k.Last().HeadRef) },
		"closed":  func(k *Kind) { k.Last().State = forge.Closed },
		"dropped": func(k *Kind) { k.Pulls = nil }, // it was not opened after all
	} {
		k := begin(t)
		k.Need()
		k.Fails["open"], k.Lost = busy, true
		k.turn()
		k.Drop()
		do(k)
		k.Restart()
		k.turn()
		s := k.State()
		if open := len(k.Pulls) > 0 && k.Last().State == forge.Open; open != (name == "theirs") || s.IsOpen() != open {
			t.Errorf("%s: open %t, %+v", name, open, s)
		}
	}
}

// earlierRecord: a member of an earlier version wrote the record, which has fewer fields. weir goes on,
// and neither writes nor reports anything twice.
func earlierRecord(t *testing.T, begin func(*testing.T) *Kind) {
	for _, opened := range []bool{true, false} {
		k := begin(t)
		k.Need()
		if !opened {
			k.Fails["open"] = busy
		}
		k.turn()
		at := k.Branches()
		k.forgetNewer()
		k.turn()
		k.proposes(1)
		if k.count(proposal.WasOpened) != 1 || len(k.Events) != 1 || len(k.Bodies) != 1 || opened && k.Branches() != at {
			t.Errorf("opened %t: %d texts, told %q, %s", opened, len(k.Bodies), k.Told, k.Branches())
		}
		if k.forgetNewer(); k.Change != nil {
			k.Change()
			k.turn()
			k.proposes(1)
			k.forgetNewer()
		}
		theirs := k.Push(k.Last().HeadRef)
		k.turn()
		k.forgetNewer()
		k.Drop()
		if s := k.turn(); s.Phase != proposal.Theirs || k.Repo.Tip(k.Last().HeadRef) != theirs || k.Last().State != forge.Open {
			t.Errorf("opened %t: %+v", opened, s)
		}
	}
}

// forgetNewer leaves of the entries what the version before Machine kept.
func (k *Kind) forgetNewer() {
	k.T.Helper()
	records := state.Bucket[struct {
		Entries []map[string]any `json:"entries"`
	}]{Name: k.Record}
	err := k.Store.Update(func(tx *state.Tx) error {
		r, _, err := records.Get(tx, "s")
		for _, e := range r.Entries {
			maps.DeleteFunc(e, func(field string, _ any) bool { return !slices.Contains(strings.Fields(k.Earlier), field) })
		}
		return errors.Join(err, records.Put(tx, "s", r))
	})
	if err != nil {
		k.T.Fatal(err)
	}
	k.Restart()
}
