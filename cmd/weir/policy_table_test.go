package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/coord/dynamo"
	"github.com/weir-gitops/weir/reconciler/iampolicy"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// TestPolicyOfTheTable: the daemon's own identity may do with the table that daemons share
// what a member does there, no role of a target may, and deploy has the same statement.
func TestPolicyOfTheTable(t *testing.T) {
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"pools.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none}\n"})
	repo.Commit("nothing yet")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "keys"), []byte("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shared := "keysFile: keys"
	policy := func(region, role string, args ...string) string {
		t.Helper()
		file := filepath.Join(dir, "weir.yaml")
		if err := os.WriteFile(file, []byte("apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: prod\nstateDir: state\nsources: [{name: pools, url: '"+repo.URL()+"'}]\n"+
			"targets: [{name: prod, source: pools, path: ., region: "+region+", accountID: '123456789012'"+role+"}]\n"+
			"coordination: {"+shared+", dynamodb: {table: weir, region: "+region+"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run(context.Background(), append([]string{"policy", "--config", file}, args...), surroundings{
			stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) string { return "" },
		})
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		return out.String() + errs.String()
	}
	type statement struct {
		Sid, Effect string
		Action      []string
		Resource    any
		Condition   iampolicy.Condition
	}
	statements := func(text string) []statement {
		t.Helper()
		var d struct{ Statement []statement }
		if err := json.NewDecoder(strings.NewReader(text)).Decode(&d); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return d.Statement
	}
	example, err := os.ReadFile(filepath.Join(deployDir, "coordination", "policy.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := statements(string(example))
	want[0].Resource = []any{want[0].Resource} // IAM takes both
	got := statements(policy("eu-west-1", "", "--daemon", "-o", "json"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deploy/coordination/policy.json and weir policy (-deploy +weir):\n%s", diff)
	}
	if diff := cmp.Diff(dynamo.Actions, got[0].Action); diff != "" {
		t.Errorf("what a member does and what the policy allows (-does +may):\n%s", diff)
	}
	if text := policy("eu-west-1", ""); !strings.Contains(text, "To share the table: the daemon's own identity") || strings.Contains(text, "sts:AssumeRole") {
		t.Errorf("for people:\n%s", text)
	}
	for _, access := range []string{"--plan", "--apply"} {
		if text := policy("eu-west-1", "", access, "-o", "json"); strings.Contains(text, "dynamodb") {
			t.Errorf("%s speaks of the table:\n%s", access, text)
		}
	}
	// The role's account need not be the daemon's.
	text := policy("cn-north-1", ", roleARN: 'arn:aws-cn:iam::123456789012:role/weir'", "--daemon", "-o", "json")
	if !strings.Contains(text, "note: no target has the account of the table") {
		t.Errorf("nothing says that the account is open:\n%s", text)
	}
	switch got := statements(text); {
	case len(got) != 2 || got[0].Sid != "AssumeRolesOfTargets" || got[1].Sid != "ShareTheTable":
		t.Errorf("statements %+v", got)
	case !cmp.Equal(got[1].Resource, any([]any{"arn:aws-cn:dynamodb:cn-north-1:*:table/weir"})):
		t.Errorf("the table is %v", got[1].Resource)
	}
	// Keys by KMS are for what is about this instance.
	shared = "kmsKeyARNs: ['arn:aws:kms:eu-west-1:123456789012:key/k']"
	if got := statements(policy("eu-west-1", "", "--daemon", "-o", "json")); len(got) != 2 || !cmp.Equal(got[0], statement{
		Sid: "EncryptSharedKeys", Effect: "Allow", Action: []string{"kms:Decrypt", "kms:Encrypt"}, Resource: []any{"arn:aws:kms:eu-west-1:123456789012:key/k"},
		Condition: iampolicy.Condition{"StringEquals": {"kms:EncryptionContext:weir.dev/instance": {"prod"}}},
	}) {
		t.Errorf("keys by KMS: %+v", got)
	}
	if text := policy("eu-west-1", ""); !strings.Contains(text, "To encrypt the keys that it shares and to share the table: the daemon's own identity") {
		t.Errorf("for people:\n%s", text)
	}
	if text := policy("eu-west-1", "", "--apply", "-o", "json"); strings.Contains(text, "kms:Encrypt") {
		t.Errorf("a target's role may use the keys that daemons share:\n%s", text)
	}
}
