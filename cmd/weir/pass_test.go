package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/statedir"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// TestASecondCommandShowsOrigins: it has its mirror in a directory of its own,
// which must be there as long as origins are looked up.
func TestASecondCommandShowsOrigins(t *testing.T) {
	emu, err := awsemu.New(awsemu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	aws := httptest.NewServer(emu)
	defer aws.Close()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"prod/pool.yaml": fleettest.Pool("web")})
	repo.Commit("first")
	dir, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	file := filepath.Join(dir, "weir.yaml")
	text := fmt.Sprintf("apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nstateDir: state\naws: {endpoint: %q}\nsources: [{name: s, url: %q}]\ntargets: [{name: prod, path: prod, region: eu-west-1}]\n", aws.URL, repo.URL())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := statedir.Open(filepath.Join(dir, "state", "commands"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }() // the lock goes with the process anyway
	var out, errs bytes.Buffer
	s := surroundings{stdout: &out, stderr: &errs, getenv: func(name string) string { return map[string]string{"HOME": dir}[name] }}
	if code := run(t.Context(), []string{"plan", "--config", file, "-o", "json"}, s); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs.String())
	}
	if !strings.Contains(out.String(), `"file":"prod/pool.yaml"`) && !strings.Contains(out.String(), `"file": "prod/pool.yaml"`) {
		t.Errorf("no origins in\n%s", out.String())
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
