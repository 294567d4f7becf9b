package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/giteatest"
	"github.com/weir-gitops/weir/cmd/weir/internal/ports"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/status/statustest"
)

const deployDir = "../../deploy"

// Every configuration that is there to start from is one that weir takes.
func TestDeployedConfigurations(t *testing.T) {
	for _, name := range []string{"kubernetes/base/weir.yaml", "kubernetes/overlays/trial/weir.yaml", "compose/weir.yaml"} {
		text, err := os.ReadFile(filepath.Join(deployDir, name))
		if err != nil {
			t.Fatal(err)
		}
		// The files that hold secrets are there where it is deployed.
		dir := t.TempDir()
		placed := strings.NewReplacer("/etc/weir/credentials", dir, "/var/lib/weir", dir).Replace(string(text))
		for _, secret := range []string{"git-token", "forge-token", "webhook-secret", "operator-token", "prometheus-token"} {
			if err := os.WriteFile(filepath.Join(dir, secret), []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, faults := config.Parse(filepath.Join(dir, "weir.yaml"), []byte(placed), config.Env{Getenv: func(string) string { return "" }})
		if c == nil || len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
			continue
		}
		if c.Listen != "0.0.0.0:8344" || !strings.HasPrefix(c.StateDir, dir) {
			t.Errorf("%s listens on %s and keeps its state in %s", name, c.Listen, c.StateDir)
		}
	}
}

// The trial with Gitea, with a real one: the seed makes what weir needs, and is
// allowed to run again; weir applies the fleet and says so at the commit; a push is
// seen because of the webhook.
func TestTrialWithGitea(t *testing.T) {
	gitea := giteatest.New(t)
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	emu, err := awsemu.New(awsemu.Options{Timings: quickTimings()})
	if err != nil {
		t.Fatal(err)
	}
	aws := httptest.NewServer(emu)
	t.Cleanup(aws.Close)
	listen, err := ports.Address()
	if err != nil {
		t.Fatal(err)
	}
	you, bot := gitea.User("you"), gitea.User("weir")
	dir := t.TempDir()
	seed := func() string {
		cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(deployDir, "compose/seed.sh"))
		cmd.Env = append(os.Environ(), "GITEA_URL="+gitea.URL, "WEIR_URL=http://"+listen, "FLEET=../../example-repo", "OUT="+dir,
			"YOU="+you.Name, "YOUR_PASSWORD="+you.Password, "BOT="+bot.Name, "BOT_PASSWORD="+bot.Password)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("seed: %v\n%s", err, out)
		}
		return string(out)
	}
	if out := seed(); !strings.Contains(out, "seeded: sign in at "+gitea.URL) {
		t.Errorf("the seed says %q", out)
	}
	made := map[string]string{}
	for _, name := range []string{"git-token", "forge-token", "webhook-secret", "operator-token", "prometheus-token"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(text) < 33 {
			t.Fatalf("%s holds %q, %v", name, text, err)
		}
		made[name] = string(text)
	}
	seed()
	for name, before := range made {
		if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != before || err != nil {
			t.Errorf("a second seed made another %s, %v", name, err)
		}
	}
	repo := &giteatest.Repository{Owner: you, Name: "fleet"}
	var hooks []any
	if you.Must(http.MethodGet, repo.Path("/hooks"), nil, &hooks); len(hooks) != 1 {
		t.Errorf("%d hooks after two seeds", len(hooks))
	}

	text, err := os.ReadFile(filepath.Join(deployDir, "compose/weir.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// Looked at each hour: what happens sooner is the webhook's doing.
	placed := strings.NewReplacer("http://gitea:3000/you/", gitea.URL+"/"+you.Name+"/", "http://aws:4566", aws.URL, "/etc/weir/credentials", dir,
		"/var/lib/weir", dir, "0.0.0.0:8344", listen, "ref: {branch: main}", "ref: {branch: main}\n  interval: 1h").Replace(string(text))
	file := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(file, []byte(placed), 0o600); err != nil {
		t.Fatal(err)
	}
	runDaemon(t, "run", "--config", file)

	clone := repo.Clone(you)
	clone.Git("fetch", "--quiet", "origin", "main")
	clone.Git("checkout", "--quiet", "-B", "main", "FETCH_HEAD")
	awaitStatus(t, repo, clone.Git("rev-parse", "HEAD"), "trial/apply")
	// The health check of compose.yaml.
	if code := run(t.Context(), []string{"status", "--address", "http://" + listen}, surroundings{stdout: io.Discard, stderr: io.Discard, getenv: os.Getenv}); code != 0 {
		t.Errorf("weir status ends with %d", code)
	}
	if files := clone.Git("ls-files"); strings.Contains(files, ".go") || !strings.Contains(files, "overlays/dev-eu/kustomization.yaml") {
		t.Errorf("the fleet holds %s", files)
	}
	clone.Write(map[string]string{"NOTES.md": "Ours.\n"})
	awaitStatus(t, repo, clone.Push("main", "a change that touches no pool"), "trial/apply")
}

// awaitStatus waits until a commit has succeeded.
func awaitStatus(t *testing.T, repo *giteatest.Repository, sha, name string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		last := repo.Last(sha, name)
		if last.State == "success" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s of %s is %q: %s", name, sha, last.State, last.Description)
		}
	}
}

// runDaemon runs weir in this process until the test ends.
func runDaemon(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	// The SDK reads the process's own environment.
	for name, value := range map[string]string{"HOME": t.TempDir(), "AWS_ACCESS_KEY_ID": "trial", "AWS_SECRET_ACCESS_KEY": "trial", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	var log statustest.Log
	go func() {
		done <- run(ctx, args, surroundings{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &log, getenv: os.Getenv})
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("weir ended with %d", code)
		}
		if t.Failed() {
			t.Logf("weir's log:\n%s", log.String())
		}
	})
}
