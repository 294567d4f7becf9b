package reconciler

import (
	"fmt"
	"testing"
)

func TestOnlyTheRecentIsKept(t *testing.T) {
	const most = 10
	r := recent[int]{limit: most}
	for i := range 95 {
		r.set(fmt.Sprint(i), i)
		all := r.all()
		for j := max(0, i-most+1); j <= i; j++ {
			if v, kept := all[fmt.Sprint(j)]; !kept || v != j || r.get(fmt.Sprint(j)) != j {
				t.Fatalf("%d is forgotten after %d", j, i)
			}
		}
		if len(all) > 2*most {
			t.Fatalf("%d are kept after %d", len(all), i)
		}
	}
	// A value that is set again takes no room.
	was := len(r.all())
	if r.set("94", 7); r.get("94") != 7 || len(r.all()) != was {
		t.Errorf("set again: %v", r.all())
	}
}
