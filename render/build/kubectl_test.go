package build_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/render/build"
)

// TestSameAsKubectl builds every golden that says so on disk with kubectl too.
func TestSameAsKubectl(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		g := readGolden(t, name)
		if !g.kubectl {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			dir := t.TempDir()
			for p, text := range g.tree {
				at := filepath.Join(dir, p)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if link, ok := strings.CutPrefix(text, "symlink:"); ok {
					err = os.Symlink(link, at)
				} else {
					err = os.WriteFile(at, []byte(text), 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(kubectl, "kustomize", filepath.Join(dir, g.path))
			var stderr strings.Builder
			cmd.Stderr = &stderr
			want, err := cmd.Output()
			if err != nil {
				t.Fatalf("kubectl kustomize: %v: %s", err, stderr.String())
			}
			r, err := build.Build(context.Background(), g.tree, g.path, build.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(r.Raw())); d != "" {
				t.Errorf("build differs from kubectl kustomize (-kubectl +got):\n%s\n%s", d, printDiags(r.Diags))
			}
		})
	}
}
