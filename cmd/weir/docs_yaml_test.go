package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/source/worktree"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// wrongInPart are the faults that a part of a configuration or of manifests
// cannot have, whatever is missing around it.
var wrongInPart = map[string]bool{
	"unknown-key": true, "unknown-field": true, "wrong-type": true, "bad-enum": true, "yaml-syntax": true, "duplicate-key": true, "bad-value": true,
	"exclusive": true, "out-of-range": true, "unknown-version": true, "unknown-annotation": true,
}

// TestDocumentedYAML reads the configurations and manifests that the pages show:
// every key and value in them must be one that weir takes. Part of one is put
// where it belongs.
func TestDocumentedYAML(t *testing.T) {
	checked := 0
	for _, page := range docPages(t) {
		content, err := os.ReadFile(filepath.Join(docsRoot, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlBlock.FindAllStringSubmatch(string(content), -1) {
			faults, ok := faultsOf(t, m[1])
			if !ok {
				continue
			}
			checked++
			for _, d := range faults {
				if wrongInPart[d.Code] {
					t.Errorf("%s: %s: %s\n%s", page, d.Code, d.Summary, m[1])
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("%d blocks were checked", checked)
	}
	for block, code := range map[string]string{
		"  dependOn: [canary]\n":        "unknown-key",
		"access: {anonymous: write}\n":  "bad-value",
		"  nodegroup: {forced: true}\n": "unknown-field",
		"apiVersion: weir.dev/v1alpha1\nkind: PoolOptions\nmetadata: {name: web}\nspecs: {}\n": "unknown-field",
	} {
		faults, ok := faultsOf(t, block)
		if !ok || !slices.ContainsFunc(faults, func(d diag.Diagnostic) bool { return d.Code == code }) {
			t.Errorf("%q: want %s, got %v", block, code, faults)
		}
	}
}

const (
	aSource = "sources:\n- name: fleet\n  url: fleet\n"
	aTarget = "targets:\n- name: prod\n  path: x\n  region: eu-west-1\n"
	aConfig = "apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: prod\n"
)

// faultsOf reads a block as what it looks like; ok is false for what is not
// weir's, such as a configuration of another program.
func faultsOf(t *testing.T, block string) (faults diag.List, ok bool) {
	t.Helper()
	top := regexp.MustCompile(`(?m)^[a-z]\w*:`).FindAllString(block, -1)
	has := func(key string) bool {
		for _, k := range top {
			if k == key {
				return true
			}
		}
		return false
	}
	switch {
	case has("kind:") && strings.Contains(block, "kind: Config\n"):
		return configFaults(t, block), true
	case has("kind:"):
		return manifestFaults(t, block), true
	case has("repos:"), len(top) == 0 && !strings.HasPrefix(block, "  "):
		return nil, false
	case len(top) > 0:
		text := aConfig + block
		if !has("sources:") {
			text += aSource
		}
		if !has("targets:") {
			text += aTarget
		}
		return configFaults(t, text), true
	case strings.Contains(block, "  autoScalingGroup:"), strings.Contains(block, "  nodegroup:"):
		return manifestFaults(t, "apiVersion: weir.dev/v1alpha1\nkind: PoolOptions\nmetadata: {name: web}\nspec:\n  poolRef: {kind: AWSMachinePool, name: web}\n"+block), true
	default:
		// Keys of a target, or of a source.
		ofTarget := configFaults(t, aConfig+aSource+aTarget+block)
		for _, d := range ofTarget {
			if d.Code == "unknown-key" {
				return configFaults(t, aConfig+aTarget+aSource+block), true
			}
		}
		return ofTarget, true
	}
}

func configFaults(t *testing.T, text string) diag.List {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, faults, err := config.Load(file, config.Env{Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

func manifestFaults(t *testing.T, text string) diag.List {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pool.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, _, rel, err := worktree.OpenPath(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := render.Render(t.Context(), tree, rel, workspace.Inputs{}.Options(true))
	if err != nil {
		t.Fatal(err)
	}
	return r.Diags
}
