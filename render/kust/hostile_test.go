package kust_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// noNetwork fails the test at the first request of the process, and takes away
// the programs that kustomize would start.
func noNetwork(t *testing.T) {
	t.Helper()
	was := http.DefaultTransport
	http.DefaultTransport = roundTripper(func(r *http.Request) (*http.Response, error) {
		t.Errorf("a build asked for %s", r.URL)
		return nil, errors.New("no network")
	})
	t.Cleanup(func() { http.DefaultTransport = was })
	dir := t.TempDir()
	script := "#!/bin/sh\necho ran >> " + dir + "/ran\nexit 1\n"
	for _, name := range []string{"git", "helm", "docker"} {
		if err := os.WriteFile(dir+"/"+name, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Cleanup(func() {
		if _, err := os.Stat(dir + "/ran"); !errors.Is(err, fs.ErrNotExist) {
			t.Error("a build started a program")
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRemoteReferencesAreRefused(t *testing.T) {
	noNetwork(t)
	forms := []string{
		"http://127.0.0.1:1/x.yaml", "HTTP://127.0.0.1:1/x.yaml", "https://127.0.0.1:1/a/b?ref=main", "https:x/y",
		"git::https://127.0.0.1:1/a/b", "ssh://git@127.0.0.1/a/b", "git@127.0.0.1:a/b.git", "git@127.0.0.1/a/b",
		"github.com/a/b", "GitHub.com:a/b", "file:///etc", "oci://127.0.0.1/a",
	}
	fields := []string{
		"resources: [%s]", "Resources: [%s]", "bases: [%s]", "components: [%s]", "crds: [%s]", "configurations: [%s]",
		"generators: [%s]", "transformers: [%s]", "validators: [%s]", "patches: [{path: %s}]",
		"patchesStrategicMerge: [%s]", "patchesJson6902: [{target: {kind: A, name: a}, path: %s}]", "replacements: [{path: %s}]",
		"configMapGenerator: [{name: a, files: [%s]}]", "configMapGenerator: [{name: a, files: [\"key=%s\"]}]",
		"configMapGenerator: [{name: a, envs: [%s]}]", "secretGenerator: [{name: a, env: %s}]", "secretGenerator: [{name: a, files: [%s]}]",
		"transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: a}, path: \"%s\"}']",
		"transformers: ['{apiVersion: builtin, kind: ReplacementTransformer, metadata: {name: a}, replacements: [{path: \"%s\"}]}']",
		"generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: a}, files: [\"k=%s\"]}']",
		"transformers: ['{apiVersion: builtin, kind: PatchStrategicMergeTransformer, metadata: {name: a}, paths: [\"%s\"]}']",
	}
	for _, field := range fields {
		for _, form := range forms {
			quoted := form
			if !strings.Contains(field, `"`) {
				quoted = `"` + form + `"`
			}
			text := fmt.Sprintf(field, quoted) + "\n"
			trees := map[string]tree.Map{
				"here":   {"kustomization.yaml": text},
				"nested": {"kustomization.yaml": "resources: [base]\n", "base/kustomization.yaml": text},
			}
			for where, m := range trees {
				r, err := kust.Build(context.Background(), m, ".", kust.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !hasCode(r, "remote-reference") {
					t.Errorf("%s, %s: %s", text, where, printDiags(r.Diags))
				}
				for _, d := range r.Diags {
					if d.Code == "remote-reference" && d.Line == 0 {
						t.Errorf("%s: no line: %s", text, d)
					}
				}
			}
		}
	}
}

func hasCode(r *kust.Result, code string) bool {
	for _, d := range r.Diags {
		if d.Code == code {
			return true
		}
	}
	return false
}

func TestLimits(t *testing.T) {
	m := tree.Map{"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": configMap, "b.yaml": strings.ReplaceAll(configMap, "name: a", "name: b")}
	for name, c := range map[string]struct {
		lim  kust.Limits
		code string
	}{
		"files":    {kust.Limits{Files: 2}, "too-large"},
		"bytes":    {kust.Limits{TotalBytes: 60}, "too-large"},
		"one file": {kust.Limits{FileBytes: 40}, "too-large"},
		"nodes":    {kust.Limits{Nodes: 20}, "too-large"},
		"depth":    {kust.Limits{Depth: 1}, "too-large"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := kust.Build(context.Background(), m, ".", kust.Options{Limits: c.lim})
			if err != nil {
				t.Fatal(err)
			}
			if !hasCode(r, c.code) {
				t.Errorf("want %s, got\n%s", c.code, printDiags(r.Diags))
			}
		})
	}
}

// TestTimeLimit reads from a source that takes longer than the build may.
func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := slow{tree.Map{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": configMap}, "a.yaml", time.Minute}
		r, err := kust.Build(context.Background(), m, ".", kust.Options{Limits: kust.Limits{Duration: 30 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		if !hasCode(r, "timeout") {
			t.Errorf("got\n%s", printDiags(r.Diags))
		}
	})
}

// failing is a tree with an object missing.
type failing struct {
	tree.Map
	at string
}

var errMissingObject = errors.New("object not found")

func (f failing) ReadFile(p string) ([]byte, error) {
	if p == f.at {
		return nil, errMissingObject
	}
	return f.Map.ReadFile(p)
}

func (f failing) Lookup(p string) (tree.Entry, error) {
	if "look "+p == f.at {
		return tree.Entry{}, errMissingObject
	}
	return f.Map.Lookup(p)
}

// A tree that cannot be read must never look like one that holds less.
func TestUnreadableTreeIsAnError(t *testing.T) {
	m := tree.Map{"o/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [a.yaml]\n", "b/a.yaml": configMap}
	for _, at := range []string{"o/kustomization.yaml", "b/a.yaml", "look b", "look o/kustomization.yml", "look b/kustomization.yaml"} {
		r, err := kust.Build(context.Background(), failing{m, at}, "o", kust.Options{})
		if !errors.Is(err, errMissingObject) {
			t.Errorf("%s: got result %v and error %v", at, r, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := kust.Build(ctx, m, "o", kust.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got error %v", err)
	}
}
