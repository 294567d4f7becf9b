package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/targetspec"
)

const tableHead = "apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nsources: [{name: s, url: u}]\ntargets:\n"

// tabledTargets reads a configuration with these targets, nil where it has an error.
func tabledTargets(t *testing.T, targets string) ([]targetspec.Target, []string) {
	t.Helper()
	c, faults := Parse("/etc/weir/w.yaml", []byte(tableHead+targets), env)
	var all []string
	for _, f := range faults {
		all = append(all, f.String())
	}
	if c == nil {
		return nil, all
	}
	return c.Targets, all
}

const tabled = `
- name: '{1}'
  path: overlays/*
  region: eu-west-1
  network: {vpcID: vpc-0000000a}
  vars: {CLUSTER: 'c-{1}', TIER: dev, SIZE: small}
  varsFrom: [{file: 'values/{1}.env'}, {file: common.env}]
  kubeconfigFile: kube/{1}/config
  table:
    dev: {accountID: "111111111111", roleARN: "arn:aws:iam::111111111111:role/weir"}
    prod:
      region: eu-central-1
      accountID: "222222222222"
      roleARN: arn:aws:iam::222222222222:role/weir
      planRoleARN: arn:aws:iam::222222222222:role/plan
      allowedRoleARNs: [arn:aws:iam::222222222222:role/x]
      kmsKeyARNs: [arn:aws:kms:eu-central-1:222222222222:key/k]
      network: {vpcID: vpc-0000000d}
      vars: {TIER: prod, SELF: '{1}!'}
      kubeconfigFile: prod.kubeconfig
    bare:
`

func TestARowTakesThePlaceOfTheTargetsKeys(t *testing.T) {
	targets, faults := tabledTargets(t, tabled)
	if targets == nil {
		t.Fatal(faults)
	}
	base := &targets[0]
	prod := base.For(targetspec.Match{Path: "overlays/prod", Texts: []string{"prod"}})
	want := *base
	want.Table, want.Key, want.SSMPrefixes = nil, "", []string{"/weir"}
	want.Region, want.AccountID = "eu-central-1", "222222222222"
	want.RoleARN, want.PlanRoleARN = "arn:aws:iam::222222222222:role/weir", "arn:aws:iam::222222222222:role/plan"
	want.AllowedRoleARNs, want.KMSKeyARNs = []string{"arn:aws:iam::222222222222:role/x"}, []string{"arn:aws:kms:eu-central-1:222222222222:key/k"}
	want.Network = targetspec.Network{VPCID: "vpc-0000000d"}
	want.Vars = map[string]string{"CLUSTER": "c-prod", "TIER": "prod", "SIZE": "small", "SELF": "prod!"}
	want.VarsFrom = []targetspec.VarsFrom{{File: "/etc/weir/values/prod.env"}, {File: "/etc/weir/common.env"}}
	want.KubeconfigFile = "/etc/weir/prod.kubeconfig"
	if diff := cmp.Diff(&want, prod, withoutPlaces); diff != "" {
		t.Errorf("prod (-want +got):\n%s", diff)
	}
	bare := base.For(targetspec.Match{Path: "overlays/bare", Texts: []string{"bare"}})
	if bare.Region != "eu-west-1" || bare.RoleARN != "" || bare.Network.VPCID != "vpc-0000000a" || bare.Vars["CLUSTER"] != "c-bare" || bare.KubeconfigFile != "/etc/weir/kube/bare/config" {
		t.Errorf("an empty row: %+v", bare)
	}
	if base.Vars["CLUSTER"] != "c-{1}" || base.VarsFrom[0].File != "/etc/weir/values/{1}.env" {
		t.Errorf("the configuration itself was changed: %+v", base)
	}
	if rows := base.Rows(); len(rows) != 3 || rows[0].Region != "eu-west-1" || rows[1].AccountID != "111111111111" || rows[2].PlanRoleARN == "" {
		t.Errorf("rows: %+v", rows)
	}
}

// A directory has the row of exactly its own name: not that of one which looks alike.
func TestNoDirectoryComesToAnothersRow(t *testing.T) {
	targets, _ := tabledTargets(t, tabled)
	for _, name := range []string{"pro", "Prod", "prod ", "prod\n", "p rod", "", "{1}", "dev-prod", "prod/../prod"} {
		if got := targets[0].For(targetspec.Match{Path: "overlays/" + name, Texts: []string{name}}); got != nil {
			t.Errorf("%q has the row of account %s", name, got.AccountID)
		}
	}
	summary, detail := targets[0].Missing(targetspec.Match{Path: "overlays/new", Texts: []string{"new"}})
	if !strings.Contains(summary, `no row "new"`) || !strings.Contains(detail, `"new": {region: `) {
		t.Errorf("%s\n%s", summary, detail)
	}
	two, faults := tabledTargets(t, "- {name: '{1}.{2}', path: '*/x/*', key: '{2}/{1}', table: {b/a: {region: eu-west-1}}}\n")
	if two == nil {
		t.Fatal(faults)
	}
	if got := two[0].For(targetspec.Match{Texts: []string{"a", "b"}}); got == nil || got.Region != "eu-west-1" {
		t.Errorf("two wildcards: %+v", got)
	}
	if got := two[0].For(targetspec.Match{Texts: []string{"b", "a"}}); got != nil {
		t.Errorf("the key's order does not count: %+v", got)
	}
}

func TestWhatNeedsNoRowIsTheTargetItself(t *testing.T) {
	targets, faults := tabledTargets(t, "- {name: '{1}', path: '*', region: eu-west-1, vars: {A: b}}\n- {name: plain, path: p, region: eu-west-1, vars: {DIGITS: '[0-9]{3}'}}\n")
	if targets == nil {
		t.Fatal(faults)
	}
	if got := targets[0].For(targetspec.Match{Texts: []string{"x"}}); got != &targets[0] {
		t.Errorf("got %+v", got)
	}
	if got := targets[1].For(targetspec.Match{}); got != &targets[1] || got.Vars["DIGITS"] != "[0-9]{3}" {
		t.Errorf("a path without wildcards has its braces read: %+v", got)
	}
}

func TestFaultsOfATable(t *testing.T) {
	const head = "- name: '{1}'\n  path: '*'\n"
	for text, want := range map[string]string{
		head + "  table: {a: {region: Ireland}}\n": `w.yaml:8:23: error: targets[0].table.a.region: "Ireland" does not look like a region`,
		head + "  table: {a: {}}\n":                "w.yaml:8:11: error: targets[0].table.a.region: the AWS region is required",
		head + "  table: {}\n":                     "targets[0].table: it has no row",
		head + "  table:\n":                        "targets[0].table: it has no row",
		head + "  table: {a: {region: eu-west-1}, a: {region: eu-west-2}}\n":                                                   "targets[0].table.a is written twice",
		head + "  table: {'': {region: eu-west-1}}\n":                                                                          "which is never empty",
		head + "  table: {a: {regoin: eu-west-1}}\n":                                                                           "unknown key targets[0].table.a.regoin",
		head + "  table: {a: {region: eu-west-1, name: x}}\n":                                                                  "unknown key targets[0].table.a.name",
		head + "  table: {a: {region: eu-west-1, vars: {X: '{2}'}}}\n":                                                         "{2} refers to a wildcard that path \"*\" does not have",
		head + "  key: '{2}'\n  table: {a: {region: eu-west-1}}\n":                                                             "targets[0].key: {2} refers to a wildcard",
		head + "  key: a\n  table: {a: {region: eu-west-1}}\n":                                                                 "all directories would get the same row",
		head + "  key: '{1}'\n  region: eu-west-1\n":                                                                           "the key selects a row of a table, and no table is configured",
		head + "  accountID: '111111111111'\n  table: {a: {region: eu-west-1, roleARN: 'arn:aws:iam::222222222222:role/r'}}\n": "targets[0].table.a: roleARN is in account 222222222222, but accountID is 111111111111",
		head + "  table: {a: {region: eu-west-1, roleARN: me}}\n":                                                              `targets[0].table.a.roleARN: "me" is not the ARN of a role`,
		head + "  table: {a: {region: eu-west-1, kmsKeyARNs: [k]}}\n":                                                          "targets[0].table.a.kmsKeyARNs[0]",
		head + "  table: {a: {region: eu-west-1, kubeconfigFile: '{3}'}}\n":                                                    "targets[0].table.a.kubeconfigFile: {3} refers to",
		"- {name: t, path: p, table: {a: {region: eu-west-1}}}\n":                                                              "has no wildcard",
		"- {name: '{1}', path: '*', region: eu-west-1, vars: {X: '{2}'}}\n":                                                    "targets[0].vars.X: {2} refers to",
		"- {name: '{1}', path: '*', region: eu-west-1, varsFrom: [{file: '{2}.env'}]}\n":                                       "targets[0].varsFrom[0].file: {2} refers to",
	} {
		if got, faults := tabledTargets(t, text); got != nil || !strings.Contains(strings.Join(faults, "\n"), want) {
			t.Errorf("%s: want %q, got %q", text, want, faults)
		}
	}
}

func TestValuePathsBesideTheTarget(t *testing.T) {
	targets, faults := tabledTargets(t, "- {name: '{1}', path: 'o/*', region: eu-west-1, varsFrom: [{path: values.env}, {file: x}, {path: '../v/{1}.yaml'}]}\n- {name: 'f-{1}', path: 'o/*.yaml', region: eu-west-1, varsFrom: [{path: values.env}]}\n")
	if targets == nil {
		t.Fatal(faults)
	}
	got := targets[0].For(targetspec.Match{Path: "o/a b", Texts: []string{"a b"}}).ValuePaths("o/a b")
	if !slices.Equal(got, []string{"o/a b/values.env", "o/v/a b.yaml"}) {
		t.Errorf("beside a directory: %q", got)
	}
	if got := targets[1].ValuePaths("o/a.yaml"); !slices.Equal(got, []string{"o/values.env"}) {
		t.Errorf("beside a file: %q", got)
	}
}
