package giteatest

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Clone is a working copy of a repository.
type Clone struct {
	tb        testing.TB
	dir, home string
}

// Clone creates a working copy that pushes as a user.
func (r *Repository) Clone(u *User) *Clone {
	u.tb.Helper()
	at, err := url.Parse(r.URL() + ".git")
	if err != nil {
		u.tb.Fatal(err)
	}
	at.User = url.UserPassword(u.Name, u.Password)
	c := &Clone{tb: u.tb, dir: u.tb.TempDir(), home: u.tb.TempDir()}
	c.Git("init", "--quiet", "--initial-branch=main")
	c.Git("config", "user.name", u.Name)
	c.Git("config", "user.email", u.Name+"@example.invalid")
	c.Git("remote", "add", "origin", at.String())
	return c
}

// Git runs a git command in the working copy, which must succeed.
func (c *Clone) Git(args ...string) string {
	c.tb.Helper()
	cmd := exec.CommandContext(c.tb.Context(), "git", args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.tb.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

// Write writes files. An empty content deletes a file.
func (c *Clone) Write(files map[string]string) {
	c.tb.Helper()
	for name, content := range files {
		file := filepath.Join(c.dir, filepath.FromSlash(name))
		if content == "" {
			if err := os.Remove(file); err != nil {
				c.tb.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			c.tb.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			c.tb.Fatal(err)
		}
	}
}

// Commit commits all written files, and returns the commit.
func (c *Clone) Commit(message string) string {
	c.tb.Helper()
	c.Git("add", "--all")
	c.Git("commit", "--quiet", "--allow-empty", "--message", message)
	return c.Git("rev-parse", "HEAD")
}

// Push commits all written files and pushes them to a branch.
func (c *Clone) Push(branch, message string) string {
	c.tb.Helper()
	sha := c.Commit(message)
	c.Git("push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
	return sha
}
