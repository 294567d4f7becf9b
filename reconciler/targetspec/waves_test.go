package targetspec

import (
	"testing"

	"pgregory.net/rapid"
)

func TestOverlap(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a*", "*b", true}, {"a*c", "ab*", true}, {"a*c", "b*", false}, {"prod-{1}", "prod-eu", true},
		{"prod-{1}", "stage-{1}", false}, {"*", "", true}, {"", "", true}, {"a", "", false}, {"**", "a", true}, {"a*b*c", "abc", true}, {"a*b*c", "acb", false},
	} {
		if Overlap(tc.a, tc.b) != tc.want || Overlap(tc.b, tc.a) != tc.want {
			t.Errorf("%q and %q: want %v", tc.a, tc.b, tc.want)
		}
	}
	// Patterns that match a common text overlap.
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`[ab]{0,6}`).Draw(rt, "text")
		blur := func(label string) string {
			from := rapid.IntRange(0, len(text)).Draw(rt, label+" from")
			to := rapid.IntRange(from, len(text)).Draw(rt, label+" to")
			return text[:from] + "*" + text[to:]
		}
		if a, b := blur("a"), blur("b"); !Overlap(a, b) {
			rt.Fatalf("%q and %q both stand for %q", a, b, text)
		}
	})
}
