package config

import (
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
			matches, err := g.Expand(m)
			if err != nil {
				t.Fatal(err)
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

func TestNameForOddNames(t *testing.T) {
	if got := NameFor("x-{1}", Match{Texts: []string{"a b/ü"}}); got != "x-a-b--" {
		t.Errorf("got %q", got)
	}
}
