package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// besieged is a daemon of the real program in a process of its own, below the memory
// limits that are shipped. Its repository, forge and AWS are outside of that process.
type besieged struct {
	t       *testing.T
	repo    *sourcetest.Repo
	aws     *awsemu.Server
	forge   *openForge
	dir     string
	config  string
	command *exec.Cmd
	log     bytes.Buffer
}

// besiege makes the surroundings. Targets are those of the configuration, limits are
// written into it.
func besiege(t *testing.T, targets, more string) *besieged {
	t.Helper()
	if raceEnabled || os.Getenv("GOCOVERDIR") != "" {
		t.Skip("under the race detector, or counting coverage, the program takes several times the memory that is asserted here")
	}
	emu, err := awsemu.New(awsemu.Options{Timings: quickTimings()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emu)
	t.Cleanup(server.Close)
	b := &besieged{t: t, repo: sourcetest.New(t), aws: emu, forge: newOpenForge(t), dir: t.TempDir()}
	b.config = fmt.Sprintf("apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: fleet\nstateDir: state\nlisten: 127.0.0.1:0\ninterval: 2s\naws: {endpoint: %q}\n"+
		"sources: [{name: fleet, url: %q, ref: {branch: main}, interval: 200ms}]\nforges: [{type: gitea, url: %s/platform/fleet, tokenFile: token}]\n%stargets:\n%s",
		server.URL, b.repo.URL(), b.forge.url, more, targets)
	for name, text := range map[string]string{"token": "s3cret-token\n", "weir.yaml": b.config} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// start runs the daemon with the memory limit that it is shipped with.
func (b *besieged) start() {
	b.t.Helper()
	b.command = exec.Command("weir", "run", "--config", filepath.Join(b.dir, "weir.yaml"), "--log-format", "json")
	b.command.Env = []string{"HOME=" + b.dir, "PATH=" + os.Getenv("PATH"), "GOMEMLIMIT=" + shippedGoLimit(b.t)}
	b.command.Stdout, b.command.Stderr = &b.log, &b.log
	b.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := b.command.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if b.t.Failed() {
			b.t.Logf("the daemon said:\n%.6000s", b.log.String())
		}
	})
}

// stop ends the daemon, and gives the most memory that it took, in bytes. Its limit is
// the least one that is shipped.
func (b *besieged) stop() int {
	b.t.Helper()
	peak := b.peak()
	_ = b.command.Process.Signal(syscall.SIGTERM)
	if err := b.command.Wait(); err != nil {
		b.t.Errorf("the daemon ended with %v", err)
	}
	b.t.Logf("%d MiB at most", peak>>20)
	if limit := shippedLimit(b.t); peak > limit {
		b.t.Errorf("it took %d MiB; the limit that is shipped is %d", peak>>20, limit>>20)
	}
	return peak
}

// peak is the most memory that the daemon has taken.
func (b *besieged) peak() int { return b.memory("VmHWM") }

func (b *besieged) memory(what string) int {
	b.t.Helper()
	if runtime.GOOS != "linux" {
		b.t.Skip("not Linux: the test reads the memory of a process from /proc")
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.command.Process.Pid))
	if err != nil { // it has ended, and that is no reason to skip
		b.t.Fatalf("%v\n%.6000s", err, b.log.String())
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, what+":"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				b.t.Fatal(err)
			}
			return kib << 10
		}
	}
	b.t.Fatalf("the daemon has ended:\n%.6000s", b.log.String())
	return 0
}

// until waits for something to come true while the daemon lives.
func (b *besieged) until(what string, says func() string) {
	b.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	last := ""
	for time.Now().Before(deadline) {
		if last = says(); last == "" {
			return
		}
		b.memory("VmRSS")
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Fatalf("%s does not come: %s", what, last)
}

// tells waits for the last status of a context on a commit.
func (b *besieged) tells(sha, context, state, text string) {
	b.t.Helper()
	b.until(context+" of "+sha, func() string {
		got, says := b.forge.last(sha, context)
		if got != state || !strings.Contains(says, text) {
			return fmt.Sprintf("it is %q: %q", got, says)
		}
		return ""
	})
}

// propose opens a pull request whose head has the root tree.
func (b *besieged) propose(number int, root string) string {
	b.t.Helper()
	head := b.repo.Git("commit-tree", root, "-p", b.repo.Tip("main"), "-m", "proposal")
	b.repo.Git("update-ref", fmt.Sprintf("refs/pull/%d/head", number), head)
	b.forge.open(number, head)
	return head
}

// tree makes a tree object of entries, as git mktree reads them.
func (b *besieged) tree(entries ...string) string {
	b.t.Helper()
	return b.repo.GitInput([]byte(strings.Join(entries, "\n")+"\n"), "mktree")
}

func (b *besieged) blob(content string) string {
	b.t.Helper()
	return b.repo.GitInput([]byte(content), "hash-object", "-w", "--stdin")
}

// shippedLimit is the least memory that a unit or a pod of weir is given, beside the
// processes in which kustomize runs.
func shippedLimit(t *testing.T) int {
	t.Helper()
	unit := found(t, "../../deploy/systemd/weir.service", `(?m)^MemoryMax=(\d+)([GM])$`)
	pod := found(t, "../../deploy/kubernetes/base/deployment.yaml", `(?m)^\s+limits:\n\s+memory: (\d+)([GM])i$`)
	return min(unit, pod) - int(worker.DefaultLimits.Sum()>>20)
}

// shippedGoLimit is the least memory limit that the Go runtime is given.
func shippedGoLimit(t *testing.T) string {
	t.Helper()
	unit := found(t, "../../deploy/systemd/weir.service", `(?m)^Environment=GOMEMLIMIT=(\d+)([GM])iB$`)
	pod := found(t, "../../deploy/kubernetes/base/deployment.yaml", `(?m)name: GOMEMLIMIT, value: (\d+)([GM])iB`)
	return strconv.Itoa(min(unit, pod))
}

func found(t *testing.T, file, pattern string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s says nothing that matches %s", file, pattern)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	if string(m[2]) == "G" {
		n <<= 10
	}
	return n << 20
}

// openForge answers as Gitea does what pull requests take, and remembers what it was
// told.
type openForge struct {
	url string

	mu       sync.Mutex
	pulls    map[int]string // heads
	statuses map[string][]map[string]any
	comments []map[string]any
}

func newOpenForge(t testing.TB) *openForge {
	t.Helper()
	f := &openForge{pulls: map[int]string{}, statuses: map[string][]map[string]any{}}
	mux := http.NewServeMux()
	const repo = "/api/v1/repos/platform/fleet"
	answer := func(pattern string, of func(r *http.Request, body map[string]any) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body := map[string]any{}
			_ = json.NewDecoder(r.Body).Decode(&body) // most have none
			f.mu.Lock()
			defer f.mu.Unlock()
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusCreated)
			}
			_ = json.NewEncoder(w).Encode(of(r, body)) // to a client that may be gone
		})
	}
	answer("GET /api/v1/version", func(*http.Request, map[string]any) any { return map[string]any{"version": "1.22.0"} })
	answer("GET /api/v1/user", func(*http.Request, map[string]any) any { return map[string]any{"login": "weir-bot"} })
	answer("GET "+repo+"/pulls", func(r *http.Request, _ map[string]any) any {
		out := []any{}
		for n := range f.pulls {
			if r.URL.Query().Get("page") <= "1" {
				out = append(out, f.pull(n))
			}
		}
		return out
	})
	answer("GET "+repo+"/pulls/{number}", func(r *http.Request, _ map[string]any) any {
		n, _ := strconv.Atoi(r.PathValue("number"))
		return f.pull(n)
	})
	answer("POST "+repo+"/statuses/{sha}", func(r *http.Request, body map[string]any) any {
		body["status"] = body["state"]
		f.statuses[r.PathValue("sha")] = append(f.statuses[r.PathValue("sha")], body)
		return body
	})
	answer("GET "+repo+"/commits/{sha}/statuses", func(r *http.Request, _ map[string]any) any {
		if r.URL.Query().Get("page") > "1" {
			return []any{}
		}
		return slices.Concat([]map[string]any{}, f.statuses[r.PathValue("sha")])
	})
	answer("GET "+repo+"/collaborators/{user}/permission", func(r *http.Request, _ map[string]any) any {
		return map[string]any{"permission": "write", "user": map[string]any{"login": r.PathValue("user")}}
	})
	list := func(r *http.Request, _ map[string]any) any {
		out := []any{}
		for _, c := range f.comments {
			if n := r.PathValue("number"); (n == "" || n == fmt.Sprint(c["number"])) && r.URL.Query().Get("page") <= "1" {
				out = append(out, c)
			}
		}
		return out
	}
	answer("GET "+repo+"/issues/comments", list)
	answer("GET "+repo+"/issues/{number}/comments", list)
	answer("POST "+repo+"/issues/{number}/comments", func(r *http.Request, body map[string]any) any {
		n, _ := strconv.Atoi(r.PathValue("number"))
		return f.say(n, "weir-bot", fmt.Sprint(body["body"]))
	})
	answer("PATCH "+repo+"/issues/comments/{id}", func(r *http.Request, body map[string]any) any {
		n, _ := strconv.Atoi(r.PathValue("id"))
		f.comments[n-1]["body"] = body["body"]
		return f.comments[n-1]
	})
	answer("GET "+repo+"/activities/feeds", func(r *http.Request, _ map[string]any) any {
		out := []any{}
		for _, c := range slices.Backward(f.comments) {
			if r.URL.Query().Get("page") <= "1" {
				out = append(out, map[string]any{"op_type": "comment_pull", "comment_id": c["id"], "content": fmt.Sprint(c["number"], "|", c["body"]), "created": c["created_at"]})
			}
		}
		return out
	})
	answer("POST "+repo+"/issues/comments/{id}/reactions", func(*http.Request, map[string]any) any { return map[string]any{} })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *openForge) pull(number int) map[string]any {
	return map[string]any{
		"number": number, "title": "a proposal", "state": "open", "html_url": fmt.Sprintf("%s/platform/fleet/pulls/%d", f.url, number),
		"user": map[string]any{"login": "somebody"}, "updated_at": "2026-01-01T00:00:00Z", "merged": false,
		"head": map[string]any{"label": "change", "ref": "change", "sha": f.pulls[number], "repo": map[string]any{"id": 1}},
		"base": map[string]any{"label": "main", "ref": "main", "sha": "", "repo": map[string]any{"id": 1}},
	}
}

func (f *openForge) open(number int, head string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pulls[number] = head
}

// say adds a comment. The caller holds mu.
func (f *openForge) say(number int, author, body string) map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	at := fmt.Sprintf("%s/platform/fleet/pulls/%d", f.url, number)
	c := map[string]any{
		"id": len(f.comments) + 1, "number": number, "body": body, "user": map[string]any{"login": author}, "created_at": now, "updated_at": now,
		"html_url": at + "#issuecomment-1", "pull_request_url": at, "issue_url": "",
	}
	f.comments = append(f.comments, c)
	return c
}

// last is the newest status of a context on a commit.
func (f *openForge) last(sha, context string) (state, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.statuses[sha] {
		if s["context"] == context {
			state, text = fmt.Sprint(s["state"]), fmt.Sprint(s["description"])
		}
	}
	return state, text
}

// told is what weir's comments on a pull request say.
func (f *openForge) told(number int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out strings.Builder
	for _, c := range f.comments {
		if c["number"] == number && fmt.Sprint(c["user"]) == fmt.Sprint(map[string]any{"login": "weir-bot"}) {
			out.WriteString(fmt.Sprint(c["body"]) + "\n")
		}
	}
	return out.String()
}
