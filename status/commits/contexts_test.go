package commits

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/visible"
)

func TestContextNamesStayApart(t *testing.T) {
	a, b := strings.Repeat("x", 300)+"a", strings.Repeat("x", 300)+"b"
	if contextName(a, 255) == contextName(b, 255) {
		t.Error("two long targets share a context")
	}
}

func FuzzContextName(f *testing.F) {
	f.Add("weir/apply/web😀", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = limit&0xff + 20
		if name := contextName(visible.Line(s), limit); visible.Units(name) > limit {
			t.Errorf("contextName(%q, %d) = %q", s, limit, name)
		}
	})
}
