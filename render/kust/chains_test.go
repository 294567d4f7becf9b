package kust

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Members are in one chain where one has a name that the next one has as well.
func TestChains(t *testing.T) {
	byName := map[string][]int{"a": {0}, "a-s": {0, 1}, "a-s-s": {1, 3}, "b": {2}}
	got := chains(5, byName)
	if d := cmp.Diff([][]int{{0, 1, 3}, {0, 1, 3}, {2}, {0, 1, 3}, {4}}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
