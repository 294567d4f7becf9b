package kinds

import (
	"slices"
	"testing"

	"github.com/weir-gitops/weir/render/diag"
)

// TestTablesName what exists: a code that is renamed must be renamed here too.
func TestTablesName(t *testing.T) {
	for code := range Findings {
		if _, ok := diag.RuleOf(code); !ok {
			t.Errorf("no diagnostic has the code %s", code)
		}
	}
	for kind := range levels {
		if !slices.Contains(All(), kind) {
			t.Errorf("no event has the kind %s", kind)
		}
	}
}
