package config

import (
	"slices"
	"strings"
	"testing"
)

// Daemons of one instance are compared by what each of them must do alike, and by nothing that is a machine's own.
func TestCommonComparesWhatMustBeEqual(t *testing.T) {
	const text = `apiVersion: weir.dev/v1alpha1
kind: Config
instance: fleet
stateDir: /one
listen: 127.0.0.1:1
interval: 1m
sources: [{name: s, url: 'https://h/o/r', auth: {tokenFile: /one/token}}]
targets: [{name: t, source: s, path: t, region: eu-west-1, vars: {a: b}, prune: {enabled: true, limit: 1}}]
`
	common := func(change ...string) []string {
		t.Helper()
		c, faults := Parse("weir.yaml", []byte(strings.NewReplacer(change...).Replace(text)), Env{Getenv: func(string) string { return "" }})
		if c == nil {
			t.Fatal(faults)
		}
		return strings.Fields(c.Common())
	}
	was := common()
	if len(was) < 8 || !slices.IsSorted(was) {
		t.Fatalf("%q", was)
	}
	for _, change := range [][]string{
		{"/one\n", "/two\n", "127.0.0.1:1", "127.0.0.1:2", "/one/token", "/two/token"},
		{"interval: 1m", "interval: 60s", "listen", "publicURL: https://w.example\nlisten"},
	} {
		if now := common(change...); !slices.Equal(now, was) {
			t.Errorf("%q: %q, before %q", change, now, was)
		}
	}
	for section, change := range map[string][]string{
		"interval": {"interval: 1m", "interval: 2m"},
		"sources":  {"https://h/o/r", "https://h/o/other"},
		"targets":  {"limit: 1", "limit: 2"},
		"limits":   {"interval: 1m", "interval: 1m\nlimits: {targets: 3}"},
	} {
		now, differ := common(change...), []string{}
		for i := range was {
			if was[i] != now[i] {
				name, _, _ := strings.Cut(was[i], "=")
				differ = append(differ, name)
			}
		}
		if !slices.Equal(differ, []string{section}) {
			t.Errorf("%q changes %q", change, differ)
		}
	}
	for _, change := range [][]string{{"a: b", "a: c"}, {"path: t", "path: u"}, {"name: t", "name: other"}, {"enabled: true, ", ""}} {
		if slices.Equal(common(change...), was) {
			t.Errorf("%q changes nothing", change)
		}
	}
}
