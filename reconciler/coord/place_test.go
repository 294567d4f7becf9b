package coord_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/coord"
)

func names(prefix string, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// settled are scopes that are where placement puts them.
func settled(scopes []coord.Scope, members []string) []coord.Scope {
	placed := coord.Place(scopes, members)
	scopes = slices.Clone(scopes)
	for i := range scopes {
		scopes[i].Owner = placed[scopes[i].Key]
	}
	return scopes
}

func loads(scopes []coord.Scope, placed map[string]string) (by map[string]int, total, largest int) {
	by = map[string]int{}
	for _, s := range scopes {
		by[placed[s.Key]] += max(1, s.Weight)
		total += max(1, s.Weight)
		largest = max(largest, s.Weight, 1)
	}
	return by, total, largest
}

func drawScopes(t *rapid.T, weights bool) []coord.Scope {
	var scopes []coord.Scope
	for _, key := range names(rapid.StringMatching(`[a-z/]{0,8}`).Draw(t, "prefix"), rapid.IntRange(0, 300).Draw(t, "scopes")) {
		w := 1
		if weights {
			w = rapid.IntRange(0, 60).Draw(t, "weight")
		}
		scopes = append(scopes, coord.Scope{Key: key, Weight: w})
	}
	return scopes
}

// TestPlaceProperties: everybody sees the same, whatever the order; what is placed stays;
// every key has a member, and loads are bounded.
func TestPlaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scopes := drawScopes(t, true)
		members := names("m", rapid.IntRange(1, 12).Draw(t, "members"))
		placed := coord.Place(scopes, members)
		shuffled := rapid.Permutation(scopes).Draw(t, "shuffled")
		if again := coord.Place(shuffled, rapid.Permutation(members).Draw(t, "others")); !maps.Equal(placed, again) {
			t.Fatalf("another order, another placement")
		}
		if again := coord.Place(settled(scopes, members), members); !maps.Equal(placed, again) {
			t.Fatalf("what is placed moves")
		}
		if len(placed) != len(scopes) {
			t.Fatalf("%d of %d have a member", len(placed), len(scopes))
		}
		by, total, largest := loads(scopes, placed)
		for m, load := range by {
			if !slices.Contains(members, m) {
				t.Fatalf("%q is nobody", m)
			}
			if bound := total*3/(2*len(members)) + largest; load > bound {
				t.Fatalf("%s has %d of %d, more than %d", m, load, total, bound)
			}
		}
	})
}

// TestPlaceWhenOneGoes: its own keys move, and at most 5 % more; one, where 5 % are less.
func TestPlaceWhenOneGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scopes := drawScopes(t, rapid.Bool().Draw(t, "weights"))
		members := names(rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "host"), rapid.IntRange(2, 12).Draw(t, "members"))
		scopes = settled(scopes, members)
		gone := rapid.SampledFrom(members).Draw(t, "gone")
		left := slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == gone })
		placed := coord.Place(scopes, left)
		moved := 0
		for _, s := range scopes {
			if s.Owner != gone && placed[s.Key] != s.Owner {
				moved++
			}
		}
		if moved > max(1, len(scopes)/20) {
			t.Fatalf("%d of %d moved that need not", moved, len(scopes))
		}
	})
}

// TestPlaceWhenOneComes: it gets about its share, from each a little, and nothing else
// moves, but for a few that even what is left.
func TestPlaceWhenOneComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scopes := drawScopes(t, false)
		members := names("m", rapid.IntRange(1, 10).Draw(t, "members"))
		scopes = settled(scopes, members)
		placed := coord.Place(scopes, append(slices.Clone(members), "new"))
		moved, beside := 0, 0
		for _, s := range scopes {
			if placed[s.Key] == "new" {
				moved++
			} else if placed[s.Key] != s.Owner {
				beside++
			}
		}
		if beside > max(1, len(scopes)/20) {
			t.Fatalf("%d of %d moved among the others", beside, len(scopes))
		}
		n := len(members) + 1
		if least, most := len(scopes)*3/(4*n)-1, len(scopes)*5/(4*n)+1; moved < least || moved > most {
			t.Fatalf("the new one gets %d of %d, %d to %d are its share", moved, len(scopes), least, most)
		}
	})
}

func TestPlacePinned(t *testing.T) {
	var scopes []coord.Scope
	for _, key := range names("scope", 20) {
		scopes = append(scopes, coord.Scope{Key: key})
	}
	members := names("m", 3)
	scopes = settled(scopes, members)
	for i := range scopes {
		scopes[i].Pinned = "m1"
	}
	scopes[3].Pinned = "gone"
	placed := coord.Place(scopes, members)
	for _, s := range scopes {
		if s.Pinned == "m1" && placed[s.Key] != "m1" {
			t.Errorf("%s is pinned and goes to %s", s.Key, placed[s.Key])
		}
	}
	if got := placed["scope3"]; got == "gone" || got == "m1" {
		t.Errorf("what is pinned to nobody goes to %q", got)
	}
	if placed := coord.Place(scopes, nil); len(placed) > 0 {
		t.Errorf("nobody is there, and gets %v", placed)
	}
}

// BenchmarkMoved reports how many of 200 scopes move when one of ten members goes, beside
// its own.
func BenchmarkMoved(b *testing.B) {
	var scopes []coord.Scope
	for i, key := range names("aws/123456789012/eu-central-", 200) {
		scopes = append(scopes, coord.Scope{Key: key, Weight: 1 + i%7*i%5*10})
	}
	members := names("weir-", 10)
	own, more, most := 0, 0, 0
	for b.Loop() {
		own, more, most = 0, 0, 0
		placed := settled(scopes, members)
		for i, gone := range members {
			left := slices.Delete(slices.Clone(members), i, i+1)
			next := coord.Place(placed, left)
			moved := 0
			for _, s := range placed {
				switch {
				case s.Owner == gone:
					own++
				case next[s.Key] != s.Owner:
					moved++
				}
			}
			more += moved
			most = max(most, moved)
		}
	}
	b.ReportMetric(float64(own)/10, "own/loss")
	b.ReportMetric(float64(more)/10, "more/loss")
	b.ReportMetric(float64(most), "most-more")
}

// TestPlaceWhenAGiantGoes: where the keys of one that went make the others uneven, no more than 5 % of all move at once to even that out.
func TestPlaceWhenAGiantGoes(t *testing.T) {
	scopes := []coord.Scope{{Key: "giant", Weight: 120, Owner: "z"}}
	for i, key := range names("small", 100) {
		scopes = append(scopes, coord.Scope{Key: key, Weight: 1, Owner: []string{"x", "y"}[i%2]})
	}
	placed := coord.Place(scopes, []string{"x", "y"})
	moved := 0
	for _, s := range scopes[1:] {
		if placed[s.Key] != s.Owner {
			moved++
		}
	}
	if moved != 5 {
		t.Errorf("%d of 101 moved that need not, and at most 5 %% may", moved)
	}
}
