package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"
)

// process is weir's side of a worker.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr tail
	limits Limits
	lacks  []string
	since  time.Time     // idle since
	used   time.Duration // CPU time up to the end of its last job
	ending sync.Once
	cause  Cause
}

// startTime bounds the time until a worker is ready, even on a busy machine.
const startTime = time.Minute

// program returns the file of this program, even if it was replaced on disk. If /proc is not mounted, as in a
// bare root directory, it returns the path that was started.
func program() (string, error) {
	const self = "/proc/self/exe"
	if runtime.GOOS == "linux" {
		if _, err := os.Stat(self); err == nil {
			return self, nil
		}
	}
	if path, err := os.Executable(); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// environment disables garbage collection during the start, which would take a third of the time, because
// packages allocate at initialisation. It also disables the memory profile, which cannot be requested. There
// are no other variables.
var environment = []string{"GOGC=off", "GODEBUG=memprofilerate=0"}

// start starts a worker process, and waits until it is ready. The process has none of the daemon's
// environment variables. It receives the limits as arguments, and reports the restrictions that it could
// not set.
func start(ctx context.Context, l Limits) (*process, error) {
	path, err := program()
	if err != nil {
		return nil, fmt.Errorf("start the process of a build: %w", err)
	}
	w := &process{limits: l}
	w.cmd = &exec.Cmd{ //nolint:gosec // It is this program itself.
		Path:        path,
		Args:        []string{os.Args[0], Name, strconv.FormatInt(l.Memory, 10), strconv.FormatInt(int64(l.CPU/time.Second), 10)},
		Env:         environment,
		Dir:         "/",
		Stderr:      &w.stderr,
		SysProcAttr: attributes(),
		WaitDelay:   10 * time.Second,
	}
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the process of a build: %w", err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the process of a build: %w", err)
	}
	w.out = bufio.NewReaderSize(out, 64<<10)
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the process of a build: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, errors.New("it is not ready after a minute"))
	defer cancel()
	defer context.AfterFunc(ctx, w.kill)()
	kind, b, err := readFrame(w.out)
	if err != nil || kind != frameReady {
		w.end()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("start the process of a build: %w", context.Cause(ctx))
		}
		return nil, fmt.Errorf("start the process of a build: it ended with %s: %s", w.cmd.ProcessState, w.stderr.String())
	}
	for p := (parser{rest: b}); len(p.rest) > 0; {
		w.lacks = append(w.lacks, p.text())
	}
	return w, nil
}

func (w *process) pid() int { return w.cmd.Process.Pid }

func (w *process) kill() { _ = w.cmd.Process.Kill() }

// answer is a worker's answer to a job. If lost is true, the worker cannot do further jobs.
type answer struct {
	nodes  []*yaml.Node
	err    error
	cpu    time.Duration // used by all builds of the worker
	memory uint64
	lost   bool
}

// maxAsked bounds the number of paths that a build may ask for in addition to the paths of its job.
const maxAsked = 100_000

// build sends a job to a worker and waits for its answer. ask answers the worker's questions about paths.
// If the answer has lost, the worker cannot be used again. most bounds the nodes of the answer.
func (w *process) build(ctx context.Context, job []byte, most int, ask Asker) (a answer) {
	stop := context.AfterFunc(ctx, w.kill)
	defer func() {
		if !stop() {
			a.lost = true // it is being killed
		}
	}()
	if err := writeFrame(w.in, job); err != nil {
		return answer{err: err, lost: true}
	}
	for range maxAsked {
		kind, b, err := readFrame(w.out)
		if err != nil {
			return answer{err: err, lost: true}
		}
		p := parser{rest: b}
		if kind == frameAsk {
			path := p.text()
			if err := p.end(); err != nil {
				return answer{err: err, lost: true}
			}
			if err := writeFrame(w.in, addPath(frame(framePath), ask(path))); err != nil {
				return answer{err: err, lost: true}
			}
			continue
		}
		a := answer{cpu: time.Duration(min(p.number(), uint64(time.Hour))), memory: p.number()} //nolint:gosec // It is bounded.
		switch kind {
		case frameFault:
			a.err = Fault(p.text())
		case frameExcess:
			a.err = ErrNodes
		case frameDone:
			a.nodes = p.objects(most)
		default:
			p.bad = true
		}
		if w.out.Buffered() > 0 { // it would be taken for the answer to the next job
			p.bad = true
		}
		if err := p.end(); err != nil {
			return answer{err: err, lost: true}
		}
		return a
	}
	return answer{err: errWire, lost: true}
}

// noMemory lists the messages of Go's runtime and the C library if the system has no memory. The garbage
// collector of Go 1.26 does not check allocations for its own lists, and crashes in them.
var noMemory = []string{"out of memory", "cannot allocate memory", "cannot map pages", "pthread_create failed", "failed to create new OS thread", "runtime.(*spanQueue)"}

// end ends a worker and waits for it. It may be called more than once, and returns the cause, which is
// meaningful if the worker had ended by itself.
func (w *process) end() Cause {
	w.ending.Do(func() {
		// A worker that has ended by itself keeps its exit status.
		_ = w.in.Close()
		w.kill()
		_ = w.cmd.Wait()
		state, said := w.cmd.ProcessState, w.stderr.String()
		status, _ := state.Sys().(syscall.WaitStatus)
		switch {
		case state.UserTime()+state.SystemTime() >= w.limits.CPU:
			w.cause = CPU
		case slices.ContainsFunc(noMemory, func(text string) bool { return strings.Contains(said, text) }):
			w.cause = Memory
		case status.Signaled() || state.Exited() && state.ExitCode() <= 0:
			w.cause = Killed
		default:
			w.cause = Crashed
		}
	})
	return w.cause
}

// tail keeps the beginning of a worker's standard error, because Go prints the reason for a crash first.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// Write keeps bytes up to the maximum size.
func (t *tail) Write(b []byte) (int, error) {
	const most = 16 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b[:min(len(b), most-len(t.b))]...)
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
