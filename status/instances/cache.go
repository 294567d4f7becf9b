package instances

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

const (
	// fresh is the time for which an answer of AWS is used again. failedFor is the same for
	// an error.
	fresh     = 30 * time.Second
	failedFor = 5 * time.Second
	// patience bounds the calls to AWS for one answer. Clients wait 10 seconds for an answer.
	patience = 6 * time.Second
	// mostCached bounds the number of remembered answers.
	mostCached = 1000
	// mostReads bounds the number of reads at the same time, so that readers of the page do not use up AWS's limits.
	mostReads = 4
)

// ReadFunc reads instances from the account and region of a target. It leaves out missing instances.
type ReadFunc func(ctx context.Context, target string, ids []string) ([]observed.Machine, error)

// Cache reads instances from AWS when somebody asks, at most once in 30 seconds for each list of ids.
type Cache struct {
	read  ReadFunc
	now   func() time.Time
	reads chan struct{} // has an element for each read in progress

	mu      sync.Mutex
	entries map[string]*entry
}

// entry is the answer about instances. done is closed when the answer is there.
type entry struct {
	done     chan struct{}
	machines []observed.Machine
	err      error
	until    time.Time
}

// NewCache returns a cache of the answers of read.
func NewCache(read ReadFunc, now func() time.Time) *Cache {
	return &Cache{read: read, now: now, reads: make(chan struct{}, mostReads), entries: map[string]*entry{}}
}

// Machines returns the facts about instances. Concurrent callers share one read.
func (c *Cache) Machines(ctx context.Context, target string, ids []string) ([]observed.Machine, error) {
	e, mine := c.entry(target + " " + strings.Join(ids, " "))
	if mine {
		c.fill(ctx, e, target, ids)
		return e.machines, e.err
	}
	select {
	case <-e.done:
		return e.machines, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// AddFacts adds the facts that AWS reports about an instance of a pool.
func (c *Cache) AddFacts(ctx context.Context, a *Answer) error {
	found, err := c.Machines(ctx, a.Target, []string{a.Instance.ID})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return errors.New("EC2 no longer has the instance")
	}
	a.Add(found[0])
	return nil
}

// Facts returns the facts that AWS reports about instances of a target, by id. It leaves out instances that
// do not exist.
func (c *Cache) Facts(ctx context.Context, target string, ids []string) (map[string]*Facts, error) {
	found, err := c.Machines(ctx, target, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*Facts, len(found))
	for _, m := range found {
		out[m.ID] = factsOf(m)
	}
	return out, nil
}

// fill reads instances. It continues even if its caller leaves, because other callers wait for the answer.
func (c *Cache) fill(ctx context.Context, e *entry, target string, ids []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	e.err = errInterrupted // unless the read returns
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		e.until = c.now().Add(fresh)
		if e.err != nil {
			e.until = c.now().Add(failedFor)
		}
		close(e.done)
	}()
	select {
	case c.reads <- struct{}{}:
		defer func() { <-c.reads }()
		e.machines, e.err = c.read(ctx, target, ids)
	case <-ctx.Done():
		e.err = errBusy
	}
}

var (
	errInterrupted = errors.New("reading from AWS was interrupted")
	errBusy        = errors.New("too many instances are being read at the same time, try again in some seconds")
)

// entry returns the answer that is still valid or is being read. If mine is true, the
// caller must read it.
func (c *Cache) entry(key string) (e *entry, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if e = c.entries[key]; e != nil && (e.until.IsZero() || now.Before(e.until)) {
		return e, false
	}
	full := len(c.entries) >= mostCached
	for k, old := range c.entries {
		if !old.until.IsZero() && (full || !now.Before(old.until)) {
			delete(c.entries, k)
		}
	}
	e = &entry{done: make(chan struct{})}
	c.entries[key] = e
	return e, true
}
