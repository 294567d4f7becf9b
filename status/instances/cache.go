package instances

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

const (
	// fresh is the time for which AWS's answer about an instance is used again. failedFor is the same for
	// an error.
	fresh     = 30 * time.Second
	failedFor = 5 * time.Second
	// patience bounds the calls to AWS for one instance. Clients wait 10 seconds for an answer.
	patience = 6 * time.Second
	// mostCached bounds the number of remembered answers.
	mostCached = 1000
)

// ReadFunc reads an instance from the account and region of a target.
type ReadFunc func(ctx context.Context, target, id string) (observed.Machine, error)

// Cache reads instances from AWS when somebody asks, at most once in 30 seconds for each instance.
type Cache struct {
	read ReadFunc
	now  func() time.Time

	mu      sync.Mutex
	entries map[string]*entry
}

// entry is the answer about an instance. done is closed when the answer is there.
type entry struct {
	done    chan struct{}
	machine observed.Machine
	err     error
	until   time.Time
}

// NewCache returns a cache of the answers of read.
func NewCache(read ReadFunc, now func() time.Time) *Cache {
	return &Cache{read: read, now: now, entries: map[string]*entry{}}
}

// Machine returns the facts about an instance. Concurrent callers share one read.
func (c *Cache) Machine(ctx context.Context, target, id string) (observed.Machine, error) {
	e, mine := c.entry(target + " " + id)
	if mine {
		c.fill(ctx, e, target, id)
		return e.machine, e.err
	}
	select {
	case <-e.done:
		return e.machine, e.err
	case <-ctx.Done():
		return observed.Machine{}, ctx.Err()
	}
}

// AddFacts adds the facts that AWS reports about an instance of a pool.
func (c *Cache) AddFacts(ctx context.Context, a *Answer) error {
	m, err := c.Machine(ctx, a.Target, a.Instance.ID)
	if err == nil {
		a.Add(m)
	}
	return err
}

// fill reads an instance. It continues even if its caller leaves, because other callers wait for the answer.
func (c *Cache) fill(ctx context.Context, e *entry, target, id string) {
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
	e.machine, e.err = c.read(ctx, target, id)
}

var errInterrupted = errors.New("the read was interrupted")

// entry returns the answer about an instance that is still valid or is being read. If mine is true, the
// caller must read it.
func (c *Cache) entry(key string) (e *entry, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if e = c.entries[key]; e != nil && (e.until.IsZero() || now.Before(e.until)) {
		return e, false
	}
	if len(c.entries) >= mostCached {
		for k, old := range c.entries {
			if !old.until.IsZero() {
				delete(c.entries, k)
			}
		}
	}
	e = &entry{done: make(chan struct{})}
	c.entries[key] = e
	return e, true
}
