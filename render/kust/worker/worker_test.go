package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain is a worker where it is asked to be, and the process of a test that is named.
func TestMain(m *testing.M) {
	if Asked() {
		os.Exit(Serve())
	}
	if len(os.Args) == 2 && roles[os.Args[1]] != nil {
		roles[os.Args[1]]()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// A worker gives what this process would, one after the other and beside each other, with
// the first worker again where it is free.
func TestWorkersBuild(t *testing.T) {
	here, err := Run(t.Context(), simple(), noPath)
	wantSimple(t, here, err)
	p := enable(t, testLimits())
	pids := map[int]bool{}
	for range 5 {
		nodes, err := Run(t.Context(), simple(), noPath)
		wantSimple(t, nodes, err)
		if printed(nodes) != printed(here) {
			t.Errorf("a worker gives\n%s\nand not\n%s", printed(nodes), printed(here))
		}
		pids[p.idle[0].pid()] = true
	}
	if len(pids) != 1 {
		t.Errorf("%d workers for builds one after the other", len(pids))
	}
	var g sync.WaitGroup
	for range 20 {
		g.Go(func() {
			nodes, err := Run(t.Context(), asking(), func(path string) Path { return Path{At: path, File: true} })
			wantSimple(t, nodes, err)
		})
	}
	g.Wait()
	if n := len(p.idle); n > mostSmall {
		t.Errorf("%d workers", n)
	}
}

// The worker passes on kustomize's own words about a fault, and stays.
func TestFaultsAreTold(t *testing.T) {
	p := enable(t, testLimits())
	j := simple()
	j.Files["kustomization.yaml"] = []byte("resources: [a.yaml, b.yaml]\n")
	var fault Fault
	if _, err := Run(t.Context(), j, func(path string) Path { return Path{Missing: true} }); !errors.As(err, &fault) || !strings.Contains(err.Error(), "b.yaml") {
		t.Errorf("got %v", err)
	}
	j = simple()
	j.Nodes = 5
	if _, err := Run(t.Context(), j, noPath); !errors.Is(err, ErrNodes) {
		t.Errorf("got %v", err)
	}
	j = simple()
	j.Reads = 1
	if _, err := Run(t.Context(), j, noPath); !errors.As(err, &fault) || !strings.Contains(err.Error(), ErrReads.Error()) {
		t.Errorf("got %v", err)
	}
	if len(p.idle) != 1 {
		t.Errorf("%d workers", len(p.idle))
	}
}

// A worker that is killed in the midst of a build is replaced, once.
func TestKilledWorkersAreReplaced(t *testing.T) {
	p := enable(t, testLimits())
	kills := 1
	ask := func(path string) Path {
		if kills--; kills >= 0 {
			for _, pid := range children(t) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return Path{Missing: true}
		}
		return Path{At: path, File: true}
	}
	nodes, err := Run(t.Context(), asking(), ask)
	wantSimple(t, nodes, err)
	kills = 2
	var ended *Ended
	if _, err = Run(t.Context(), asking(), ask); !errors.As(err, &ended) || ended.Cause != Killed {
		t.Errorf("killed twice: %v", err)
	}
	nodes, err = Run(t.Context(), simple(), noPath)
	wantSimple(t, nodes, err)
	second, err := p.acquire(t.Context(), p.limits.forJob(simple()), true)
	if err != nil {
		t.Fatal(err)
	}
	p.give(second)
	for _, w := range p.idleNow() { // while they are idle
		_ = syscall.Kill(w.pid(), syscall.SIGKILL)
	}
	nodes, err = Run(t.Context(), simple(), noPath)
	wantSimple(t, nodes, err)
}

// The pool ends a build that takes too much memory or CPU time and gives that reason; its memory stays
// bounded, and the next build finds a worker. A worker that nobody needs for long ends, the last one later
// than others, and the next build has a new one.
func TestIdleWorkersEnd(t *testing.T) {
	p := enable(t, testLimits())
	nodes, err := Run(t.Context(), simple(), noPath)
	wantSimple(t, nodes, err)
	second, err := p.acquire(t.Context(), p.limits.forJob(simple()), true)
	if err != nil {
		t.Fatal(err)
	}
	p.give(second)
	first := p.idleNow()[0].pid()
	idle := func(since time.Duration) (pids []int) {
		p.mu.Lock()
		for _, w := range p.idle {
			w.since = time.Now().Add(-since)
		}
		p.mu.Unlock()
		p.shrink()
		for _, w := range p.idleNow() {
			pids = append(pids, w.pid())
		}
		return pids
	}
	if left := idle(keepFor); len(left) != 1 || left[0] == first {
		t.Errorf("after %v %v are left of %d and %d", keepFor, left, first, second.pid())
	}
	if left := idle(keepLast - time.Second); len(left) != 1 {
		t.Error("the last one ended before its time")
	}
	if left := idle(keepLast); len(left) != 0 {
		t.Errorf("after %v %v are left", keepLast, left)
	}
	nodes, err = Run(t.Context(), simple(), noPath)
	wantSimple(t, nodes, err)
}

func TestTooMuchIsEnded(t *testing.T) {
	if runtime.GOOS != "linux" || raceEnabled {
		t.Skip("not Linux, or the race detector is on: a worker process has its limits only on Linux and without the detector")
	}
	for name, c := range map[string]struct {
		job    *Job
		limits Limits
		want   Cause
	}{
		"memory": {growing(), Limits{Memory: 1 << 46, Small: 192 << 20, CPU: time.Minute}, Memory},
		"CPU":    {endless(), Limits{Memory: DefaultLimits.Memory, Small: DefaultLimits.Small, CPU: time.Second}, CPU},
	} {
		t.Run(name, func(t *testing.T) {
			enable(t, c.limits)
			var most atomic.Int64
			done, watched := make(chan bool), make(chan bool)
			go func() {
				defer close(watched)
				for {
					select {
					case <-done:
						return
					case <-time.After(5 * time.Millisecond):
						for _, pid := range children(t) {
							most.Store(max(most.Load(), anonymous(pid)))
						}
					}
				}
			}()
			_, err := Run(t.Context(), c.job, noPath)
			close(done)
			<-watched
			var ended *Ended
			if !errors.As(err, &ended) || ended.Cause != c.want {
				t.Errorf("got %v", err)
			}
			t.Logf("%d MiB", most.Load()>>20)
			if got := most.Load(); got == 0 || got > c.limits.forJob(c.job).Memory {
				t.Errorf("the worker had %d MiB", got>>20)
			}
			nodes, err := Run(t.Context(), simple(), noPath)
			wantSimple(t, nodes, err)
		})
	}
}

// A large build has more memory than a small one, and a worker of its own that does not
// stay; small builds are made beside it.
func TestLargeBuilds(t *testing.T) {
	if runtime.GOOS != "linux" || raceEnabled {
		t.Skip("not Linux, or the race detector is on: a worker process has its limits only on Linux and without the detector")
	}
	p := enable(t, Limits{Memory: 1 << 30, Small: 216 << 20, CPU: time.Minute})
	const objects = 40 // of a megabyte each, far beyond a small build
	files, names := map[string]string{}, []string{}
	for i := range objects {
		name := fmt.Sprintf("a%d.yaml", i)
		names = append(names, name)
		files[name] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a" + strconv.Itoa(i) + "}\ndata:\n  a: " + strings.Repeat("x", 1_000_000) + "\n"
	}
	j := job("resources: ["+strings.Join(names, ", ")+"]\nnamePrefix: x-\n", files)
	j.Bytes = 1 << 26
	var ended *Ended
	if _, err := Run(t.Context(), j, noPath); !errors.As(err, &ended) || ended.Cause != Memory || ended.Limits.Memory != 216<<20 {
		t.Errorf("as a small one: %v", err)
	}
	large := *j
	large.Small = false
	beside := make(chan error)
	ask := func(string) Path {
		_, err := Run(t.Context(), simple(), noPath)
		beside <- err
		return Path{Fault: "not there"}
	}
	large.Paths = maps.Clone(j.Paths)
	delete(large.Paths, "a23.yaml")
	go func() { _, _ = Run(t.Context(), &large, ask); close(beside) }()
	for err := range beside {
		if err != nil {
			t.Errorf("beside a large one: %v", err)
		}
	}
	large.Paths = j.Paths
	if nodes, err := Run(t.Context(), &large, noPath); err != nil || len(nodes) != objects {
		t.Errorf("as a large one: %d objects, %v", len(nodes), err)
	}
	if n := len(p.idleNow()); n != 1 || len(children(t)) != 1 {
		t.Errorf("%d workers are idle of %d: the small one stays alone", n, len(children(t)))
	}
}

// A build that nobody waits for any more is ended with its worker.
func TestCancelledBuildsEnd(t *testing.T) {
	p := enable(t, testLimits())
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("for the test")
	nodes, err := Run(ctx, simple(), noPath)
	wantSimple(t, nodes, err)
	time.AfterFunc(300*time.Millisecond, func() { cancel(why) })
	if _, err := Run(ctx, endless(), noPath); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if left := children(t); len(left) != len(p.idleNow()) { // the one of the small build
		t.Errorf("still running: %v", left)
	}
	if _, err := Run(ctx, simple(), noPath); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// After the program on disk was replaced, workers are still the program that runs.
func TestReplacedProgram(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	replaced := filepath.Join(t.TempDir(), "weir")
	if err := os.WriteFile(replaced, content, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := role(t, replaced, "replaced").Output()
	if err != nil || string(out) != "1 objects, <nil>\n" {
		t.Errorf("%s, %v", out, err)
	}
}

func replaced() {
	defer Enable(testLimits())()
	if err := errors.Join(os.Remove(os.Args[0]), os.WriteFile(os.Args[0], []byte("another release"), 0o755)); err != nil {
		fmt.Println(err)
	}
	nodes, err := Run(context.Background(), simple(), noPath)
	fmt.Printf("%d objects, %v\n", len(nodes), err)
}

// A worker does not outlive the process that started it, at work or idle.
func TestNoOrphans(t *testing.T) {
	cmd := role(t, os.Args[0], "orphans")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [2]int
	if _, err := fmt.Fscan(out, &pids[0], &pids[1]); err != nil {
		t.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, pid := range pids {
		for range 500 {
			if gone(pid) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if pid == 0 || !gone(pid) {
			t.Errorf("worker %d is still there", pid)
		}
	}
}

func orphans() {
	Enable(testLimits())
	at := make(chan bool, 10)
	stay := func(string) Path { at <- true; select {} }
	go func() { _, _ = Run(context.Background(), asking(), stay) }()
	<-at
	go func() {
		_, _ = Run(context.Background(), asking(), func(string) Path { at <- true; return Path{Missing: true} })
	}()
	<-at
	for len(enabled.Load().idleNow()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	for _, pid := range childrenOf(os.Getpid()) {
		fmt.Println(pid)
	}
	time.Sleep(time.Hour)
}

func (p *pool) idleNow() []*process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle
}

func gone(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || strings.Contains(string(status), "State:\tZ")
}

func children(t *testing.T) []int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("no /proc with children of a process on this system")
	}
	return childrenOf(os.Getpid())
}

func childrenOf(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		list, _ := os.ReadFile(name)
		for _, f := range strings.Fields(string(list)) {
			if n, err := strconv.Atoi(f); err == nil && !gone(n) {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// anonymous is what of a process's memory is its own.
func anonymous(pid int) (bytes int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			_, _ = fmt.Sscan(rest, &bytes)
		}
	}
	return bytes << 10
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }
