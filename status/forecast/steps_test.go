package forecast

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
)

// Every row says what becomes of machines, also of a group of one, of a new one, and where
// none is replaced; so does what is left of a timeline beside a plan.
func TestEveryRowCountsMachines(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	seen := func(desired int32, old, is, starting int32, ids ...string) timeline.Seen {
		s := timeline.Seen{Name: "default/web", Desired: desired, Versions: map[string]int32{}, Starting: starting, Machines: ids, Moves: true}
		for v, n := range map[string]int32{"1": old, "2": is} {
			if n > 0 {
				s.Versions[v] = n
			}
		}
		return s
	}
	for want, points := range map[string][]timeline.Seen{
		"1 replaced":                         {seen(1, 1, 0, 0, "i-1"), seen(1, 0, 0, 1, "i-2"), seen(1, 0, 1, 0, "i-2")},
		"1 replaced, up to 1 more in a pool": {seen(1, 1, 0, 0, "i-1"), seen(1, 1, 0, 1, "i-1", "i-2"), seen(1, 0, 1, 0, "i-2")},
		"1 started":                          {seen(1, 0, 0, 0), seen(1, 0, 0, 1, "i-1"), seen(1, 0, 1, 0, "i-1")},
		"1 replaced, 1 started":              {seen(1, 1, 0, 0, "i-1"), seen(2, 0, 1, 1, "i-2", "i-3"), seen(2, 0, 2, 0, "i-2", "i-3")},
		"2 ended":                            {seen(3, 3, 0, 0, "i-1", "i-2", "i-3"), seen(1, 1, 0, 0, "i-1")},
		"none":                               {seen(1, 1, 0, 0, "i-1"), seen(1, 1, 0, 0, "i-1")},
	} {
		r := timeline.New(noon)
		r.Target("prod", "", "eu-west-1")
		for i, s := range points {
			r.Saw(noon.Add(time.Duration(i)*time.Minute), "prod", []timeline.Seen{s}, false)
		}
		whole := r.Finish("")
		for what, e := range map[string]*timeline.Timeline{"whole": whole, "brief": whole.Brief()} {
			if text := Fold(e); !strings.Contains(text, " | "+want+" |\n") {
				t.Errorf("%s: %q is missing in\n%s", what, want, text)
			}
		}
	}
}
