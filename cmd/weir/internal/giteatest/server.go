// Package giteatest runs a real Gitea for tests: a server in its own directory, with the users, tokens,
// repositories and hooks that a test needs. Gitea is never downloaded; WEIR_TEST_GITEA names an installed
// one.
package giteatest

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/ports"
)

const (
	// Variable names a Gitea binary, or the address of a running server.
	Variable = "WEIR_TEST_GITEA"
	// TokenVariable contains an administrator's token with the scope "all", for the server whose address is
	// in Variable.
	TokenVariable = "WEIR_TEST_GITEA_TOKEN"
)

// Server is a Gitea.
type Server struct {
	// URL is its address without a slash at the end.
	URL string

	tb    testing.TB
	admin *Client
	// suffix distinguishes this test's names from others on an existing server.
	suffix string
}

// New starts the Gitea that the environment names, or uses the running one. The test is skipped if none is
// named. A server that New started ends with the test. On an existing server, everything that the Server
// created is deleted.
func New(tb testing.TB) *Server {
	tb.Helper()
	at := os.Getenv(Variable)
	if at == "" {
		tb.Skipf("%s names no Gitea: give it the path of a binary, or an address and %s", Variable, TokenVariable)
	}
	if _, err := exec.LookPath("git"); err != nil {
		tb.Skip("the git binary is not installed")
	}
	if strings.Contains(at, "://") {
		s := &Server{URL: strings.TrimRight(at, "/"), tb: tb, suffix: "-" + strconv.FormatInt(time.Now().UnixNano(), 36)}
		s.admin = &Client{tb: tb, base: s.URL, auth: token(os.Getenv(TokenVariable))}
		if code, text := s.admin.Do(http.MethodGet, "/user", nil, nil); code != http.StatusOK {
			tb.Fatalf("%s at %s: %s with the token of %s", Variable, s.URL, text, TokenVariable)
		}
		return s
	}
	return start(tb, at)
}

// starts is the maximum number of attempts with different ports, because a free port may be taken before
// the start.
const starts = 3

func start(tb testing.TB, binary string) *Server {
	tb.Helper()
	binary, err := filepath.Abs(binary)
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	for try := 1; ; try++ {
		p := &process{tb: tb, binary: binary, dir: dir, port: freePort(tb)}
		p.configure()
		if try == 1 {
			p.run("migrate")
		}
		if s := p.serve(); s != nil {
			return s
		}
		if try == starts {
			tb.Fatalf("Gitea does not start:\n%s", p.log())
		}
	}
}

func freePort(tb testing.TB) int {
	tb.Helper()
	address, err := ports.Address()
	if err != nil {
		tb.Fatal(err)
	}
	_, text, _ := strings.Cut(address, ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

// settings configures a server that is fast, contacts no other hosts, and calls its hooks at once.
// Containers often have no user but root, which Gitea accepts only with a setting.
const settings = `APP_NAME = Gitea of a test
RUN_MODE = prod
WORK_PATH = %[1]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true

[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]d
ROOT_URL = http://127.0.0.1:%[2]d/
LOCAL_ROOT_URL = http://127.0.0.1:%[2]d/
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = false

[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
SQLITE_JOURNAL_MODE = WAL

[security]
INSTALL_LOCK = true
SECRET_KEY = of-a-test-that-is-over-soon
PASSWORD_HASH_ALGO = pbkdf2$1000$50
MIN_PASSWORD_LENGTH = 6
PASSWORD_COMPLEXITY = off

[service]
DISABLE_REGISTRATION = true

[webhook]
ALLOWED_HOST_LIST = loopback

[queue]
TYPE = channel

[repository]
ROOT = %[1]s/repositories
DEFAULT_BRANCH = main
DEFAULT_PUSH_CREATE_PRIVATE = true

[session]
PROVIDER = memory

[log]
MODE = console
LEVEL = Warn

[actions]
ENABLED = false

[packages]
ENABLED = false

[cron]
ENABLED = false

[indexer]
ISSUE_INDEXER_TYPE = db
`

const adminName, adminPassword = "keeper", "of-the-house"

// process is a server that the test starts.
type process struct {
	tb          testing.TB
	binary, dir string
	port        int
}

func (p *process) file(name string) string { return filepath.Join(p.dir, name) }

func (p *process) configure() {
	p.tb.Helper()
	text := fmt.Sprintf(settings, p.dir, p.port)
	if err := os.WriteFile(p.file("app.ini"), []byte(text), 0o600); err != nil {
		p.tb.Fatal(err)
	}
}

func (p *process) log() string {
	text, err := os.ReadFile(p.file("output.log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// command writes its output to a file, because a pipe would need a goroutine.
func (p *process) command(out *os.File, args ...string) *exec.Cmd {
	cmd := exec.Command(p.binary, append([]string{"--work-path", p.dir, "--config", p.file("app.ini")}, args...)...) //nolint:noctx // it outlives the test's context, and is ended by the test's cleanup
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, out, out
	cmd.Env = []string{"HOME=" + p.dir, "PATH=" + os.Getenv("PATH"), "USER=" + os.Getenv("USER"), "GITEA_WORK_DIR=" + p.dir, "GIT_CONFIG_NOSYSTEM=1"}
	return cmd
}

func (p *process) output() *os.File {
	p.tb.Helper()
	f, err := os.OpenFile(p.file("output.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.tb.Fatal(err)
	}
	return f
}

func (p *process) run(args ...string) {
	p.tb.Helper()
	out := p.output()
	defer func() { _ = out.Close() }()
	if err := p.command(out, args...).Run(); err != nil {
		p.tb.Fatalf("gitea %s: %v\n%s", strings.Join(args, " "), err, p.log())
	}
}

// serve starts the server and creates its administrator. It returns nil if the server does not start.
func (p *process) serve() *Server {
	p.tb.Helper()
	out := p.output()
	cmd := p.command(out, "web")
	if err := cmd.Start(); err != nil {
		p.tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its output is in the file
	}()
	stop := func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		_ = out.Close()
	}
	s := &Server{URL: fmt.Sprintf("http://127.0.0.1:%d", p.port), tb: p.tb}
	if !ready(s.URL, ended) {
		stop()
		return nil
	}
	p.tb.Cleanup(func() {
		stop()
		if p.tb.Failed() {
			p.tb.Logf("what Gitea said:\n%s", p.log())
		}
	})
	p.run("admin", "user", "create", "--admin", "--username", adminName, "--password", adminPassword, "--email", adminName+"@example.invalid", "--must-change-password=false")
	s.admin = &Client{tb: p.tb, base: s.URL, auth: basic(url.UserPassword(adminName, adminPassword))}
	return s
}

// ready waits until the server answers. It returns false if the server ended, or does not answer within two
// minutes.
func ready(address string, ended <-chan struct{}) bool {
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		resp, err := http.Get(address + "/api/healthz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-ended:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}
