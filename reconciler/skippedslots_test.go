package reconciler

import (
	"slices"
	"strings"
	"testing"
)

func TestSkippedSlotsChangeTheOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		skipped skippedSlots
		want    string
	}{
		"none was skipped":        {skippedSlots{}, "abcd"},
		"the time was up":         {skippedSlots{map[string]bool{"b": true, "d": true}, false}, "bdac"},
		"something newer came":    {skippedSlots{map[string]bool{"a": true, "c": true}, true}, "bdac"},
		"all were skipped":        {skippedSlots{map[string]bool{"a": true, "b": true, "c": true, "d": true}, false}, "abcd"},
		"one that does not exist": {skippedSlots{map[string]bool{"z": true}, false}, "abcd"},
	} {
		var slots []slot
		for _, key := range []string{"a", "b", "c", "d"} {
			slots = append(slots, slot{key: key})
		}
		tc.skipped.sort(slots)
		var got []string
		for s := range slices.Values(slots) {
			got = append(got, s.key)
		}
		if order := strings.Join(got, ""); order != tc.want {
			t.Errorf("%s: the order is %s, want %s", name, order, tc.want)
		}
	}
}
