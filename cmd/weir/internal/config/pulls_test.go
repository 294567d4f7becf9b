package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parseForge(t *testing.T, ref, forge string) (*Config, string) {
	t.Helper()
	c, faults := Parse("w.yaml", []byte("apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nsources: [{name: s, url: u, ref: {"+ref+"}}]\nforges: [{"+forge+"}]\ntargets: [{name: t, region: eu-west-1}]\n"), env)
	var all []string
	for _, f := range faults {
		all = append(all, f.String())
	}
	return c, strings.Join(all, "\n")
}

func TestWhichPullRequestsArePlanned(t *testing.T) {
	const gitea = "type: gitea, url: 'https://h/o/r', tokenFile: t"
	for _, tc := range []struct {
		ref, forge string
		planned    bool
	}{
		{"", gitea, true},
		{"branch: main", gitea, true},
		{"tag: v1", gitea, false},
		{"semver: 1.x", gitea, false},
		{"", gitea + ", pullRequests: {plan: never}", false},
		{"", "type: generic, webhookSecretFile: f", false},
	} {
		c, faults := parseForge(t, tc.ref, tc.forge)
		if c == nil {
			t.Fatal(faults)
		}
		if got := c.PlansPulls(c.Forges[0]); got != tc.planned {
			t.Errorf("ref {%s}, forge {%s}: planned %t", tc.ref, tc.forge, got)
		}
	}
	c, _ := parseForge(t, "", gitea+", pullRequests: {forks: {allowBy: [label]}}")
	want := PullRequests{Plan: Always, Drafts: Plan, Forks: Forks{AllowBy: []string{Label}, Label: DefaultForkLabel}}
	if diff := cmp.Diff(want, c.Forges[0].PullRequests); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfPullRequests(t *testing.T) {
	for in, want := range map[string]string{
		"plan: sometimes":             "forges[0].pullRequests.plan: want always or never",
		"drafts: skip":                "forges[0].pullRequests.drafts: want plan or wait",
		"forks: {allowBy: [anybody]}": "forges[0].pullRequests.forks.allowBy[0]: want comment or label",
		"forks: {label: x}":           "forges[0].pullRequests.forks.label: the label allows nothing",
	} {
		c, faults := parseForge(t, "", "type: gitea, url: 'https://h/o/r', tokenFile: t, pullRequests: {"+in+"}")
		if c != nil || !strings.Contains(faults, want) {
			t.Errorf("%s: %s", in, faults)
		}
	}
	if c, faults := parseForge(t, "tag: v1", "type: gitea, url: 'https://h/o/r', tokenFile: t, pullRequests: {drafts: wait}"); c != nil || !strings.Contains(faults, "does not follow a branch") {
		t.Error(faults)
	}
	if c, faults := parseForge(t, "", "type: generic, webhookSecretFile: f, pullRequests: {plan: always}"); c != nil || !strings.Contains(faults, "no pull requests") {
		t.Error(faults)
	}
}
