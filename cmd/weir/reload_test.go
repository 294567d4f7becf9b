package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
)

// A person sees the message about a refused configuration outside of the log, and it
// must be enough to mend the file.
func TestRefusedReloadNamesTheFirstFault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: lab\nsources: [{name: fleet, url: /srv/fleet}]\ntargets: [{name: lab, source: fleet, path: ., region: eu-central-1}]\nintervall: 5s\nlistenn: here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := reloadConfig(file, config.Env{Getenv: func(string) string { return "" }}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), file+":6:1: error: unknown key intervall") || !strings.Contains(err.Error(), " more)") {
		t.Errorf("the reload says %v", err)
	}
}
