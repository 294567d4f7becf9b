package reconciler

import (
	"fmt"
	"testing"
)

func TestOnlyTheRecentIsKept(t *testing.T) {
	const most = 10
	var now, before map[string]int
	for i := range 95 {
		now, before = keep(now, before, fmt.Sprint(i), i, most)
		for j := max(0, i-most+1); j <= i; j++ {
			_, a := now[fmt.Sprint(j)]
			_, b := before[fmt.Sprint(j)]
			if !a && !b {
				t.Fatalf("%d is forgotten after %d", j, i)
			}
		}
		if len(now)+len(before) > 2*most {
			t.Fatalf("%d are kept after %d", len(now)+len(before), i)
		}
	}
	// A value that is set again takes no room.
	was := len(now)
	if now, _ = keep(now, before, "94", 7, most); now["94"] != 7 || len(now) != was {
		t.Errorf("set again: %v", now)
	}
}
