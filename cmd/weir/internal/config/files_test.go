package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/targetspec"
)

// A daemon that starts with credentials which cannot work, or which others can
// read, says so with the line of the configuration.
func TestFilesWithCredentialsAreLookedAt(t *testing.T) {
	dir := t.TempDir()
	for name, file := range map[string]struct {
		mode    os.FileMode
		content string
	}{
		"good": {0o600, strings.Repeat("x", 32)}, "short": {0o600, "x\n"}, "empty": {0o600, "\n"},
		"open": {0o644, strings.Repeat("x", 32)}, "written": {0o620, strings.Repeat("x", 32)},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(file.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, file.mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		"good": "", "short": "too short", "empty": "holds no token", "open": "read by everybody", "written": "written by users other than its owner", "missing": "no such file",
	} {
		content := fmt.Sprintf("apiVersion: %s\nkind: Config\ninstance: prod\nsources: [{name: fleet, url: 'https://git.example.com/a/b.git'}]\n"+
			"targets: [{name: blue, region: eu-west-1}]\naccess:\n  tokens:\n  - {name: me, role: read, file: %s}\n", APIVersion, file)
		_, faults := Parse(filepath.Join(dir, "weir.yaml"), []byte(content), Env{Getenv: os.Getenv, Files: true})
		switch {
		case want == "" && len(faults) > 0:
			t.Errorf("%s: %v", file, faults)
		case want != "" && (len(faults) != 1 || faults.HasErrors() || !strings.Contains(faults[0].Summary, want) || faults[0].Line != 8 || faults[0].Detail == ""):
			t.Errorf("%s: want %q at line 8, got %v", file, want, faults)
		}
		if _, faults := Parse(filepath.Join(dir, "weir.yaml"), []byte(content), Env{Getenv: os.Getenv}); len(faults) > 0 {
			t.Errorf("%s, without looking: %v", file, faults)
		}
	}
}

func TestAMissingFileOfVariablesNamesItsLine(t *testing.T) {
	content := fmt.Sprintf("apiVersion: %s\nkind: Config\ninstance: prod\nsources: [{name: fleet, url: 'https://git.example.com/a/b.git'}]\n"+
		"targets:\n- name: blue\n  region: eu-west-1\n  varsFrom:\n  - file: nope.env\n", APIVersion)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	c, faults := Parse(file, []byte(content), Env{Getenv: os.Getenv})
	if c == nil {
		t.Fatal(faults)
	}
	if _, err := c.Targets[0].Values(targetspec.ReadVars); err == nil || !strings.HasPrefix(err.Error(), file+":9:") || !strings.Contains(err.Error(), "varsFrom") {
		t.Errorf("got %v", err)
	}
}
