package nearest_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/nearest"
)

func TestWord(t *testing.T) {
	known := []string{"validate", "plan", "apply", "state", "status"}
	for word, want := range map[string]string{"valdate": "validate", "PLAN": "plan", "plna": "plan", "statsu": "status", "sttae": "state", "nonsense": "", "": "", "x": ""} {
		if got := nearest.Word(word, known); got != want {
			t.Errorf("%q: want %q, got %q", word, want, got)
		}
	}
}

// TestDistance: it is a distance, and never above the limit.
func TestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-d]{0,8}`)
		a, b, limit := word.Draw(t, "a"), word.Draw(t, "b"), rapid.IntRange(1, 9).Draw(t, "limit")
		d := nearest.Distance(a, b, limit)
		if d != nearest.Distance(b, a, limit) || d > limit || (d == 0) != (a == b) {
			t.Errorf("distance of %q and %q under %d: %d", a, b, limit, d)
		}
	})
}
