// Package sourcetest provides temporary Git repositories for tests. They are served over smart HTTP in the
// test's process, and can be made to fail. It needs the git binary, and skips the test if that is missing.
package sourcetest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"
)

// Epoch is the committer's time of the first commit. Each later commit is a minute younger, so that object
// names are the same in every run.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Repo is a bare repository with a branch main. Its methods fail the test on errors. It is not safe for
// concurrent use.
type Repo struct {
	*Server
	t       testing.TB
	dir     string
	home    string
	branch  string
	orphan  bool
	commits int
	pending bytes.Buffer
}

// New creates an empty repository and starts its server. Both end with the test.
func New(t testing.TB) *Repo {
	t.Helper()
	return newRepo(t)
}

// NewSHA256 creates a repository with SHA-256 object names.
func NewSHA256(t testing.TB) *Repo {
	t.Helper()
	return newRepo(t, "--object-format=sha256")
}

func newRepo(t testing.TB, initArgs ...string) *Repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the git binary is not installed")
	}
	root := t.TempDir()
	r := &Repo{t: t, dir: filepath.Join(root, "fleet.git"), home: t.TempDir(), branch: "main"}
	args := append([]string{"init", "--quiet", "--bare", "--template=", "--initial-branch=main"}, initArgs...)
	r.run(root, nil, append(args, r.dir)...)
	r.configure("[http]\n\treceivepack = true\n[gc]\n\tauto = 0\n")
	r.Server = newServer(t, root, r.env())
	return r
}

// configure appends to the repository's configuration file, without starting a process.
func (r *Repo) configure(text string) {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.dir, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		r.t.Fatal(err)
	}
}

// env returns an environment without the user's own Git configuration.
func (r *Repo) env() []string {
	stamp := fmt.Sprintf("%d +0000", Epoch.Add(time.Duration(r.commits)*time.Minute).Unix())
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.home,
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Weir Test", "GIT_AUTHOR_EMAIL=test@weir.dev", "GIT_AUTHOR_DATE=" + stamp,
		"GIT_COMMITTER_NAME=Weir Test", "GIT_COMMITTER_EMAIL=test@weir.dev", "GIT_COMMITTER_DATE=" + stamp,
		"GIT_ALLOW_PROTOCOL=file:http:https",
	}
}

func (r *Repo) run(dir string, stdin []byte, args ...string) string {
	r.t.Helper()
	return strings.TrimSpace(string(r.output(dir, stdin, args...)))
}

// raw runs git in the repository and returns its unmodified output.
func (r *Repo) raw(args ...string) []byte {
	r.t.Helper()
	return r.output(r.dir, nil, args...)
}

func (r *Repo) output(dir string, stdin []byte, args ...string) []byte {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, r.env(), bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.Bytes()
}

// Dir returns the path of the bare repository.
func (r *Repo) Dir() string { return r.dir }

// URL returns the HTTP address of the repository.
func (r *Repo) URL() string { return r.base() + "/" + filepath.Base(r.dir) }

// Git runs git in the repository and returns its trimmed output.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	return r.run(r.dir, nil, args...)
}

// GitInput is like Git, with standard input.
func (r *Repo) GitInput(stdin []byte, args ...string) string {
	r.t.Helper()
	return r.run(r.dir, stdin, args...)
}

// Try is like Git, but a command that fails does not fail the test. It returns the output and the exit code.
func (r *Repo) Try(args ...string) (string, int) {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = r.dir, r.env()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// GitIn runs git in another directory, such as a clone or a worktree.
func (r *Repo) GitIn(dir string, args ...string) string {
	r.t.Helper()
	return r.run(dir, nil, args...)
}

// Write sets files for the next commit. A value that starts with "symlink:" is a link to the path after it,
// as in tree.Map.
func (r *Repo) Write(files map[string]string) {
	r.t.Helper()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		mode, text := "100644", files[name]
		if link, ok := strings.CutPrefix(text, "symlink:"); ok {
			mode, text = "120000", link
		}
		r.WriteMode(mode, name, text)
	}
}

// WriteMode sets a file with Git's octal mode: 100644, 100755 or 120000.
func (r *Repo) WriteMode(mode, name, content string) {
	fmt.Fprintf(&r.pending, "M %s inline %s\ndata %d\n%s\n", mode, quote(name), len(content), content)
}

// Submodule sets a submodule at the given commit for the next commit.
func (r *Repo) Submodule(name, commit string) {
	fmt.Fprintf(&r.pending, "M 160000 %s %s\n", commit, quote(name))
}

// Remove deletes files or directories in the next commit.
func (r *Repo) Remove(names ...string) {
	for _, name := range names {
		fmt.Fprintf(&r.pending, "D %s\n", quote(name))
	}
}

// Switch selects the branch for later commits. The first of them creates the branch if it does not exist.
func (r *Repo) Switch(branch string) { r.branch = branch }

// Orphan makes the next commit of the current branch a commit without parents.
func (r *Repo) Orphan() { r.orphan = true }

// Commit commits the files written since the last commit to the current branch, and returns the commit's
// name.
func (r *Repo) Commit(message string) string {
	r.t.Helper()
	ref := "refs/heads/" + r.branch
	var in bytes.Buffer
	stamp := Epoch.Add(time.Duration(r.commits) * time.Minute).Unix()
	fmt.Fprintf(&in, "commit %s\nmark :1\ncommitter Weir Test <test@weir.dev> %d +0000\ndata %d\n%s\n",
		ref, stamp, len(message), message)
	if parent := r.Tip(r.branch); parent != "" && !r.orphan {
		fmt.Fprintf(&in, "from %s\n", parent)
	} else {
		// Without this, fast-import would continue from the branch as it is.
		fmt.Fprintf(&in, "deleteall\n")
	}
	in.Write(r.pending.Bytes())
	in.WriteString("\nget-mark :1\n")
	if r.orphan {
		reset := fmt.Sprintf("reset %s\n", ref)
		in = *bytes.NewBuffer(append([]byte(reset), in.Bytes()...))
	}
	commit := r.run(r.dir, in.Bytes(), "fast-import", "--quiet", "--force", "--date-format=raw")
	r.pending.Reset()
	r.orphan = false
	r.commits++
	return commit
}

// Tip returns the commit of a branch. It is empty if the branch does not exist.
func (r *Repo) Tip(branch string) string {
	r.t.Helper()
	ref := "refs/heads/" + branch
	if data, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(ref))); err == nil {
		return strings.TrimSpace(string(data))
	}
	if _, err := os.Stat(filepath.Join(r.dir, "packed-refs")); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return r.Git("for-each-ref", "--format=%(objectname)", ref)
}

// Branch sets a branch to any commit, like a force-push.
func (r *Repo) Branch(name, commit string) {
	r.t.Helper()
	r.Git("update-ref", "refs/heads/"+name, commit)
}

// DeleteBranch deletes a branch.
func (r *Repo) DeleteBranch(name string) {
	r.t.Helper()
	r.Git("update-ref", "-d", "refs/heads/"+name)
}

// Tag sets a lightweight tag, which may exist, to an object.
func (r *Repo) Tag(name, object string) {
	r.t.Helper()
	r.Git("update-ref", "refs/tags/"+name, object)
}

// AnnotatedTag creates an annotated tag for an object, and returns the name of the tag object.
func (r *Repo) AnnotatedTag(name, object string) string {
	r.t.Helper()
	r.Git("tag", "--force", "--annotate", "--message", "tag "+name, name, object)
	return r.Git("rev-parse", "refs/tags/"+name)
}

// SetHead sets HEAD to a branch.
func (r *Repo) SetHead(branch string) {
	r.t.Helper()
	r.Git("symbolic-ref", "HEAD", "refs/heads/"+branch)
}

// quote returns a path for fast-import, with any bytes.
func quote(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(name); i++ {
		if c := name[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// WantDamage checks that err is an error that no caller can mistake for a missing file.
func WantDamage(t *testing.T, err error) {
	t.Helper()
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want an error other than fs.ErrNotExist", err)
	}
}
