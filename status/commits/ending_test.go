package commits

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// A write ends in one of four ways. What readers of the commit may see depends on the way and on
// the status.
func TestEndingsOfAWrite(t *testing.T) {
	refusal := func(status int) error {
		return fmt.Errorf("post: %w", &forgehttp.Error{Status: status, Message: "no"})
	}
	for _, tc := range []struct {
		name             string
		err              error
		want             ending
		pending, verdict bool // what is visible
	}{
		{"the forge took it", nil, taken, true, true},
		{"the commit had it", errUnchanged, taken, true, true},
		{"the commit has a verdict, which pending does not replace", errKept, kept, false, false},
		{"the answer is missing", context.DeadlineExceeded, doubtful, true, false},
		{"a proxy answered", refusal(502), doubtful, true, false},
		{"the commit is not there", refusal(404), refused, false, false},
		{"the token expired", refusal(401), refused, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := endingOf(tc.err)
			if got != tc.want || got.shows(forge.Pending) != tc.pending || got.shows(forge.Success) != tc.verdict {
				t.Errorf("%q, want %q; pending is visible: %t, success: %t", got, tc.want, got.shows(forge.Pending), got.shows(forge.Success))
			}
		})
	}
}
