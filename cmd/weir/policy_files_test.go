package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the generated files")

// generated holds a file below deploy against what it is made from.
func generated(t *testing.T, name, want string) {
	t.Helper()
	file := filepath.Join("..", "..", "deploy", filepath.FromSlash(name))
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; make it with go test ./cmd/weir -run %s -update", err, t.Name())
	}
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("deploy/%s is not what it is made from; run go test ./cmd/weir -run %s -update (-want +have):\n%s", name, t.Name(), diff)
	}
}

// output is what a command prints on standard output.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(context.Background(), args, surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }})
	if code != exitOK {
		t.Fatalf("weir %s: exit %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// TestIAMFiles keeps the example policies below deploy up to date.
func TestIAMFiles(t *testing.T) {
	example := []string{"policy", "--account", "123456789012", "--region", "eu-west-1", "--instance", "prod", "-o", "json", "--ssm-prefix", "/weir",
		"--pass-role", "arn:aws:iam::123456789012:role/nodes.cluster-api-provider-aws.sigs.k8s.io", "--pass-role", "arn:aws:iam::123456789012:role/eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io"}
	for _, name := range []string{"plan", "apply"} {
		generated(t, "iam/"+name+".json", output(t, append(example, "--"+name)...))
	}
}
