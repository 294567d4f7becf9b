package deploy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestContainerfile reads what the image promises. Building the image needs a registry; the tests below build and run its program as the image does.
func TestContainerfile(t *testing.T) {
	raw, err := os.ReadFile("container/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(strings.ReplaceAll(string(raw), "\\\n", " "), "")
	stages := regexp.MustCompile(`(?m)^FROM .*$`).FindAllString(text, -1)
	if len(stages) != 2 || stages[1] != "FROM scratch" || !strings.Contains(stages[0], "--platform=$BUILDPLATFORM") {
		t.Fatalf("stages %q", stages)
	}
	last := text[strings.Index(text, stages[1]):]
	for _, want := range []string{
		"USER 65532:65532\n", "COPY --from=build --chown=65532:65532 /out/var/lib/weir /var/lib/weir\n", `ENTRYPOINT ["/usr/bin/weir"]`,
		`CMD ["run", "--config", "/etc/weir/weir.yaml"]`, "/etc/ssl/certs/ca-certificates.crt", "org.opencontainers.image.source=", "org.opencontainers.image.revision=",
		"org.opencontainers.image.licenses=\"Apache-2.0\"", "EXPOSE 8344",
	} {
		if !strings.Contains(last, want) {
			t.Errorf("the image lacks %q", want)
		}
	}
	if strings.Contains(last, "RUN ") {
		t.Error("there is no shell in the image to run something with")
	}
	// As a release is built, with the Go that the module asks for.
	for _, want := range []string{"CGO_ENABLED=0", "-tags kustomize_disable_go_plugin_support", "-trimpath", "-buildvcs=false", "-s -w -buildid="} {
		if !strings.Contains(text, want) {
			t.Errorf("it is not built with %s", want)
		}
	}
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	wanted := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))[1]
	if !strings.Contains(text, "ARG GO_VERSION="+wanted+"\n") {
		t.Errorf("it is not built with Go %s", wanted)
	}
	license, err := os.ReadFile("../LICENSE")
	if err != nil || !strings.Contains(string(license), "Apache License") {
		t.Errorf("the licence is another one, %v", err)
	}
}

// TestBuildContext: nothing that the binary is made from is kept from the build.
func TestBuildContext(t *testing.T) {
	raw, err := os.ReadFile("../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, line)
		}
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,Standard,Module,GoFiles,EmbedFiles", "./cmd/weir")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := []string{"go.mod", "go.sum"}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir                 string
			Module              struct{ Main bool }
			GoFiles, EmbedFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if rel, err := filepath.Rel(root, p.Dir); p.Module.Main && err == nil {
			for _, f := range slices.Concat(p.GoFiles, p.EmbedFiles) {
				files = append(files, filepath.ToSlash(filepath.Join(rel, f)))
			}
		}
	}
	if len(files) < 100 {
		t.Fatalf("the binary is made of %d files", len(files))
	}
	for _, f := range files {
		for _, p := range patterns {
			if ignored(p, f) {
				t.Errorf("%s keeps %s from the build", p, f)
			}
		}
	}
	for _, f := range []string{"bin/weir", ".git/config", "status/comments/testdata/x.golden", "render/render_test.go", "README.md"} {
		if !slices.ContainsFunc(patterns, func(p string) bool { return ignored(p, f) }) {
			t.Errorf("%s goes into the build", f)
		}
	}
}

// ignored is the rule of .dockerignore: a pattern is for a path from the root, or for
// any of its ends after **/, and for all that is below.
func ignored(pattern, file string) bool {
	parts := strings.Split(file, "/")
	below, anywhere := strings.CutPrefix(pattern, "**/")
	for from := range parts {
		if from > 0 && !anywhere {
			break
		}
		for to := from + 1; to <= len(parts); to++ {
			if ok, err := path.Match(below, strings.Join(parts[from:to], "/")); err == nil && ok {
				return true
			}
		}
	}
	return false
}

// TestRunsAsInTheImage: the static binary as the user 65532 in a root that holds
// nothing else and cannot be written, but for its state.
func TestRunsAsInTheImage(t *testing.T) {
	if testing.Short() {
		t.Skip("with -short the binary is not built")
	}
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only root on Linux may make a root directory of its own")
	}
	for _, tool := range []string{"unshare", "mount", "chroot", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("mounts of its own are not allowed here: %v %s", err, out)
	}
	root := t.TempDir()
	for _, dir := range []string{"usr/bin", "etc/weir", "var/lib/weir"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil { //nolint:gosec // somebody else runs in it
			t.Fatal(err)
		}
	}
	for dir := root; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // somebody else runs in it
			t.Fatal(err)
		}
	}
	copyProgram(t, filepath.Join(root, "usr/bin/weir"))
	repository(t, filepath.Join(root, "srv/fleet"))
	if err := os.WriteFile(filepath.Join(root, "etc/weir/weir.yaml"), []byte(imageConfig), 0o644); err != nil { //nolint:gosec // somebody else reads it
		t.Fatal(err)
	}
	const script = `set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount -t tmpfs -o mode=0700,uid=65532,gid=65532 state "$1/var/lib/weir"
mount -o remount,bind,ro "$1"
if touch "$1/probe" 2>/dev/null; then echo "the root can be written" >&2; exit 9; fi
root=$1
shift
exec env -i PATH="$PATH" AWS_EC2_METADATA_DISABLED=true chroot --userspec=65532:65532 "$root" /usr/bin/weir "$@"`
	for name, args := range map[string][]string{"daemon": {"run", "--config", "/etc/weir/weir.yaml", "--log-format", "json"}, "demo": {"demo"}} {
		t.Run(name, func(t *testing.T) {
			mustConverge(t, exec.CommandContext(t.Context(), "unshare", append([]string{"--mount", "sh", "-c", script, "sh", root}, args...)...)) //nolint:gosec // the test's own script
		})
	}
}

// TestRunsInPodman builds the image's last stage, and runs everything that weir starts as the image's user, without
// capabilities, over a root that cannot be written, with few files and processes.
func TestRunsInPodman(t *testing.T) {
	if testing.Short() {
		t.Skip("with -short the binary is not built")
	}
	for _, tool := range []string{"podman", "runc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	dir := t.TempDir()
	podman := func(args ...string) *exec.Cmd {
		global := []string{"--root", filepath.Join(dir, "storage"), "--runroot", filepath.Join(dir, "run"), "--runtime", "runc", "--storage-driver=vfs", "--cgroup-manager=cgroupfs"}
		return exec.CommandContext(t.Context(), "podman", append(global, args...)...) //nolint:gosec // the test's own arguments
	}
	if out, err := podman("info").CombinedOutput(); err != nil {
		t.Skipf("podman does not work here: %v\n%s", err, out)
	}
	writeImageContext(t, dir)
	if out, err := podman("build", "--layers=false", "--quiet", "--tag", "weir", dir).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	inImage := func(options []string, args ...string) *exec.Cmd {
		run := []string{
			"run", "--rm", "--network=host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--read-only", "--read-only-tmpfs=false",
			"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "65532", "--env", "AWS_EC2_METADATA_DISABLED=true",
		}
		return podman(slices.Concat(run, options, []string{"weir"}, args)...)
	}
	fleet := []string{"--volume", filepath.Join(dir, "fleet") + ":/srv/fleet:ro", "--volume", filepath.Join(dir, "weir.yaml") + ":/etc/weir/weir.yaml:ro"}

	out, err := inImage(fleet, "validate", "/srv/fleet/overlays/dev-eu", "--var", "CLUSTER_NAME=demo", "--var", "KUBERNETES_VERSION=v1.34.1", "--var", "AWS_REGION=eu-west-1").CombinedOutput()
	if err != nil || string(out) != "2 pools valid\n" {
		t.Errorf("validate, which renders in a process of its own: %v\n%s", err, out)
	}
	t.Run("daemon", func(t *testing.T) { mustConverge(t, inImage(fleet)) })
	t.Run("demo", func(t *testing.T) { mustConverge(t, inImage(nil, "demo")) })
}

// writeImageContext writes what the image's last stage is built from, without the stage that compiles, and a fleet with
// a configuration.
func writeImageContext(t *testing.T, dir string) {
	t.Helper()
	raw, err := os.ReadFile("container/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, found := strings.Cut(string(raw), "\nFROM scratch\n")
	if !found {
		t.Fatal("the Containerfile has another last stage")
	}
	for _, d := range []string{"out/usr/bin", "out/var/lib/weir", "out/etc/ssl/certs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil { //nolint:gosec // somebody else runs in it
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"Containerfile": "FROM scratch AS build\nCOPY out /out\nFROM scratch\n" + last, "out/etc/ssl/certs/ca-certificates.crt": "", "weir.yaml": imageConfig,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // somebody else reads it
			t.Fatal(err)
		}
	}
	copyProgram(t, filepath.Join(dir, "out/usr/bin/weir"))
	repository(t, filepath.Join(dir, "fleet"))
}

// imageConfig is the configuration of a daemon in the image, with the fleet at /srv/fleet.
const imageConfig = `apiVersion: weir.dev/v1alpha1
kind: Config
instance: image
stateDir: /var/lib/weir
listen: 127.0.0.1:0
aws: {endpoint: embedded}
sources: [{name: fleet, url: /srv/fleet, ref: {branch: main}}]
targets:
- name: dev-eu
  source: fleet
  path: overlays/dev-eu
  region: eu-west-1
  vars: {CLUSTER_NAME: demo, KUBERNETES_VERSION: v1.34.1, AWS_REGION: eu-west-1}
`

var program = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "weir-program-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	build := exec.Command("go", "build", "-tags", "kustomize_disable_go_plugin_support", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(dir, "weir"), "./cmd/weir") //nolint:noctx,gosec // several tests share it
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "weir"))
})

// copyProgram writes the binary as the image has it.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	content, err := program()
	if err == nil {
		err = os.WriteFile(to, content, 0o755) //nolint:gosec // somebody else runs it
	}
	if err != nil {
		t.Fatal(err)
	}
}

// mustConverge starts a weir that prints the address of its page first, waits until it is ready and a pool is running,
// and stops it.
func mustConverge(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var log strings.Builder
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	first, err := lines.ReadString('\n')
	if err != nil {
		_ = cmd.Wait() // the log says more
		t.Fatalf("it does not start: %v\n%s", err, &log)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, lines) // until the process ends
	}()
	page := strings.TrimSpace(first)
	ready := waitFor(t.Context(), page+"/readyz", "ready\n") && waitFor(t.Context(), page+"/api/v1/pools", `"phase": "Running"`)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-read
	if err := cmd.Wait(); err != nil || !ready {
		t.Fatalf("ready %t, ended with %v\n%s", ready, err, &log)
	}
}

// waitFor waits until an address answers with a text.
func waitFor(ctx context.Context, address, text string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true}}
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return false
		}
		res, err := client.Do(req)
		if err != nil {
			continue
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close() // it was read
		if err == nil && strings.Contains(string(body), text) {
			return true
		}
	}
	return false
}

// repository makes a repository of the example fleet that everybody may read.
func repository(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the git binary is not installed")
	}
	if err := os.CopyFS(dir, os.DirFS("../example-repo")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=test", "-c", "user.email=test@example.invalid", "commit", "-q", "-m", "first"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "chmod", "-R", "a+rX", dir).CombinedOutput(); err != nil {
		t.Fatalf("chmod: %v\n%s", err, out)
	}
}
