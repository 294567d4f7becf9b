package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/gates/calendar"
	"github.com/weir-gitops/weir/reconciler/targetspec"
)

func parseTargets(t *testing.T, targets string) (*Config, string) {
	t.Helper()
	c, faults := Parse("w.yaml", []byte("apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nsources: [{name: s, url: u}]\ntargets:\n"+targets), env)
	var all []string
	for _, f := range faults {
		all = append(all, f.String())
	}
	return c, strings.Join(all, "\n")
}

func TestWindowsOfATarget(t *testing.T) {
	c, faults := parseTargets(t, "- {name: t, region: eu-west-1, windows: [{days: [mon], start: 09:00, end: 17:30, timezone: Europe/Berlin}, {kind: deny, start: '22:00', duration: 3h}]}\n")
	if c == nil {
		t.Fatal(faults)
	}
	got, err := c.Targets[0].Calendar()
	if err != nil || len(got) != 2 {
		t.Fatalf("windows: %v, %v", got, err)
	}
	if w := got[0]; w.Deny || w.Start != 540 || w.End != 1050 || w.Length != 0 || w.Zone.String() != "Europe/Berlin" || !cmp.Equal(w.Days, []time.Weekday{time.Monday}) {
		t.Errorf("first: %+v", w)
	}
	if w := got[1]; !w.Deny || w.Start != 1320 || w.Length != 3*time.Hour || w.Zone != time.UTC || w.Days != nil {
		t.Errorf("second: %+v", w)
	}
	if !calendar.Open(got, time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)) {
		t.Error("closed on a Monday at nine")
	}
}

func TestFaultsOfWindows(t *testing.T) {
	for in, want := range map[string]string{
		"kind: maybe":                  "w.yaml:6:49: error: targets[0].windows[0].kind: want allow or deny, got \"maybe\"",
		"days: [Monday]":               "windows[0].days[0]: want one of mon",
		"start: 9am":                   `"9am" is not a time of day`,
		"start: '24:00'":               "a day begins at 00:00",
		"timezone: Mars":               `"Mars" is not a time zone`,
		"timezone: Local":              `"Local" is not a time zone`,
		"timezone: ../../etc/passwd":   "is not a time zone",
		"end: '10:00', duration: 1h":   "give the end or the duration",
		"duration: 169h":               "must be between 1s and 168h",
		"duration: -1h":                "must be between",
		"start: '10:00', end: '10:00'": "ends when it begins",
		"start: '10:00', until: 1":     "unknown key",
	} {
		c, faults := parseTargets(t, "- {name: t, region: eu-west-1, windows: [{"+in+"}]}\n")
		if c != nil || !strings.Contains(faults, want) {
			t.Errorf("%s: want %q in %q", in, want, faults)
		}
	}
}

func TestFaultsOfDependencies(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"itself":           {"- {name: a, region: eu-west-1, dependsOn: [a]}\n", "w.yaml:6:44: error: targets[0].dependsOn[0]: the target a would wait for itself"},
		"each other":       {"- {name: a, region: eu-west-1, dependsOn: [b]}\n- {name: b, region: eu-west-1, dependsOn: [a]}\n", "w.yaml:6:43: error: targets[0].dependsOn: targets wait for each other: a waits for b waits for a"},
		"a ring":           {"- {name: x, region: eu-west-1, dependsOn: [a]}\n- {name: a, region: eu-west-1, dependsOn: [b]}\n- {name: b, region: eu-west-1, dependsOn: [c]}\n- {name: c, region: eu-west-1, dependsOn: [a]}\n", "a waits for b waits for c waits for a"},
		"through a star":   {"- {name: a-1, region: eu-west-1, dependsOn: [b]}\n- {name: b, region: eu-west-1, dependsOn: ['a-*']}\n", "wait for each other"},
		"unknown":          {"- {name: a, region: eu-west-1, dependsOn: [b]}\n", `targets[0].dependsOn[0]: there is no target "b"`},
		"no such wildcard": {"- {name: 'a-{1}', path: x/*, region: eu-west-1, dependsOn: ['b-{2}']}\n- {name: 'b-{1}', path: y/*, region: eu-west-1}\n", "{2} refers to a wildcard"},
		"no name":          {"- {name: a, region: eu-west-1, dependsOn: ['b c']}\n", "write the name of a target"},
	} {
		c, faults := parseTargets(t, tc.in)
		if c != nil || !strings.Contains(faults, tc.want) {
			t.Errorf("%s: want %q in %q", name, tc.want, faults)
		}
	}
}

func TestDependenciesOfExpandedTargets(t *testing.T) {
	c, faults := parseTargets(t, "- {name: canary, region: eu-west-1}\n"+
		"- {name: 'stage-{1}', path: stage/*, region: eu-west-1, dependsOn: [canary]}\n"+
		"- {name: 'prod-{1}', path: prod/*, region: eu-west-1, dependsOn: ['stage-{1}', prod-first, 'prod-second*']}\n")
	if c == nil {
		t.Fatal(faults)
	}
	names := []string{"canary", "stage-eu", "stage-first", "prod-eu", "prod-first", "prod-second-a", "prod-second-b", "stage-ü"}
	for self, tc := range map[string]struct {
		target int
		text   string
		want   []string
	}{
		"canary":        {0, "", nil},
		"stage-eu":      {1, "eu", []string{"canary"}},
		"prod-eu":       {2, "eu", []string{"stage-eu", "prod-first", "prod-second-a", "prod-second-b"}},
		"prod-first":    {2, "first", []string{"stage-first"}},
		"prod-second-a": {2, "second-a", []string{"stage-second-a", "prod-first"}},
	} {
		got := c.Targets[tc.target].Dependencies(self, targetspec.Match{Texts: []string{tc.text}}, names)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", self, diff)
		}
	}
}

func TestADemandOfWaves(t *testing.T) {
	c, faults := parseTargets(t, "- {name: t, region: eu-west-1, rollout: {required: true, minWaves: 3, maxMachines: 50}}\n")
	if c == nil || c.Targets[0].Rollout != (targetspec.Demand{Required: true, MinWaves: 3, MaxMachines: 50}) {
		t.Fatal(faults)
	}
	for in, want := range map[string]string{
		"minWaves: 3":                              "w.yaml:6:52: error: targets[0].rollout.minWaves: it demands nothing by itself",
		"maxMachines: 3":                           "targets[0].rollout.maxMachines: it demands nothing by itself",
		"required: true, minWaves: 0":              "w.yaml:6:68: error: targets[0].rollout.minWaves: 0 is out of range",
		"required: true, maxMachines: -1":          "targets[0].rollout.maxMachines: -1 is out of range",
		"required: true, maxMachines: 99999999999": "targets[0].rollout.maxMachines: 99999999999 is out of range",
		"required: maybe":                          "targets[0].rollout.required",
		"required: true, waves: 3":                 "unknown key",
	} {
		c, faults := parseTargets(t, "- {name: t, region: eu-west-1, rollout: {"+in+"}}\n")
		if c != nil || !strings.Contains(faults, want) {
			t.Errorf("%s: want %q in %q", in, want, faults)
		}
	}
}
