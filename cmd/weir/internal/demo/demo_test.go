package demo

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	examplerepo "github.com/weir-gitops/weir/example-repo"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/source"
)

// TestRepositoryWithAndWithoutGit makes the demo's repository both ways and
// reads it back as the daemon does.
func TestRepositoryWithAndWithoutGit(t *testing.T) {
	for name, path := range map[string]string{"with git": os.Getenv("PATH"), "without git": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			_, err := exec.LookPath("git")
			if name == "with git" && err != nil {
				t.Skip("git is not installed")
			}
			t.Setenv("PATH", path)
			dir := filepath.Join(t.TempDir(), "fleet")
			hasGit, err := makeRepository(t.Context(), dir, examplerepo.Files)
			if err != nil {
				t.Fatal(err)
			}
			if hasGit != (name == "with git") {
				t.Errorf("git found: %t", hasGit)
			}
			g, err := source.New(source.Config{Name: "demo", URL: dir}, source.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			snap, err := g.Latest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if snap.Subject != subject || snap.Ref != "refs/heads/main" {
				t.Errorf("commit %q on %s", snap.Subject, snap.Ref)
			}
			n := 0
			err = fs.WalkDir(examplerepo.Files, ".", func(name string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				n++
				want, err := fs.ReadFile(examplerepo.Files, name)
				if err != nil {
					return err
				}
				got, err := snap.Tree.ReadFile(name)
				if err != nil || string(got) != string(want) {
					t.Errorf("%s differs: %v", name, err)
				}
				return nil
			})
			if err != nil || n < 10 {
				t.Errorf("%d files, %v", n, err)
			}
			// A second time changes nothing.
			if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := makeRepository(t.Context(), dir, examplerepo.Files); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "README.md")); err != nil || string(got) != "mine" {
				t.Errorf("a kept demo was overwritten: %q, %v", got, err)
			}
		})
	}
}

func TestDemoWritesAValidConfiguration(t *testing.T) {
	d, err := New(t.Context(), t.TempDir(), examplerepo.Files)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.AWS.Run(ctx) }()
	c, faults, err := config.Load(d.Config, config.Env{Getenv: os.Getenv})
	if err != nil || c == nil {
		t.Fatalf("%v, %v", err, faults)
	}
	if c.Sources[0].URL != d.Repository || c.AWS.Endpoint != d.AWS.URL() {
		t.Errorf("source %s, endpoint %s", c.Sources[0].URL, c.AWS.Endpoint)
	}
	if _, err := c.Targets[0].Values(targetspec.ReadVars); err != nil {
		t.Error(err)
	}
	steps := d.NextSteps("weir")
	for _, want := range []string{d.Repository, d.Config, d.AWS.URL(), "maxSize: 12"} {
		if !strings.Contains(steps, want) {
			t.Errorf("next steps lack %s", want)
		}
	}
	patch, err := fs.ReadFile(examplerepo.Files, "pools/spot/awsmachinepool-patch.yaml")
	if err != nil || !strings.Contains(string(patch), "maxSize: 12") {
		t.Errorf("the command of the next steps finds nothing to change: %v", err)
	}
	cancel()
	if err := errors.Join(<-done, d.releasePage()); err != nil {
		t.Error(err)
	}
}

// TestDemosBesideEachOther: until its daemon starts, a demo keeps its page's address from all other
// processes.
func TestDemosBesideEachOther(t *testing.T) {
	const n = 4
	demos, errs := make([]*Demo, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		dir := t.TempDir()
		all.Go(func() { demos[i], errs[i] = New(t.Context(), dir, examplerepo.Files) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, d := range demos {
		c, faults, err := config.Load(d.Config, config.Env{Getenv: os.Getenv})
		if err != nil || c == nil {
			t.Fatalf("%v, %v", err, faults)
		}
		if l, err := net.Listen("tcp", c.Listen); err == nil {
			t.Errorf("demo %d: another process can listen at %s", i, c.Listen)
			_ = l.Close()
		}
		l, err := d.Listen(t.Context(), "tcp", c.Listen)
		if err != nil {
			t.Fatalf("demo %d: %v", i, err)
		}
		if err := errors.Join(l.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestAKeptConfigurationIsItsOwners: only addresses that are taken by now change.
func TestAKeptConfigurationIsItsOwners(t *testing.T) {
	dir := t.TempDir()
	d, err := New(t.Context(), dir, examplerepo.Files)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(d.Config)
	if err != nil {
		t.Fatal(err)
	}
	edited := "# mine\n" + strings.Replace(string(text), "interval: 5s", "interval: 7s", 1)
	edited = strings.Replace(edited, "endpoint: "+d.AWS.URL(), "endpoint: \""+d.AWS.URL()+"\"", 1)
	if err := os.WriteFile(d.Config, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	// The first demo still listens, so that the second needs other addresses.
	second, err := New(t.Context(), dir, examplerepo.Files)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(second.Config)
	if err != nil {
		t.Fatal(err)
	}
	c, faults, err := config.Load(second.Config, config.Env{Getenv: os.Getenv})
	if err != nil || c == nil {
		t.Fatalf("%v, %v", err, faults)
	}
	want := strings.Replace(edited, d.AWS.URL(), second.AWS.URL(), 1)
	want = strings.Replace(want, listenOf(edited), c.Listen, 1)
	if string(got) != want || second.AWS.URL() == d.AWS.URL() || c.AWS.Endpoint != second.AWS.URL() {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// The demo leaves a file alone that is unreadable or not its own.
	for _, kept := range []string{"a: [", "", "listen: 0.0.0.0:80\naws: {}\n", "aws: {endpoint: https://aws.example.com}\n"} {
		if err := os.WriteFile(d.Config, []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
		third, err := New(t.Context(), dir, examplerepo.Files)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(d.Config); err != nil || string(got) != kept {
			t.Errorf("%q became %q, %v", kept, got, err)
		}
		if err := third.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []*Demo{d, second} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// listenOf is the page's address in a configuration.
func listenOf(text string) string {
	_, after, _ := strings.Cut(text, "\nlisten: ")
	address, _, _ := strings.Cut(after, "\n")
	return address
}
