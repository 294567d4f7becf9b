package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestPluginIsNotLinked fails if any package of weir links Go's plugin package.
// The linker then keeps all code that could be called by a plugin, which triples
// the size of weir and of every test binary.
func TestPluginIsNotLinked(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := strings.Fields(string(out))
	if slices.Contains(packages, "plugin") {
		t.Error("package plugin is linked. Run the tests with make, or set GOFLAGS=-tags=kustomize_disable_go_plugin_support")
	}
	if !slices.Contains(packages, "sigs.k8s.io/kustomize/api/krusty") {
		t.Error("go list does not name kustomize: this test compares nothing")
	}
}
