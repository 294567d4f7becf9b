package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"
)

// Limits are the limits of a worker.
type Limits struct {
	// Memory is in bytes and includes code and stacks. Small is the memory of a worker for small jobs.
	Memory, Small int64
	// CPU is the minimum CPU time that every build can use. A worker that has used as much gets no further
	// build. The system kills it at twice that time.
	CPU time.Duration
}

// DefaultLimits are the limits of weir's workers. The system counts about 160 MiB for a small worker before
// its first build, because Go reserves memory in steps of 64 MiB, and unused memory counts too. The unit file
// and the Kubernetes manifests leave room for Sum in addition to the daemon.
var DefaultLimits = Limits{Memory: 640 << 20, Small: 216 << 20, CPU: 4 * time.Minute}

// The number of workers that build at the same time, which equals the number of renders.
const (
	mostLarge = 1
	mostSmall = 2
)

// Sum returns the maximum memory of all busy workers together, in bytes.
func (l Limits) Sum() int64 { return mostLarge*l.Memory + mostSmall*l.Small }

// forJob returns the limits of the worker for a job.
func (l Limits) forJob(j *Job) Limits {
	if j.Small {
		l.Memory = l.Small
	}
	return l
}

// keepMemory bounds the memory of a worker that is kept for the next small build. keepFor is the time for
// which surplus idle workers are kept, and keepLast the time for the last one. A new worker takes some tenths
// of a second to start. An idle one needs about 15 MiB.
const (
	keepMemory = 96 << 20
	keepFor    = 15 * time.Second
	keepLast   = 2 * time.Minute
)

var enabled atomic.Pointer[pool]

// Enable makes all jobs of this process run in workers, which start when they are needed. It is only for
// programs whose main function calls Serve if Asked returns true. stop ends the workers.
func Enable(l Limits) (stop func()) {
	p := &pool{limits: l, small: make(chan struct{}, mostSmall), large: make(chan struct{}, mostLarge)}
	enabled.Store(p)
	return func() {
		enabled.CompareAndSwap(p, nil)
		p.close()
	}
}

// Warm starts a worker for the first build, and logs the restrictions that workers could not set.
func Warm(ctx context.Context, log *slog.Logger) {
	p := enabled.Load()
	if p == nil {
		return
	}
	w, err := p.acquire(ctx, p.limits.forJob(&Job{Small: true}), false)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		log.Warn("cannot build: the process for builds does not start", "err", err)
	case len(w.lacks) > 0:
		log.Warn("the process that builds run in is not confined in every way", "lacks", strings.Join(w.lacks, "; "))
	default:
		log.Info("builds run in a process of their own", "pid", w.pid(), "memory", fmt.Sprintf("%d MiB", p.limits.Sum()>>20), "cpu", p.limits.CPU.String())
	}
	if w != nil {
		p.give(w)
	}
}

// coming is a worker that was started before there is a job for it.
type coming struct {
	cancel context.CancelFunc
	done   chan struct{}
	w      *process // nil if it failed to start; the job then reports the reason, with its own worker
}

// Ahead starts workers for coming small builds, up to the given number. It is for commands that will
// certainly build, and does not wait.
func Ahead(workers int) {
	p := enabled.Load()
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(p.idle)+len(p.coming)+len(p.small) < min(workers, mostSmall) {
		ctx, cancel := context.WithCancel(context.Background())
		c := &coming{cancel: cancel, done: make(chan struct{})}
		p.coming = append(p.coming, c)
		go func() {
			defer close(c.done)
			c.w, _ = start(ctx, p.limits.forJob(&Job{Small: true}))
		}()
	}
}

// Cause is the reason why a worker ended.
type Cause string

// Causes of the end of a worker.
const (
	CPU      Cause = "cpu"
	Memory   Cause = "memory"
	Killed   Cause = "killed"   // from outside, or by the kernel if memory is short
	Crashed  Cause = "crashed"  // kustomize crashed its process
	Nonsense Cause = "nonsense" // the answer was invalid
)

// Ended reports that the worker of a build ended.
type Ended struct {
	Cause  Cause
	Limits Limits
}

func (e *Ended) Error() string { return "the process of the build was ended: " + string(e.Cause) }

// pool has the workers of this process.
type pool struct {
	limits       Limits
	small, large chan struct{} // a slot for each busy worker

	mu     sync.Mutex
	idle   []*process // for small jobs; the most recently used is last
	coming []*coming  // for small jobs, not yet used
	closed bool
	trim   *time.Timer
}

// run builds a job in a worker, and waits for a slot first. An error of the build is returned as it is. If
// the worker ends during the job or exceeds a limit, the error is an Ended. A killed worker is replaced
// once, because the build may not have been the cause. Only workers of small jobs that used little memory
// are kept for the next job.
func (p *pool) run(ctx context.Context, j *Job, ask Asker) ([]*yaml.Node, error) {
	slots, limits := p.large, p.limits.forJob(j)
	if j.Small {
		slots = p.small
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	job := encodeJob(j)
	for again := false; ; again = true {
		w, err := p.acquire(ctx, limits, again || !j.Small)
		if err != nil {
			return nil, err
		}
		a := w.build(ctx, job, j.Nodes, ask)
		if !a.lost {
			if j.Spent != nil && time.Duration(j.Spent.Add(int64(a.cpu-w.used))) > limits.CPU && a.err == nil {
				a = answer{err: &Ended{Cause: CPU, Limits: limits}, cpu: a.cpu, memory: a.memory}
			}
			w.used = a.cpu
			if j.Small && a.cpu < limits.CPU && a.memory < keepMemory {
				p.give(w)
			} else {
				w.end()
			}
			return a.nodes, a.err
		}
		cause := w.end()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(a.err, errWire) {
			cause = Nonsense
		}
		// If a worker was killed, its build may not be the cause. An idle worker may also have died since its
		// last use.
		if cause != Killed || again {
			return nil, &Ended{Cause: cause, Limits: limits}
		}
	}
}

// acquire returns an idle or a new worker. After a worker was killed, fresh requests a new one, because other
// idle workers may be dead too. Only small jobs use idle workers.
func (p *pool) acquire(ctx context.Context, l Limits, fresh bool) (*process, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errors.New("the process that builds run in was stopped")
	}
	if n := len(p.idle); n > 0 && !fresh {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return w, nil
	}
	var c *coming
	if len(p.coming) > 0 && !fresh {
		c, p.coming = p.coming[0], p.coming[1:]
	}
	p.mu.Unlock()
	if c != nil {
		if w := c.wait(ctx); w != nil {
			return w, nil
		}
	}
	return start(ctx, l)
}

// wait returns the worker once it is ready, or nil if it failed to start or ctx ends.
func (c *coming) wait(ctx context.Context) *process {
	defer c.cancel()
	select {
	case <-c.done:
		return c.w
	case <-ctx.Done():
		go c.end()
		return nil
	}
}

// end ends the worker, even if it is not ready.
func (c *coming) end() {
	c.cancel()
	if <-c.done; c.w != nil {
		c.w.end()
	}
}

// give returns a worker to the pool for the next build.
func (p *pool) give(w *process) {
	w.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		go w.end()
		return
	}
	p.idle = append(p.idle, w)
	if p.trim == nil {
		p.trim = time.AfterFunc(keepFor, p.shrink)
	}
}

// shrink ends workers that were idle for too long.
func (p *pool) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trim = nil
	for len(p.idle) > 0 {
		most := keepFor / 2
		if len(p.idle) == 1 {
			most = keepLast
		}
		if time.Since(p.idle[0].since) < most {
			break
		}
		go p.idle[0].end()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	if len(p.idle) > 0 && !p.closed {
		p.trim = time.AfterFunc(keepFor, p.shrink)
	}
}

// close ends all workers that have no job, and waits for them. Workers with a job end after it.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	idle, coming := p.idle, p.coming
	p.idle, p.coming = nil, nil
	if p.trim != nil {
		p.trim.Stop()
	}
	p.mu.Unlock()
	var ends sync.WaitGroup
	for _, c := range coming {
		ends.Go(c.end)
	}
	for _, w := range idle {
		ends.Go(func() { w.end() })
	}
	ends.Wait()
}
