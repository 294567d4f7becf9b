package targetspec

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/tree"
)

func TestGlobExpand(t *testing.T) {
	m := tree.Map{}
	for _, f := range []string{
		"overlays/prod-eu/kustomization.yaml", "overlays/prod-us/kustomization.yaml", "overlays/dev/kustomization.yaml",
		"overlays/README.md", "overlays/.hidden/x.yaml", "a/1/pools/x.yaml", "a/2/other/x.yaml", "flat/one.yaml", "flat/two.yaml",
	} {
		m[f] = "x"
	}
	tests := map[string]struct {
		path, name string
		want       map[string]string // name -> path
	}{
		"plain":               {"overlays/dev", "dev", map[string]string{"dev": "overlays/dev"}},
		"plain and missing":   {"nowhere", "n", map[string]string{"n": "nowhere"}},
		"root":                {".", "all", map[string]string{"all": "."}},
		"directories":         {"overlays/*", "t-{1}", map[string]string{"t-dev": "overlays/dev", "t-prod-eu": "overlays/prod-eu", "t-prod-us": "overlays/prod-us"}},
		"two wildcards":       {"overlays/*-*", "{2}.{1}", map[string]string{"eu.prod": "overlays/prod-eu", "us.prod": "overlays/prod-us"}},
		"in the middle":       {"a/*/pools", "{1}", map[string]string{"1": "a/1/pools"}},
		"a single character":  {"a/?/other", "{1}", map[string]string{"2": "a/2/other"}},
		"files":               {"flat/*.yaml", "{1}", map[string]string{"one": "flat/one.yaml", "two": "flat/two.yaml"}},
		"a directory missing": {"nowhere/*", "{1}", map[string]string{}},
		"nothing fits":        {"overlays/*/x/*", "{1}{2}", map[string]string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g, err := ParseGlob(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			matches, found, err := g.Expand(m, 100)
			if err != nil {
				t.Fatal(err)
			}
			if found != len(matches) {
				t.Errorf("counted %d of %d", found, len(matches))
			}
			got := map[string]string{}
			for _, match := range matches {
				got[NameFor(tc.name, match)] = match.Path
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// wide is a tree of directories that all hold the same 300 names, as deep as one
// likes: what Git keeps in a few objects.
type wide struct{ listed int }

func (w *wide) Lookup(p string) (tree.Entry, error) {
	return tree.Entry{Name: path.Base(p), Mode: tree.Dir, Size: -1}, nil
}

func (w *wide) ReadFile(string) ([]byte, error) { return nil, fs.ErrNotExist }

func (w *wide) ReadDir(string) ([]tree.Entry, error) {
	w.listed++
	out := make([]tree.Entry, 300)
	for i := range out {
		out[i] = tree.Entry{Name: fmt.Sprintf("d%03d", i), Mode: tree.Dir, Size: -1}
	}
	return out, nil
}

// Expand counts all matches, keeps as many as were asked for, and gives up on an endless tree.
func TestGlobExpandOfAHostileTree(t *testing.T) {
	expand := func(p string) ([]Match, int, *wide, error) {
		g, err := ParseGlob(p)
		if err != nil {
			t.Fatal(err)
		}
		w := &wide{}
		m, found, err := g.Expand(w, 10)
		return m, found, w, err
	}
	m, found, _, err := expand("o/*/*?1")
	if err != nil || len(m) != 10 || found != 9_000 || m[0].Path != "o/d000/d001" || !cmp.Equal(m[9].Texts, []string{"d000", "d0", "9"}) {
		t.Errorf("got %d of %d, the last %+v, %v", len(m), found, m[len(m)-1], err)
	}
	for _, p := range []string{"*/*/*", "*/*/x/*/none", "*/a/*/b/*/c/*"} {
		if m, _, w, err := expand(p); !errors.Is(err, ErrTooManyNames) || len(m) > 0 || w.listed > 2000 {
			t.Errorf("%s: %d matches after %d lists, %v", p, len(m), w.listed, err)
		}
	}
}

func TestNameForOddNames(t *testing.T) {
	if got := NameFor("x-{1}", Match{Texts: []string{"a b/ü"}}); got != "x-a-b--" {
		t.Errorf("got %q", got)
	}
}
