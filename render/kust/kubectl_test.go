package kust_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
	"pgregory.net/rapid"
)

// kubectlRuns is how many generated trees are compared with kubectl, which takes
// some 50 ms each; the environment's WEIR_KUBECTL_RUNS asks for another number.
const kubectlRuns = 60

func needKubectl(t *testing.T) string {
	t.Helper()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed: nothing to compare with")
	}
	return kubectl
}

// write puts a tree on disk.
func write(t interface{ Fatal(...any) }, dir string, m tree.Map) {
	for p, text := range m {
		at := filepath.Join(dir, p)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if err == nil {
			if link, ok := strings.CutPrefix(text, "symlink:"); ok {
				err = os.Symlink(link, at)
			} else {
				err = os.WriteFile(at, []byte(text), 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// kustomized is what kubectl makes of a tree; an error holds its messages.
func kustomized(kubectl, dir, path string) (string, error) {
	cmd := exec.Command(kubectl, "kustomize", filepath.Join(dir, path))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}

// TestSameAsKubectl builds every golden that says so on disk with kubectl too.
func TestSameAsKubectl(t *testing.T) {
	kubectl := needKubectl(t)
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
			write(t, dir, g.tree)
			want, err := kustomized(kubectl, dir, g.path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := kust.Build(context.Background(), g.tree, g.path, kust.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, string(r.Raw())); d != "" {
				t.Errorf("build differs from kubectl kustomize (-kubectl +got):\n%s\n%s", d, printDiags(r.Diags))
			}
		})
	}
}

// TestConstructsSameAsKubectl compares every construct of kustomize's
// documentation: with the same output, or with an error on both sides.
func TestConstructsSameAsKubectl(t *testing.T) {
	kubectl := needKubectl(t)
	for name, m := range constructs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, m)
			want, wantErr := kustomized(kubectl, dir, ".")
			r, err := kust.Build(context.Background(), m, ".", kust.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if wantErr != nil {
				t.Fatalf("a construct of the documentation must build: %v", wantErr)
			}
			if d := cmp.Diff(want, string(r.Raw())); d != "" {
				t.Errorf("(-kubectl +got):\n%s\n%s", d, printDiags(r.Diags))
			}
		})
	}
}

// TestOverlaysSameAsKubectl compares generated overlays: what kubectl builds is
// built to the same bytes, and what it refuses is refused.
func TestOverlaysSameAsKubectl(t *testing.T) {
	kubectl := needKubectl(t)
	runs := kubectlRuns
	if n, err := strconv.Atoi(os.Getenv("WEIR_KUBECTL_RUNS")); err == nil {
		runs = n
	}
	left, refused := runs, 0
	dirs := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		if left--; left < 0 {
			return // enough programs were started
		}
		m := drawTree(t)
		dir, err := os.MkdirTemp(dirs, "")
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, m)
		want, wantErr := kustomized(kubectl, dir, "top")
		r, err := kust.Build(context.Background(), m, "top", kust.Options{})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case wantErr != nil && !r.Diags.HasErrors():
			t.Fatalf("kubectl refuses what is built: %v\n%s", wantErr, show(m))
		case wantErr != nil:
			refused++
		case string(r.Raw()) != want:
			t.Fatalf("(-kubectl +got):\n%s\n%s\n%s", cmp.Diff(want, string(r.Raw())), printDiags(r.Diags), show(m))
		}
	})
	if runs >= kubectlRuns && refused > runs/2 {
		t.Errorf("%d of %d generated trees were refused by both: they say too little", refused, runs)
	}
}

func show(m tree.Map) string {
	var b strings.Builder
	for p, text := range m {
		fmt.Fprintf(&b, "-- %s --\n%s", p, text)
	}
	return b.String()
}
