package config

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/source/transport"
)

func TestWhichSourceARepositoryStandsInFor(t *testing.T) {
	pools := Source{Name: "pools", URL: "https://git.example.com/o/pools.git"}
	edge := Source{Name: "edge", URL: "https://git.example.com/o/edge"}
	dev := Source{Name: "dev", URL: "ssh://git@git.example.com:2222/o/pools"}
	targets := []targetspec.Target{{Name: "{1}", Source: "pools"}, {Name: "edge-{1}", Source: "edge"}, {Name: "dev-{1}", Source: "dev"}}
	const here = "0123456789ab"
	clone := func(url string) []string { return []string{here, transport.ID(url)} }
	for name, tc := range map[string]struct {
		sources       []Source
		names, is     []string
		want, message string
	}{
		"the only one":                      {[]Source{pools}, nil, nil, "pools", ""},
		"the only one, of no remote":        {[]Source{pools}, nil, []string{here}, "pools", ""},
		"a clone, reached in another way":   {[]Source{pools, edge}, nil, clone("git@git.example.com:o/edge.git"), "edge", ""},
		"a fork with the origin beside it":  {[]Source{pools, edge}, nil, append(clone("https://git.example.com/me/edge"), transport.ID(edge.URL)), "edge", ""},
		"another repository":                {[]Source{pools}, nil, clone("https://git.example.com/o/other"), "", "the repository is not a clone of any source"},
		"another one, meant all the same":   {[]Source{pools}, []string{"prod"}, clone("https://git.example.com/o/other"), "pools", ""},
		"several, and nothing tells":        {[]Source{pools, edge}, nil, []string{here}, "", "it is unclear which source you mean"},
		"two of one repository":             {[]Source{pools, dev}, nil, clone(pools.URL), "", "it is unclear which source you mean"},
		"two of one, told by a target":      {[]Source{pools, dev, edge}, []string{"edge-a"}, clone(edge.URL), "edge", ""},
		"a target that nothing gives":       {[]Source{edge}, []string{"prod"}, clone(edge.URL), "", "no source gives the targets prod"},
		"targets of different sources":      {[]Source{dev, edge}, []string{"edge-a", "dev-a"}, nil, "", "no source gives the targets edge-a, dev-a"},
		"a target that two may give, clone": {[]Source{pools, edge}, []string{"edge-a"}, clone(edge.URL), "edge", ""},
	} {
		c := &Config{Sources: tc.sources, Targets: targets}
		got, err := c.SourceOf(tc.names, tc.is)
		if wrong := AsSourceError(err); got.Name != tc.want || (wrong == nil) != (tc.message == "") || wrong != nil && (wrong.Message != tc.message || wrong.Hint == "") {
			t.Errorf("%s: %q, %v", name, got.Name, err)
		}
	}
}
