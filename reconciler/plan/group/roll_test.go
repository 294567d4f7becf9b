package group

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Each case is what is known of a group, and the situation that follows. The cases of a block
// show what decides where several things are true.
func TestSituationsOfAGroup(t *testing.T) {
	var (
		running  = observed.Refresh{ID: "r", Status: "InProgress"}
		baking   = observed.Refresh{ID: "r", Status: "Baking"}
		ending   = observed.Refresh{ID: "r", Status: "Cancelling"}
		rollback = observed.Refresh{ID: "r", Status: "RollbackInProgress"}
		over     = observed.Refresh{ID: "r", Status: "Successful"}
	)
	for _, tc := range []struct {
		name string
		is   facts
		want situation
	}{
		{"as Git wants", facts{set: true, read: true, latest: over}, inSync},
		{"as Git wants, and no refresh was ever read", facts{set: true}, inSync},
		{"old machines stay where rollouts are off", facts{set: true, versions: 2, disabled: true}, inSync},
		{"as Git wants, its refresh bakes", facts{set: true, read: true, same: true, latest: baking}, finishing},
		{"as Git wants, an earlier refresh is being cancelled", facts{set: true, read: true, latest: ending}, finishing},
		{"Git went back before the refresh replaced anything", facts{set: true, read: true, latest: running}, obsolete},

		{"nothing runs that could roll", facts{direct: true, unreadable: true}, direct},
		{"the refreshes cannot be read", facts{versions: 2, unreadable: true}, unreadable},
		{"the refreshes are not read yet", facts{versions: 2}, unknown},

		{"the change is stopped", facts{versions: 2, read: true, stopped: true, latest: running, same: true}, stopped},
		{"the change is stopped after all machines have it", facts{set: true, read: true, stopped: true}, stopped},
		{"the change is stopped, and nothing runs", facts{read: true, stopped: true, direct: true}, stopped},

		{"the refresh goes on", facts{versions: 2, read: true, same: true, latest: running}, underWay},
		{"the refresh goes on, whatever undid those before", facts{versions: 2, read: true, same: true, latest: running, undone: true}, underWay},
		{"somebody undoes every rollout", facts{versions: 2, read: true, undone: true, latest: running}, undoneOften},
		{"a refresh to something else goes on", facts{versions: 2, read: true, latest: running}, otherRefresh},
		{"the refresh is being cancelled, and is wanted again", facts{versions: 2, read: true, same: true, latest: ending}, otherRefresh},
		{"AWS rolls the refresh back", facts{versions: 2, read: true, same: true, latest: rollback, ended: failed}, otherRefresh},

		{"the refresh failed", facts{versions: 2, read: true, same: true, ended: failed}, failed},
		{"somebody cancelled it", facts{versions: 2, read: true, same: true, ended: cancelled}, cancelled},
		{"it left protected machines alone", facts{set: true, versions: 1, read: true, same: true, latest: over, ended: incomplete}, incomplete},

		{"the group was set to a version that nothing runs", facts{read: true, updatable: true}, unused},
		{"its policy needs a refresh all the same", facts{read: true}, due},
		{"machines run another version", facts{versions: 2, read: true, updatable: true}, due},
		{"machines have a type that is no longer wanted", facts{set: true, types: 1, read: true, latest: over}, due},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.is.situation(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// The same for a group whose change was found bad.
func TestSituationsOfAStoppedGroup(t *testing.T) {
	running, ending, lost := observed.Refresh{Status: "InProgress"}, observed.Refresh{Status: "Cancelling"}, observed.Refresh{Status: "Failed"}
	for _, tc := range []struct {
		name string
		is   stopFacts
		want stopSituation
	}{
		{"its refresh goes on", stopFacts{latest: running, same: true, bad: 2, returns: true}, endsRefresh},
		{"its refresh is being cancelled", stopFacts{latest: ending, same: true, bad: 2, returns: true}, awaitsEnd},
		{"a refresh to something else goes on", stopFacts{latest: running, bad: 2, returns: true}, awaitsEnd},
		{"nobody recorded what was before", stopFacts{set: true, bad: 2}, nothingBack},
		{"no machine has the change", stopFacts{returns: true}, nothingBack},
		{"the refresh back failed", stopFacts{bad: 2, returns: true, triedBack: true, latest: lost}, backFailed},
		{"another refresh failed", stopFacts{bad: 2, returns: true, latest: lost}, rollBack},
		{"somebody undoes every refresh back", stopFacts{bad: 2, returns: true, undone: true}, backUndone},
		{"only the group is set to the change", stopFacts{set: true, returns: true}, setBack},
		{"machines have the change, and Git allows no refresh", stopFacts{bad: 2, returns: true, disabled: true}, setBack},
		{"machines have the change", stopFacts{bad: 2, returns: true}, rollBack},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.is.situation(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
