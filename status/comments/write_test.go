package comments

import "testing"

// Each case is what is known of a pull request and its comment, and what follows. The cases of a
// block show what decides if several things are true.
func TestStandingsOfAComment(t *testing.T) {
	for _, tc := range []struct {
		name string
		is   standingFacts
		want standing
	}{
		{"nothing new", standingFacts{exists: true, same: true, needed: true}, upToDate},
		{"another plan", standingFacts{exists: true, needed: true}, outdated},
		{"it waits for a permission now, and has a comment", standingFacts{exists: true}, outdated},
		{"merged, and the plan is in memory", standingFacts{exists: true, merged: true}, outdated},
		{"merged, the comment says so, and only the comment has the plan", standingFacts{exists: true, merged: true, opens: true}, keepsPlan},

		{"somebody edited it", standingFacts{exists: true, foreign: true, needed: true}, edited},
		{"somebody edited it, and wrote what weir writes now", standingFacts{exists: true, foreign: true, same: true}, edited},
		{"somebody edited it below the outcome", standingFacts{exists: true, foreign: true, merged: true, opens: true}, edited},

		{"the first plan", standingFacts{needed: true}, due},
		{"another plan after somebody deleted the comment", standingFacts{gone: true, needed: true}, due},
		{"the merge after somebody deleted the comment", standingFacts{gone: true, merged: true}, deleted},
		{"the merge of a pull request without a comment", standingFacts{merged: true}, notDue},
		{"closed after somebody deleted the comment", standingFacts{gone: true}, notDue},
		{"a draft", standingFacts{}, notDue},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.is.standing(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
