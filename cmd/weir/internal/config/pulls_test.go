package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/status/pulls"
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
	want := pulls.Policy{Plan: pulls.Always, Drafts: pulls.DraftsPlan, Forecast: pulls.Always, Forks: pulls.Forks{AllowBy: []string{pulls.ByLabel}, Label: pulls.DefaultForkLabel}}
	if diff := cmp.Diff(want, c.Forges[0].PullRequests); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfPullRequests(t *testing.T) {
	for in, want := range map[string]string{
		"plan: sometimes":             "forges[0].pullRequests.plan: want always or never",
		"forecast: maybe":             "forges[0].pullRequests.forecast: want always or never",
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

func TestTargetsThatAreAppliedTogetherArePlannedTogether(t *testing.T) {
	const plan = "planRoleARN: 'arn:aws:iam::111111111111:role/plan'"
	for in, fault := range map[string]bool{
		"{name: t, path: a, region: eu-west-1, " + plan + "}, {name: u, path: b, region: eu-west-1}":                                                        true,
		"{name: t, path: a, region: eu-west-1, " + plan + "}, {name: u, path: b, region: eu-west-1, " + plan + "}":                                          false,
		"{name: t, path: a, region: eu-west-1, " + plan + "}, {name: u, path: b, region: eu-west-2}":                                                        false,
		"{name: t, path: a, region: eu-west-1, accountID: '111111111111', " + plan + "}, {name: u, path: b, region: eu-west-1, accountID: '222222222222'}":  false,
		"{name: t, path: a, region: eu-west-1, " + plan + "}, {name: u, path: b, region: eu-west-1, allowedRoleARNs: ['arn:aws:iam::222222222222:role/x']}": false,
	} {
		for _, planned := range []string{"always", "never"} {
			text := "apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nstateDir: s\nsources: [{name: s, url: 'https://h/o/r'}]\n" +
				"forges: [{type: gitea, url: 'https://h/o/r', tokenFile: t, pullRequests: {plan: " + planned + "}}]\ntargets: [" + in + "]\n"
			_, faults := Parse("weir.yaml", []byte(text), Env{Getenv: func(string) string { return "" }})
			got := strings.Contains(fmt.Sprint(faults), "is applied together with")
			if want := fault && planned == "always"; got != want {
				t.Errorf("%s, %s: %v", planned, in, faults)
			}
		}
	}
}
