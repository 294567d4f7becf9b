package config

import (
	"strings"
	"testing"
)

const pushing = "type: github, url: 'https://h/o/r', tokenFile: t"

func TestPush(t *testing.T) {
	c, faults := parseForge(t, "branch: main", pushing)
	if c == nil || c.Forges[0].Push.Enabled() || c.Forges[0].Reverts() || len(c.PushFiles()) != 0 {
		t.Fatalf("without a section weir pushes: %s", faults)
	}
	c, faults = parseForge(t, "branch: main", pushing+", push: {tokenFile: p, for: [revert]}")
	if c == nil || !c.Forges[0].Reverts() || len(c.PushFiles()) != 1 || !strings.HasSuffix(c.PushFiles()[0], "/p") {
		t.Fatalf("%+v, %s", c, faults)
	}
	if name, address := c.Forges[0].Push.By(); name != "weir" || address != "weir@localhost" {
		t.Error(name, address)
	}
	c, faults = parseForge(t, "", pushing+", push: {tokenFile: p, for: [revert], author: 'Pool Bot <bot@example.com>'}")
	if c == nil {
		t.Fatal(faults)
	}
	if name, address := c.Forges[0].Push.By(); name != "Pool Bot" || address != "bot@example.com" {
		t.Error(name, address)
	}
}

func TestFaultsOfPush(t *testing.T) {
	for in, want := range map[string]string{
		pushing + ", push: {for: [revert]}":                                                                 "forges[0].push.tokenFile: a file with a token that may push is required",
		pushing + ", push: {tokenFile: p}":                                                                  "forges[0].push.for: what may be pushed is required",
		pushing + ", push: {tokenFile: p, for: []}":                                                         "forges[0].push.for: what may be pushed is required",
		pushing + ", push: {tokenFile: p, for: [release]}":                                                  `forges[0].push.for[0]: "release" is not a purpose of pull requests of weir's own`,
		pushing + ", push: {tokenFile: p, for: [revert], force: true}":                                      "force",
		pushing + ", push: {tokenFile: t, for: [revert]}":                                                   "forges[0].push.tokenFile: the file is already used for another token",
		pushing + ", push: {tokenFile: p, for: [revert], author: weir}":                                     "forges[0].push.author: it is not a name with an address",
		pushing + `, push: {tokenFile: p, for: [revert], author: "a\nparent x <a@b>"}`:                      "forges[0].push.author: it is not a name with an address",
		"type: gitea, url: 'http://git.example.com/o/r', tokenFile: t, push: {tokenFile: p, for: [revert]}": "would be sent in plain text",
		"type: generic, webhookSecretFile: f, push: {tokenFile: p, for: [revert]}":                          "a generic forge has no pull requests",
	} {
		if c, faults := parseForge(t, "", in); c != nil || !strings.Contains(faults, want) || !strings.Contains(faults, "w.yaml:5:") {
			t.Errorf("%s: %s", in, faults)
		}
	}
	if c, faults := parseForge(t, "tag: v1", pushing+", pullRequests: {plan: never}, push: {tokenFile: p, for: [revert]}"); c != nil || !strings.Contains(faults, "does not follow a branch") {
		t.Error(faults)
	}
}
