package pulls

import "testing"

// Each case is what is known of a pull request, and the stage that follows. The cases of a block
// show what decides if several things are true.
func TestStagesOfAPullRequest(t *testing.T) {
	for _, tc := range []struct {
		name string
		is   stageFacts
		want stage
	}{
		{"merged during its plan", stageFacts{merged: true, read: true, planning: true}, stageMerged},
		{"merged before a restart, and not read since", stageFacts{merged: true}, stageMerged},
		{"of an earlier process", stageFacts{blocked: true}, stageUnread},
		{"of a fork, and nobody allowed it", stageFacts{read: true, blocked: true}, stageBlocked},
		{"it became a draft during its plan", stageFacts{read: true, blocked: true, planning: true, asked: true}, stageBlocked},

		{"being planned", stageFacts{read: true, planning: true}, stagePlanning},
		{"being planned, and a user requests another plan", stageFacts{read: true, planning: true, asked: true}, stagePlanning},
		{"it killed weir", stageFacts{read: true, killed: true}, stageKilled},
		{"it killed weir, and a user requests a plan", stageFacts{read: true, killed: true, asked: true}, stageDue},

		{"AWS changed just after its plan", stageFacts{read: true, current: true, dirty: true, settling: true}, stageUnsettled},
		{"the same, and a user requests a plan", stageFacts{read: true, current: true, dirty: true, settling: true, asked: true}, stageUnsettled},
		{"AWS changed some time after its plan", stageFacts{read: true, current: true, dirty: true}, stageDue},

		{"its plan failed", stageFacts{read: true, current: true, retry: true, later: true}, stagePostponed},
		{"its plan failed, and somebody pushed", stageFacts{read: true, retry: true, later: true}, stagePostponed},
		{"its plan failed, and a user requests another", stageFacts{read: true, current: true, retry: true, later: true, asked: true}, stageDue},
		{"its plan failed, and the time of the next has come", stageFacts{read: true, current: true, retry: true}, stageDue},

		{"planned", stageFacts{read: true, current: true}, stagePlanned},
		{"planned just now", stageFacts{read: true, current: true, settling: true}, stagePlanned},
		{"planned, and a user requests a plan", stageFacts{read: true, current: true, asked: true}, stageDue},
		{"a new head, or a new commit in the source", stageFacts{read: true}, stageDue},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.is.stage(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
