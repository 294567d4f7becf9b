package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/status/statustest"
)

// command runs weir in this process.
func (w *canaryWorld) command(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	var out statustest.Log
	env := map[string]string{"HOME": w.dir, "AWS_EC2_METADATA_DISABLED": "true"}
	code = run(t.Context(), args, surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(name string) string { return env[name] }})
	return code, out.String()
}

func TestCanaryInCommands(t *testing.T) {
	w := newCanaryWorld(t)
	root := t.TempDir()
	for _, broken := range []bool{false, true} {
		for name, text := range w.tree(t, "a", broken) {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(root, "overlays/prod")
		in := []string{"--secret-vars-file", filepath.Join(w.dir, "secrets.yaml"), "--age-key-file", w.keyFile}
		at := append(slices.Clone(in), "--region", "eu-west-1", "--endpoint-url", w.url)
		parameter := "#!/bin/bash\npassword: " + canarySOPS + " " + canaryVariable + " " + canaryFile
		w.aws.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateLaunchTemplate", Code: "InvalidParameterValue",
			Message: "Value (" + parameter[:strings.LastIndex(parameter, " ")] + ") " + base64.StdEncoding.EncodeToString([]byte(parameter)) + " is invalid"})
		for _, args := range [][]string{
			append([]string{"validate", path}, in...), append([]string{"validate", path, "-o", "json"}, in...), append([]string{"validate", path, "-o", "sarif"}, in...),
			append([]string{"render", path, "-o", "intents"}, in...), append([]string{"render", path, "-o", "intents-json"}, in...),
			append([]string{"explain", path, "sops"}, in...), append([]string{"explain", path, "joins", "-o", "json"}, in...),
			append([]string{"plan", path}, at...), append([]string{"plan", path, "-o", "json"}, at...), append([]string{"plan", path, "-o", "markdown"}, at...),
			append([]string{"apply", path}, at...), append([]string{"apply", path, "-o", "json"}, at...), append([]string{"apply", path, "-o", "markdown"}, at...),
			append([]string{"status", path}, at...),
			{"status", "--address", "http://weir:" + canaryUserinfo + "@127.0.0.1:1"},
			{"status", "--address", "http://" + canaryUserinfo + "@127.0.0.1:1%zz"},
		} {
			_, out := w.command(t, args...)
			if out == "" {
				t.Errorf("weir %s says nothing", args[0])
			}
			sing(t, fmt.Sprint("weir ", args[0], " broken ", broken), out)
		}
		// render shows the plain text of the manifests; that is its purpose.
		_, out := w.command(t, append([]string{"render", path}, in...)...)
		sing(t, "weir render", out, canaryFile)
		if broken {
			_, out = w.command(t, append([]string{"validate", path}, in...)...)
			if !strings.Contains(out, "secret-in-plain-field") || !strings.Contains(out, "secret-value") {
				t.Errorf("the canaries were not where they are looked for:\n%s", out)
			}
			continue
		}
		if _, out = w.command(t, append([]string{"render", path, "--show-secrets"}, in...)...); !strings.Contains(out, canaryVariable) {
			t.Errorf("the canaries are not in the manifests:\n%s", out)
		}
		if code, out := w.command(t, append([]string{"apply", path}, at...)...); code != 0 {
			t.Errorf("apply ends with %d:\n%s", code, out)
		}
		data := string(fmt.Append(nil, w.userData(t)))
		for _, c := range []string{canarySOPS, canaryBinary, canaryDotenv, canarySecret, canaryVariable, canaryFile, canaryToken} {
			if !strings.Contains(data, c) {
				t.Errorf("%s did not reach user data", c)
			}
		}
		// Without keys nothing is applied, and what is looked at holds no ciphertext.
		keyless := []string{"--region", "eu-west-1", "--endpoint-url", w.url, "--secret-vars-file", filepath.Join(w.dir, "secrets.yaml")}
		if code, out := w.command(t, append([]string{"apply", path}, keyless...)...); code != exitError || !strings.Contains(out, "sops-no-key") {
			t.Errorf("apply without keys ends with %d:\n%s", code, out)
		}
		if _, out := w.command(t, append([]string{"plan", path, "-o", "json"}, keyless...)...); !strings.Contains(out, "sops-encrypted") || strings.Contains(out, `"digest"`) {
			t.Errorf("plan without keys:\n%s", out)
		}
	}
}

// userData is the user data of all launch templates, decoded.
func (w *canaryWorld) userData(t *testing.T) (out []string) {
	t.Helper()
	for _, c := range w.aws.Calls() {
		form, err := url.ParseQuery(string(c.Body))
		if err != nil || c.ErrorCode != "" {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(form.Get("LaunchTemplateData.UserData"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

func TestCanaryInDaemon(t *testing.T) {
	w := newCanaryWorld(t)
	w.repo.Write(w.tree(t, "a", false))
	w.repo.Commit("add pools with " + canaryVariable)
	parameter := base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\npassword: " + canarySOPS + "\n" + strings.Repeat(canaryFile, 4)))
	w.aws.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateLaunchTemplate", Times: 3, Code: "InternalError",
		Message: "Value " + parameter + " " + canaryDotenv + " is invalid", Status: http.StatusInternalServerError})
	d := w.start(t, w.config(t))
	look := func(when string) {
		t.Helper()
		d.everyPage(func(where, shown string) { sing(t, where+" "+when, shown) })
		sing(t, "the forge "+when, w.forge.got())
	}
	d.await("the pools", func() bool {
		return strings.Count(d.get("/api/v1/pools"), `"phase": "Running"`)+strings.Count(d.get("/api/v1/pools"), `"phase":"Running"`) >= 4
	})
	d.await("a status", func() bool { return w.forge.got() != "" })
	for _, signature := range []string{canaryWebhook, "sha256=" + canaryWebhook} {
		// A careless forge sends the secret where its signature belongs.
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSpace(d.page.String())+"/hooks/pools", strings.NewReader(`{"ref":"`+canaryWebhook+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Gitea-Event", "push "+canaryWebhook)
		req.Header.Set("X-Gitea-Signature", signature)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if sing(t, "the answer to a webhook", string(answer)); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("an unsigned webhook gets %d", resp.StatusCode)
		}
	}
	d.await("a notification", func() bool { return strings.Contains(w.forge.got(), "weir.dev/event/v1") })
	look("once all is well")
	if !strings.Contains(d.get("/targets/prod")+d.get("/"), "add pools with (redacted)") {
		t.Error("the subject of the commit is not on the page")
	}

	w.repo.Write(w.tree(t, "b", true))
	w.repo.Commit("leak " + canaryPlain)
	d.await("the refusal", func() bool { return strings.Contains(d.get("/targets/prod"), "secret-in-plain-field") })
	look("after a leak")

	files := w.tree(t, "c", false)
	files["overlays/prod/sops.yaml"] = strings.Replace(files["overlays/prod/sops.yaml"], "name:", "other: [\n  name:", 1)
	files["overlays/prod/plain.yaml"] += "x: {" + canarySecret + "\n"
	w.repo.Write(files)
	w.repo.Commit("break it")
	d.await("the fault", func() bool { return strings.Contains(d.get("/targets/prod"), "not valid YAML") })
	look("after a fault")

	w.repo.Answer(http.StatusInternalServerError)
	d.await("the source to fail", func() bool { return strings.Contains(d.log.String(), "source cannot be read") })
	look("without a source")
	d.stop()
	sing(t, "the log at the end", d.log.String())
	err := filepath.WalkDir(filepath.Join(w.dir, "state"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && e.Name() == "mirrors" { // the repository itself, as it was pushed
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if e.Type().IsRegular() {
			text, err := os.ReadFile(name)
			sing(t, "the state file "+e.Name(), string(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// canaryDaemon is a daemon in this process, and what it has printed.
type canaryDaemon struct {
	t         *testing.T
	page, log statustest.Log
	stop      func()
}

// start runs weir with a configuration until the test ends, or stop is called; it returns
// once there is a page.
func (w *canaryWorld) start(t *testing.T, config string) *canaryDaemon {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	d := &canaryDaemon{t: t, stop: func() { cancel(); <-done }}
	env := map[string]string{"HOME": w.dir, "AWS_EC2_METADATA_DISABLED": "true"}
	go func() {
		defer close(done)
		run(ctx, []string{"run", "--config", config, "--log-level", "debug", "--log-format", "json"},
			surroundings{stdin: strings.NewReader(""), stdout: &d.page, stderr: &d.log, getenv: func(name string) string { return env[name] }})
	}()
	t.Cleanup(d.stop)
	d.await("the page", func() bool { return strings.Contains(d.page.String(), "http") })
	return d
}

func (d *canaryDaemon) get(path string) string {
	resp, err := http.Get(strings.TrimSpace(d.page.String()) + path)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

func (d *canaryDaemon) await(what string, ok func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatalf("waited in vain for %s\n%s", what, problems(d.log.String()))
		}
	}
}

// everyPage gives all that the daemon shows of the target prod, and its log.
func (d *canaryDaemon) everyPage(see func(where, shown string)) {
	d.t.Helper()
	for _, path := range []string{"/", "/pools", "/activity", "/activity?show=passes", "/configuration", "/pulls", "/targets/prod", "/targets/prod/plan", "/api/v1/pulls", "/api/v1/pools", "/api/v1/targets", "/api/v1/events", "/api/v1/history", "/api/v1/plans", "/metrics", "/healthz", "/readyz"} {
		see(path, d.get(path))
	}
	see("the log", d.log.String())
}

// problems are the lines of a log that say more than that a pass went by.
func problems(log string) string {
	var out []string
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "pass changed nothing") && !strings.Contains(line, `"msg":"call"`) {
			out = append(out, line)
		}
	}
	return strings.Join(out[max(0, len(out)-20):], "")
}
