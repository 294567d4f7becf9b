package render_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// FuzzRender decodes arbitrary objects. Any object gives intents or findings with known codes, and asking for positions and text is safe.
func FuzzRender(f *testing.F) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		f.Fatalf("no goldens to begin with: %v", err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if strings.HasSuffix(file.Name, ".yaml") && !strings.HasPrefix(file.Name, "want/") {
				f.Add(string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, objects string) {
		if len(objects) > 32<<10 {
			return
		}
		r, err := render.Render(context.Background(), tree.Map{"a.yaml": objects}, "a.yaml",
			render.Options{Vars: map[string]string{"A": "1"}, Limits: kust.Limits{Nodes: 5000}})
		if err != nil {
			t.Fatalf("a tree in memory can always be read: %v", err)
		}
		for _, d := range r.Diags {
			if _, ok := diag.RuleOf(d.Code); !ok {
				t.Fatalf("unknown code in %s", d)
			}
			if d.File != "" && d.File != "a.yaml" {
				t.Fatalf("a file that does not exist: %s", d)
			}
		}
		if len(r.Set.Pools) > 0 && len(r.Objects) == 0 {
			t.Fatal("pools from no objects")
		}
		r.YAML()
	})
}
