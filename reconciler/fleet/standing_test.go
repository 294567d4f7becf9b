package fleet

import (
	"errors"
	"testing"
)

// TestStandings has all cases of whether a target is rendered. It reads no more of the tree than a case gives.
func TestStandings(t *testing.T) {
	unreadableTree := errors.New("the disk is gone")
	yes, no := func() (bool, error) { return true, nil }, func() (bool, error) { return false, nil }
	fails := func() (bool, error) { return false, unreadableTree }
	for name, tc := range map[string]struct {
		given comparison
		want  standing
		err   error
	}{
		"the source cannot be read":                               {comparison{unread: true, faulty: true, built: true}, unread, nil},
		"two paths give the same target":                          {comparison{faulty: true, built: true, sameCommit: true}, faulty, nil},
		"the same commit again":                                   {comparison{built: true, sameCommit: true}, current, nil},
		"the same commit, but other values":                       {comparison{sameCommit: true, missing: no}, outdated, nil},
		"the first commit":                                        {comparison{missing: no}, outdated, nil},
		"the first commit, without the path":                      {comparison{missing: yes}, missing, nil},
		"another commit, without the path":                        {comparison{built: true, missing: yes}, missing, nil},
		"another commit that changes other files":                 {comparison{built: true, missing: no, sameReads: yes}, unchanged, nil},
		"another commit that changes a file of the target":        {comparison{built: true, missing: no, sameReads: no}, outdated, nil},
		"another commit that changes other files, and new values": {comparison{missing: no}, outdated, nil},
		"the directory of the path cannot be read":                {comparison{built: true, missing: fails}, missing, unreadableTree},
		"a file that the last build read cannot be read any more": {comparison{built: true, missing: no, sameReads: fails}, outdated, unreadableTree},
	} {
		if got, err := standingOf(tc.given); !errors.Is(err, tc.err) || (err != nil) != (tc.err != nil) || got != tc.want {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, tc.want, tc.err)
		}
	}
}
