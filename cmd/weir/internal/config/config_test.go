package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/pulls"
)

// withoutPlaces leaves out where the configuration names a file.
var withoutPlaces = cmpopts.IgnoreFields(targetspec.VarsFrom{}, "At")

var env = Env{Getenv: func(name string) string { return map[string]string{"HOME": "/home/u"}[name] }}

const whole = `apiVersion: weir.dev/v1alpha1
kind: Config
instance: fleet
stateDir: state
listen: 0.0.0.0:80
publicURL: https://weir.example.com
access: {anonymous: read, withoutTLS: insecure}
interval: 2m
aws: {endpoint: embedded, shareOfLimits: 50}
keepVersions: 3
limits: {targets: 50, pools: 600, nodes: 70000}
sources:
- name: pools
  url: ./repo
  ref: {branch: main}
  interval: 10s
- name: other
  url: https://git.example.com/o/r.git
  auth: {username: u, passwordFile: secrets/pw}
  caFile: ca.pem
  proxy: http://proxy:3128
forges:
- {type: gitea, url: https://git.example.com/o/r, source: other, tokenFile: secrets/token}
targets:
- name: "{1}"
  source: pools
  path: overlays/*
  region: eu-west-1
  accountID: "000000000000"
  roleARN: arn:aws:iam::000000000000:role/weir
  allowedRoleARNs: [arn:aws:iam::000000000000:role/other]
  endpointURL: http://127.0.0.1:1
  network: {vpcID: vpc-00000001, subnetIDs: [subnet-00000001], securityGroupIDs: [sg-00000001]}
  vars: {N: 3, ON: yes, EMPTY: ~}
  varsFrom: [{file: vars.yaml}]
  mode: report
  prune: {enabled: true, limit: 30%}
  allowAdopt: true
  suspend: true
`

func TestParseWhole(t *testing.T) {
	c, faults := Parse("/etc/weir/weir.yaml", []byte(whole), env)
	if len(faults) != 0 {
		t.Fatalf("faults: %v", faults)
	}
	want := &Config{
		APIVersion: APIVersion, Kind: Kind, Instance: "fleet", StateDir: "/etc/weir/state", Listen: "0.0.0.0:80", PublicURL: "https://weir.example.com", Access: access.Access{Anonymous: access.AnonymousRead, WithoutTLS: access.Insecure},
		Interval: 2 * time.Minute, AWS: AWS{Endpoint: "embedded", ShareOfLimits: 50}, KeepVersions: 3, Limits: targetspec.Limits{Targets: 50, Pools: 600, Nodes: 70_000}, File: "/etc/weir/weir.yaml",
		Sources: []Source{
			{Name: "pools", URL: "/etc/weir/repo", Ref: source.Ref{Branch: "main"}, Interval: 10 * time.Second},
			{
				Name: "other", URL: "https://git.example.com/o/r.git", Interval: defaultSourceInterval,
				Settings: transport.Settings{Auth: transport.Auth{Username: "u", PasswordFile: "/etc/weir/secrets/pw"}, CAFile: "/etc/weir/ca.pem", Proxy: "http://proxy:3128"},
			},
		},
		Forges: []Forge{{Type: "gitea", URL: "https://git.example.com/o/r", Source: "other", TokenFile: "/etc/weir/secrets/token", PullRequests: pulls.Policy{Plan: pulls.Always, Drafts: pulls.DraftsPlan, Forecast: pulls.Always}}},
		Targets: []targetspec.Target{{
			Name: "{1}", Source: "pools", Path: "overlays/*", Region: "eu-west-1", AccountID: "000000000000",
			RoleARN:         "arn:aws:iam::000000000000:role/weir",
			AllowedRoleARNs: []string{"arn:aws:iam::000000000000:role/other"}, EndpointURL: "http://127.0.0.1:1",
			Network: targetspec.Network{VPCID: "vpc-00000001", SubnetIDs: []string{"subnet-00000001"}, SecurityGroupIDs: []string{"sg-00000001"}},
			Vars:    map[string]string{"N": "3", "ON": "yes", "EMPTY": ""}, VarsFrom: []targetspec.VarsFrom{{File: "/etc/weir/vars.yaml"}},
			Mode: targetspec.Report, Prune: targetspec.Prune{Enabled: true, Limit: targetspec.Limit{Percent: 30}}, AllowAdopt: true, Apply: targetspec.Always, Suspend: true,
		}},
	}
	if diff := cmp.Diff(want, c, withoutPlaces); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestParseDefaults(t *testing.T) {
	c, faults := Parse("/c/weir.yaml", []byte(`
apiVersion: weir.dev/v1alpha1
kind: Config
instance: a
sources: [{name: s, url: "https://h/o/r"}]
forges: [{type: github, url: "https://github.com/o/r", tokenFile: t}]
targets: [{name: t, region: us-gov-west-1}]
`), env)
	if len(faults) != 0 {
		t.Fatalf("faults: %v", faults)
	}
	if c.StateDir != "/home/u/.local/state/weir" || c.Listen != DefaultListen || c.Interval != defaultInterval {
		t.Errorf("defaults of the daemon: %q %q %v", c.StateDir, c.Listen, c.Interval)
	}
	if c.KeepVersions != model.DefaultKeepVersions {
		t.Errorf("kept versions: got %d", c.KeepVersions)
	}
	if want := (targetspec.Limits{Targets: 4_000, Pools: 10_000, Nodes: 400_000}); c.Limits != want {
		t.Errorf("limits: got %+v", c.Limits)
	}
	want := targetspec.Target{Name: "t", Source: "s", Path: ".", Region: "us-gov-west-1", Mode: targetspec.Correct, Apply: targetspec.Always, Prune: targetspec.Prune{Limit: targetspec.Limit{Percent: 20}}}
	if diff := cmp.Diff(want, c.Targets[0], withoutPlaces); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
	if c.Forges[0].Source != "s" {
		t.Errorf("the only source is the forge's: got %q", c.Forges[0].Source)
	}
	if got := defaultStateDir(Env{Root: true}); got != "/var/lib/weir" {
		t.Errorf("state directory of root: %s", got)
	}
}

// sources is a configuration with the given sources.
func sources(of ...string) string {
	text := "apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\ntargets: [{name: t, source: a, region: eu-west-1}]\nsources:\n"
	for _, s := range of {
		text += "- " + s + "\n"
	}
	return text
}

func TestParseFaults(t *testing.T) {
	const head = "apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nsources: [{name: s, url: u}]\n"
	target := func(s string) string { return head + "targets:\n- name: t\n  region: eu-west-1\n" + s }
	tests := map[string]struct {
		in   string
		want []string // each must be in the text of its own fault, in order
	}{
		"empty":           {"", []string{"w.yaml: error: the configuration is empty"}},
		"null":            {"# nothing\n---\n", []string{"the configuration is empty"}},
		"no yaml":         {"a: [\n", []string{"w.yaml:1: error: no valid YAML"}},
		"two documents":   {target("---\na: b\n"), []string{"more than one YAML document"}},
		"a list":          {"- a\n", []string{"the configuration must be a mapping, not a list"}},
		"nothing in it":   {"{}", []string{"apiVersion: want", "instance: a name", "kind: want", "sources: at least", "targets: at least"}},
		"a bad KMS key":   {target("  kmsKeyARNs: ['arn:aws:kms:eu-west-1:1:key/*']\n  ageKeyFiles: ['']\n"), []string{"w.yaml:8:16: error: targets[0].kmsKeyARNs[0]: ", "w.yaml:9:17: error: targets[0].ageKeyFiles[0]: a file is required"}},
		"unknown keys":    {target("  secret: x\n  prun: {}\n"), []string{"w.yaml:8:3: error: unknown key targets[0].secret", "w.yaml:9:3: error: unknown key targets[0].prun"}},
		"later keys":      {target("") + "windows: 3\n", []string{"unknown key windows"}},
		"no version kept": {target("") + "keepVersions: 0\n", []string{`w.yaml:8:15: error: keepVersions: "0" is not a valid number of versions`}},
		"limit of none":   {target("") + "limits: {pools: 0}\n", []string{`w.yaml:8:17: error: limits.pools: "0" is not a valid limit: write a whole number from 1`}},
		"limit in words":  {target("") + "limits: {nodes: all}\n", []string{`limits.nodes: "all" is not a valid limit`}},
		"limit too high":  {target("") + "limits: {targets: 1000000001}\n", []string{`limits.targets: "1000000001" is not a valid limit`}},
		"unknown limit":   {target("") + "limits: {clusters: 3}\n", []string{"unknown key limits.clusters"}},
		"above the quota": {target("") + "keepVersions: 10000\n", []string{"write 1 to 9998"}},
		"twice":           {target("  mode: report\n  mode: correct\n"), []string{"w.yaml:9:3: error: targets[0].mode is written twice"}},
		"wrong types":     {target("  suspend: maybe\n  vars: [a]\n  network: x\n  allowedRoleARNs: y\n"), []string{"targets[0].allowedRoleARNs must be a list, not text", "targets[0].network must be a mapping, not text", "targets[0].suspend must be true or false, not text", "targets[0].vars must be a mapping, not a list"}},
		"alias":           {target("  vars: &v {}\n"), []string{"anchors and aliases"}},
		"limits":          {target("  prune: {limit: 0}\n"), []string{"is not a valid limit"}},
		"limit above 100": {target("  prune: {limit: 101%}\n"), []string{"above 100%"}},
		"duration":        {target("") + "interval: 5\n", []string{`interval is not a duration: "5"`}},
		"negative":        {target("") + "interval: -5s\n", []string{"interval: must be positive"}},
		"instance":        {strings.Replace(target(""), "instance: a", "instance: A_b", 1), []string{"does not match"}},
		"listen":          {target("") + "listen: here\n", []string{"is not an address"}},
		"public path":     {target("") + "publicURL: https://weir.example.com/weir\n", []string{"publicURL"}},
		"public user":     {target("") + "publicURL: https://u:p@weir.example.com\n", []string{"is no such address"}},
		"public scheme":   {target("") + "publicURL: weir.example.com\n", []string{"is no such address"}},
		"port":            {target("") + "listen: 127.0.0.1:99999\n", []string{"is not a port"}},
		"endpoint":        {target("  endpointURL: ftp://x\n") + "aws: {endpoint: here}\n", []string{"endpointURL", "aws.endpoint"}},
		"secret in url":   {target("  endpointURL: http://u:hunter2@h\n"), []string{`"…@h" is not an http(s) URL`}},
		"unknown source":  {target("  source: nope\n"), []string{`there is no source "nope"`}},
		"same name":       {target("- {name: t, region: eu-west-1}\n"), []string{`"t" is the name of targets[0] already`}},
		"bad name":        {target("- {name: a b, region: eu-west-1}\n"), []string{"use letters"}},
		"path out":        {target("  path: ../x\n"), []string{"is not a path below"}},
		"path with class": {target("  path: a/[bc]\n"), []string{"the wildcards of a path"}},
		"unnamed star":    {target("  path: a/*\n"), []string{"the name needs {1}"}},
		"name without":    {head + "targets: [{name: 'a{2}', region: eu-west-1}]\n", []string{"{2} refers to a wildcard"}},
		"region":          {head + "targets: [{name: a}, {name: b, region: Ireland}]\n", []string{"region is required", "does not look like"}},
		"account":         {target("  accountID: 12\n"), []string{"is not 12 digits"}},
		"role":            {target("  roleARN: x\n  allowedRoleARNs: ['arn:aws:iam::1:role/*']\n"), []string{"roleARN", "allowedRoleARNs[0]"}},
		"role elsewhere":  {target("  accountID: \"000000000001\"\n  roleARN: arn:aws:iam::000000000002:role/r\n"), []string{"the role is in account 000000000002"}},
		"mode":            {target("  mode: off\n"), []string{"want correct or report"}},
		"network":         {target("  network: {vpcID: a, subnetIDs: [b], securityGroupIDs: [c]}\n"), []string{"VPC", "subnet", "security group"}},
		"var name":        {target("  vars: {a-b: c}\n"), []string{"a variable's name"}},
		"sources": {
			"apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\ntargets: [{name: t, source: s, region: eu-west-1}]\nsources:\n- {name: s, url: u, ref: {branch: a, tag: b}}\n- {name: s, interval: -1s, auth: {tokenFile: a, passwordFile: b}, proxy: 'gopher://p'}\n",
			[]string{"give one of", `is the name of sources[0]`, "url is required", "must be positive", "give tokenFile", "passwordFile needs", "is not an http"},
		},
		"source urls": {sources("{name: a, url: 'https://bot:hunter2@h/o/r'}", "{name: b, url: 'git://h/o/r'}", "{name: c, url: 'ext::sh'}"), []string{"contains credentials", "has no encryption", "transport helpers"}},
		"source refs": {
			sources("{name: a, url: 'https://h/o/r', ref: {semver: 'not a range'}}", "{name: b, url: 'https://h/o/r', ref: {name: main}}", "{name: c, url: 'https://h/o/r', ref: {commit: abc}}", "{name: d, url: 'https://h/o/r', ref: {semver: 1.x, tag: v1}}"),
			[]string{"not a range of versions", "name of a ref in full", "full object name", "give one of"},
		},
		"ssh": {
			sources("{name: a, url: 'git@h:o/r'}", "{name: b, url: 'ssh://h/o/r', auth: {tokenFile: t}}", "{name: c, url: 'https://h/o/r', auth: {sshKeyFile: k, knownHostsFile: h}}", "{name: d, url: 'ssh://h/o/r', caFile: c, auth: {sshKeyFile: k, knownHostsFile: h}}"),
			[]string{"a private key is required", "host keys are required", "tokens and passwords are for https", "are for ssh urls", "are for https"},
		},
		"credentials": {
			sources("{name: a, url: 'https://h/o/r', auth: {tokenFile: t, bearerTokenFile: b}}", "{name: b, url: 'https://h/o/r', auth: {githubApp: {appID: 1}}}", "{name: c, url: 'https://h/o/r', clientCert: {certFile: c}}",
				"{name: d, url: /somewhere, auth: {tokenFile: t}}", "{name: e, url: 'https://h/o/r', proxy: 'http://u:hunter2@p'}", "{name: f, url: 'https://h/o/r', proxyAuth: {username: u, passwordFile: p}}", "{name: g, url: 'https://h/o/r', proxy: 'http://p', proxyAuth: {username: u}}"),
			[]string{"give tokenFile", "appID and privateKeyFile", "go together", "without credentials", "contains credentials", "there is no proxy", "username and passwordFile are required"},
		},
		"verify": {
			sources("{name: a, url: 'https://h/o/r', verify: {mode: commit}}", "{name: b, url: 'https://h/o/r', verify: {mode: both, ssh: {allowedSignersFile: s}}}", "{name: c, url: 'https://h/o/r', ref: {branch: main}, verify: {mode: tag, ssh: {allowedSignersFile: s}}}", "{name: d, url: 'https://h/o/r', verify: {pgp: {keyFiles: ['']}}}"),
			[]string{"or no signature is accepted", "must be commit", "needs a ref that names one", "verify.pgp.keyFiles[0]: a file is required"},
		},
		"a forge without a token": {
			sources("{name: a, url: 'https://github.com/o/r', auth: {githubApp: {appID: 1, privateKeyFile: k}}}", "{name: b, url: 'https://github.com/o/r'}", "{name: c, url: 'https://github.com/o/other', auth: {githubApp: {appID: 1, privateKeyFile: k}}}") +
				"forges:\n- {type: github, url: 'https://github.com/o/r', source: a}\n- {type: github, url: 'https://github.com/o/r', source: b}\n- {type: github, url: 'https://github.com/o/r', source: c}\n",
			[]string{"forges[1].tokenFile", "forges[2].tokenFile"},
		},
		"webhooks": {
			target("") + "forges:\n- {type: generic, source: s, tokenFile: t}\nnotify:\n- {url: 'ftp://h', secretFile: f}\n- {url: 'https://u:p@h/x'}\n- {url: 'https://h/x#a', secretFile: f, events: [nothing-such]}\n- {url: 'https://h/y', secretFile: f}\n- {url: 'https://h/y', secretFile: f}\n",
			[]string{"needs no token", "webhookSecretFile: a file", "notify[0].url: this is not", "notify[1].secretFile", "contains credentials", "notify[2].url: this is not", "unknown kind of event", "notify[3] has the same"},
		},
		"forges": {
			target("") + "forges:\n- {type: svn, url: 'https://h', source: x}\n- {type: gitea, url: 'https://h/o/r', source: x, tokenFile: t}\n",
			[]string{"want github", "is not the address", "no source", "access token", "no source", "has forges[0]"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, faults := Parse("w.yaml", []byte(tc.in), env)
			if c != nil {
				t.Error("a configuration with faults was given out")
			}
			var all []string
			for _, f := range faults {
				all = append(all, f.String())
			}
			text := strings.Join(all, "\n")
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("want %q in\n%s", want, text)
				}
			}
			if len(faults) != len(tc.want) {
				t.Errorf("want %d faults, got %d:\n%s", len(tc.want), len(faults), text)
			}
			if strings.Contains(text, "hunter2") {
				t.Errorf("a secret is shown:\n%s", text)
			}
		})
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, faults := Parse("w.yaml", in, env)
		if (c == nil) != faults.HasErrors() {
			t.Fatalf("configuration %v with faults %v", c, faults)
		}
	})
}

// The share of AWS's limits is a percentage, all of it where nothing is said.
func TestShareOfLimits(t *testing.T) {
	for text, want := range map[string]float64{"": 1, "{}": 1, "{shareOfLimits: 25}": 0.25, "{shareOfLimits: 1}": 0.01, "{shareOfLimits: -1}": 0, "{shareOfLimits: 101}": 0, "{shareOfLimits: much}": 0} {
		c, faults := Parse("/etc/weir/w.yaml", []byte(tableHead+"- {name: a, path: a, region: eu-west-1}\naws: "+text+"\n"), env)
		switch {
		case want == 0 && (len(faults) != 1 || !strings.Contains(faults[0].String(), "w.yaml:7:")):
			t.Errorf("%s: %v", text, faults)
		case want != 0 && (c == nil || c.AWS.Share() != want):
			t.Errorf("%s: %+v %v", text, c, faults)
		}
	}
}
