package reconciler_test

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
)

// What is about a pool as a whole, and not about a field of it, is linked to the
// file as well: to where the object's name stands.
func TestFindingsAboutAPoolHaveItsPlace(t *testing.T) {
	w := newWorld(t)
	theirs := capaGroupTarget(t, secretBootstrap, "", "m5.large")
	theirs.Policy.Instance = "theirs"
	w.settle(theirs)

	r := w.must(reconciler.PlanOnly, capaGroupTarget(t, secretBootstrap, "", "m5.large"))[0]
	if !hasCode(r, "conflict") || !hasCode(r, "default-network") {
		t.Fatalf("diagnostics: %v", r.Diagnostics)
	}
	for _, d := range r.Diagnostics {
		if !d.Known() || d.File != "all.yaml" {
			t.Errorf("without a place: %v", d)
		}
		if d.Code == "conflict" && !strings.HasSuffix(d.Detail, "weir adopt --config FILE blue --from theirs") {
			t.Errorf("the way out: %q", d.Detail)
		}
	}
}
