package proposaltest

import (
	"errors"
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

// somebodyElse: after somebody else has pushed, weir neither pushes nor closes, even if the wanted content
// changes, and reports that once. This is also true if that person removes the commits again.
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
			if s := k.State(); s.Phase != proposal.Theirs || !strings.Contains(s.Text, "commits by somebody else") {
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
			if n := k.count(proposal.WasLeft); n > 1 || len(k.Said) > 1 || len(k.Said) == 1 && !strings.Contains(k.Said[0], "no longer updates it") {
				t.Errorf("told %q, said %q", k.Events, k.Said)
			}
			k.Last().State = end
			if s := k.turn(); s.IsOpen() || k.count(proposal.WasClosed) != 1 {
				t.Errorf("%+v, told %q", s, k.Events)
			}
		}
	}
}

// branchOfSomebody: weir pushed the branch, and before a pull request exists, somebody else pushes to
// it. weir does not overwrite that, and opens no pull request.
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

// forks: a pull request from a fork with the same branch name, or into another branch, is not weir's.
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

// lostRecord: the pull request is open, and its record is lost. weir continues from its own commits, and
// does not change the pull request if others made commits.
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

// mayNot: a missing permission is reported once, retried seldom, and works again with a better token.
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

// noPush: weir's branches are protected. That is reported, and works again without a restart.
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

// earlierRecord: the record comes from a member of an earlier version, and has fewer fields. This is tested after
// the pull request was opened, and after the forge failed to open it. weir continues, and neither writes nor
// reports anything twice. It does not close a pull request to whose branch somebody has pushed.
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

// forgetNewer keeps only the fields of the entries that the version before Machine stored.
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
