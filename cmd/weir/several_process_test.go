package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/ports"
	"github.com/weir-gitops/weir/reconciler/coord"
)

// weirProcess is one daemon.
type weirProcess struct {
	crowd *crowd
	name  string
	dir   string
	relay *relay
	skew  time.Duration
	page  string
	flags []string

	mu  sync.Mutex
	cmd *exec.Cmd
}

func (m *weirProcess) configure(keys string) {
	address, err := ports.Address()
	if err != nil {
		m.crowd.t.Fatal(err)
	}
	m.page = "http://" + address
	interval, look := "3s", "1s"
	if m.crowd.size.resting {
		interval, look = "1m", "30s"
	}
	coordination := fmt.Sprintf("coordination:\n  keysFile: %s\n  %s\n", keys, m.crowd.engine.section(m.relay.address))
	if m.crowd.size.alone {
		coordination = ""
	}
	text := fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: Config
instance: several
stateDir: state
listen: %s
interval: %s
sources: [{name: pools, url: %q, interval: %s}]
%stargets:
%s`, address, interval, m.crowd.repo.URL(), look, coordination, strings.Join(m.crowd.targets(), ""))
	if err := os.WriteFile(filepath.Join(m.dir, "weir.yaml"), []byte(text), 0o600); err != nil {
		m.crowd.t.Fatal(err)
	}
}

func (m *weirProcess) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil {
		return
	}
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.crowd.t.Error(err)
		return
	}
	defer func() { _ = log.Close() }()
	self, err := os.Executable()
	if err != nil {
		m.crowd.t.Error(err)
		return
	}
	m.cmd = exec.Command(self, append([]string{"run", "--config", "weir.yaml", "--log-format", "json"}, m.flags...)...)
	m.cmd.Args[0] = "skewed-weir"
	m.cmd.Dir, m.cmd.Stdout, m.cmd.Stderr = m.dir, log, log
	m.cmd.Env = append(os.Environ(),
		"AWS_ACCESS_KEY_ID=MEMBER"+m.name, "AWS_SECRET_ACCESS_KEY=x", "AWS_EC2_METADATA_DISABLED=true", "HOME="+m.dir,
		memberName+"=member-"+strings.ToLower(m.name), clockSkew+"="+m.skew.String())
	if err := m.cmd.Start(); err != nil {
		m.crowd.t.Error(err)
	}
}

func (m *weirProcess) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil && m.cmd.Process != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}

// reap waits until a process that was told to end has ended.
func (m *weirProcess) reap() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil {
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}

// taken is what a process has taken of the machine.
type taken struct {
	cpu, gone           time.Duration // gone is that of children that ended
	resident, anonymous int64         // bytes
	children            int
}

func (m *weirProcess) used() (u taken) {
	m.mu.Lock()
	pid := m.cmd.Process.Pid
	m.mu.Unlock()
	return m.usedBy(pid)
}

// tree is what the process and its children have taken: those that ended count by their CPU.
func (m *weirProcess) tree() (u taken) {
	m.mu.Lock()
	pid := m.cmd.Process.Pid
	m.mu.Unlock()
	u = m.usedBy(pid)
	u.cpu += u.gone
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		m.crowd.t.Fatal(err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread that has ended has no children
		for _, child := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(child)
			if err != nil {
				m.crowd.t.Fatal(err)
			}
			c := m.usedBy(n)
			u.cpu, u.resident, u.anonymous = u.cpu+c.cpu, u.resident+c.resident, u.anonymous+c.anonymous
			u.children++
		}
	}
	return u
}

func (m *weirProcess) usedBy(pid int) (u taken) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		m.crowd.t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	for i, f := range fields[11:15] { // utime and stime, and those of children that ended, in hundredths
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			m.crowd.t.Fatal(err)
		}
		if i < 2 {
			u.cpu += time.Duration(n) * 10 * time.Millisecond
		} else {
			u.gone += time.Duration(n) * 10 * time.Millisecond
		}
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		m.crowd.t.Fatal(err)
	}
	for name, into := range map[string]*int64{"VmRSS:": &u.resident, "RssAnon:": &u.anonymous} {
		_, rest, _ := strings.Cut(string(status), name)
		if _, err := fmt.Sscan(rest, into); err != nil {
			m.crowd.t.Fatal(err)
		}
		*into <<= 10
	}
	return u
}

func (m *weirProcess) signal(s syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil && m.cmd.Process != nil {
		_ = m.cmd.Process.Signal(s)
	}
}

// calm lets the process live.
func (m *weirProcess) calm() {
	m.relay.cut(false)
	m.signal(syscall.SIGCONT)
	m.mu.Lock()
	dead := m.cmd == nil
	m.mu.Unlock()
	if dead {
		m.start()
	}
}

func (m *weirProcess) get(path string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.page+path, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

func (m *weirProcess) lastLines(n int) string {
	text, _ := os.ReadFile(filepath.Join(m.dir, "log"))
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Variables of the environment for the processes of this test.
const (
	memberName = "WEIR_TEST_MEMBER"
	clockSkew  = "WEIR_TEST_SKEW"
)

// skewedMain is main with a name and a wall clock of its own.
func skewedMain() {
	skew, _ := time.ParseDuration(os.Getenv(clockSkew)) // 0 for the process of a build, which has no environment
	os.Exit(process(surroundings{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, clock: skewed(skew), member: os.Getenv(memberName),
	}))
}

// skewed is this machine's clock, wrong by a duration.
type skewed time.Duration

func (s skewed) Now() coord.Instant {
	now := coord.Machine{}.Now()
	now.Wall = now.Wall.Add(time.Duration(s))
	return now
}
