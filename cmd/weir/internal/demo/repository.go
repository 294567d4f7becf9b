package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The author of the demo's first commit. Later commits also have this author, unless the environment
// configures another one.
const (
	author      = "weir demo"
	authorEmail = "demo@weir.invalid"
	subject     = "the example fleet"
)

// makeRepository creates a Git work tree of files in dir, unless it already exists. It reports whether git
// is installed.
func makeRepository(ctx context.Context, dir string, files fs.FS) (hasGit bool, err error) {
	_, lookErr := exec.LookPath("git")
	hasGit = lookErr == nil
	if _, err := os.Stat(filepath.Join(dir, ".git")); !errors.Is(err, fs.ErrNotExist) {
		return hasGit, err
	}
	if err := copyFiles(dir, files); err != nil {
		return hasGit, err
	}
	if !hasGit {
		return false, writeRepository(dir, files)
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"symbolic-ref", "HEAD", "refs/heads/main"},
		{"config", "user.name", author},
		{"config", "user.email", authorEmail},
		{"config", "commit.gpgsign", "false"},
		{"add", "."},
		{"commit", "-q", "-m", subject},
	} {
		cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // fixed words
		cmd.Dir = dir
		cmd.Env = cleanEnv(os.Environ())
		if out, err := cmd.CombinedOutput(); err != nil {
			return true, fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(out))
		}
	}
	return true, nil
}

// cleanEnv removes variables that would make git use another repository, as inside a hook.
func cleanEnv(env []string) []string {
	out := env[:0:0]
	for _, v := range env {
		if !strings.HasPrefix(v, "GIT_") {
			out = append(out, v)
		}
	}
	return out
}

// copyFiles writes all files into dir, with their directories.
func copyFiles(dir string, files fs.FS) error {
	return fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if e.IsDir() {
			return os.MkdirAll(to, 0o755) //nolint:gosec // a work tree, readable as any other
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o644) //nolint:gosec // a work tree, readable as any other
	})
}
