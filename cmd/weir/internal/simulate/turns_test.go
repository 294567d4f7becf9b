package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

// call is one that a daemon makes, and that waits for its turn.
type call struct {
	daemon *daemon
	// Service is aws or git. Name is what is asked, body with what; both are the same in
	// every run of a seed.
	service, name, body string
	region              string // of AWS
	write               bool
	fate                fate
	turn                chan struct{}
}

func (c *call) key() string { return c.daemon.id + " " + c.service + " " + c.name + " " + c.body }

// told is what the notes say of it.
func (c *call) told() string {
	if c.service == "engine" {
		return c.name + " " + c.body
	}
	return c.name
}

// queue are the calls that wait.
type queue struct {
	mu      sync.Mutex
	calls   []*call
	arrived chan struct{}
}

func (q *queue) add(c *call) {
	q.mu.Lock()
	q.calls = append(q.calls, c)
	q.mu.Unlock()
	q.wake()
}

// wake has the world look what there is to do.
func (q *queue) wake() {
	select {
	case q.arrived <- struct{}{}:
	default:
	}
}

func (q *queue) drop(c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.calls, c); i >= 0 {
		q.calls = slices.Delete(q.calls, i, i+1)
	}
}

// waits reports whether a call waits, once all goroutines do: no more arrive then.
func (q *queue) waits() bool {
	select {
	case <-q.arrived:
	default:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls) > 0
}

// take takes one of the calls that wait: those are sorted first, as the order in which
// goroutines came is nobody's.
func (q *queue) take(r *rand.Rand) *call {
	q.mu.Lock()
	defer q.mu.Unlock()
	slices.SortStableFunc(q.calls, func(a, b *call) int { return cmp.Compare(a.key(), b.key()) })
	i := r.IntN(len(q.calls))
	c := q.calls[i]
	q.calls = slices.Delete(q.calls, i, i+1)
	return c
}

var errDead = errors.New("the process of this call was killed")

// errNetwork is what a client sees where a connection ends.
var errNetwork = errors.New("connection reset by the simulation")

// ask has a call wait for its turn, lets it have its effect, and answers it, as its fate is.
// Every call of a daemon goes this way, whatever it calls.
func (w *World) ask(ctx context.Context, c *call, effect func()) error {
	c.daemon.runs()
	c.turn = make(chan struct{})
	w.queue.add(c)
	select {
	case <-c.turn:
	case <-c.daemon.dead:
		w.queue.drop(c)
		return errDead
	case <-ctx.Done():
		w.queue.drop(c)
		return c.daemon.ended(ctx)
	}
	takes := c.fate.takes
	switch {
	case c.fate.late > 0:
		w.at(c.fate.late, effect)
	case !c.fate.without:
		effect()
	case !c.fate.hangs:
		return errNetwork
	}
	if c.fate.hangs {
		takes = time.Hour
	}
	select {
	case <-time.After(takes):
	case <-c.daemon.dead:
		return errDead
	case <-ctx.Done():
		return c.daemon.ended(ctx)
	}
	c.daemon.runs()
	if c.fate.lost || c.fate.hangs {
		return errNetwork
	}
	return nil
}

// ended is why a call ends whose context does.
func (d *daemon) ended(ctx context.Context) error {
	select {
	case <-d.dead:
		return errDead
	default:
		return context.Cause(ctx)
	}
}

// reseed restarts the source of random numbers after a process was killed. Go picks at
// random whether a goroutine of that process notices first that it is cancelled or that its
// call ended, and so how many numbers it takes.
func (w *World) reseed() {
	if w.died {
		w.died = false
		cryptotest.SetGlobalRandom(w.t, w.o.Seed+uint64(w.step)<<32)
	}
}

// run makes steps until a moment.
func (w *World) run(until time.Time) {
	for {
		synctest.Wait()
		if then := w.killAfter; then != nil {
			w.killAfter = nil
			then()
			continue
		}
		if w.queue.waits() {
			w.step++
			w.collect()
			w.reseed()
			r := w.dice(w.step)
			c := w.queue.take(r)
			w.decide(c, r)
			if c.service != "engine" || c.write || c.fate.name != "" {
				w.trace("%s %s%s", c.daemon.id, c.told(), c.fate)
			}
			close(c.turn)
			continue
		}
		next := until
		if len(w.events) > 0 && w.events[0].at.Before(next) {
			next = w.events[0].at
		}
		select {
		case <-w.queue.arrived:
		case <-time.After(time.Until(next)):
		}
		synctest.Wait() // what waits for this very moment comes first
		switch {
		case w.queue.waits():
		case len(w.events) > 0 && !w.events[0].at.After(time.Now()):
			e := w.nextEvent()
			e.do()
		case !time.Now().Before(until):
			return
		}
	}
}

// collect collects garbage from time to time. All wait, so that none is interrupted.
func (w *World) collect() {
	const every = 256 << 20
	metrics.Read(w.allocated[:])
	if now := w.allocated[0].Value.Uint64(); now-w.collected > every {
		w.collected = now
		runtime.GC()
	}
}

// dice are those of one step of the seed.
func (w *World) dice(step int) *rand.Rand {
	return rand.New(rand.NewPCG(w.o.Seed, uint64(step))) //nolint:gosec // It is repeated on purpose.
}

// trace notes what happened. Two runs of a seed have the same notes.
func (w *World) trace(format string, args ...any) {
	line := fmt.Sprintf("%s %d ", time.Now().UTC().Format("01-02 15:04:05.000"), w.step) + fmt.Sprintf(format, args...)
	_, _ = io.WriteString(w.sum, line+"\n")
	if w.o.Log != nil {
		_, _ = io.WriteString(w.o.Log, line+"\n")
	}
	const most = 400
	if w.last = append(w.last, line); len(w.last) > 2*most {
		w.last = slices.Clone(w.last[most:])
	}
}

// Sum stands for all that happened.
func (w *World) Sum() uint64 { return w.sum.Sum64() }

var newSum = fnv.New64a

// Last is what happened last, a line each.
func (w *World) Last(n int) string { return strings.Join(w.last[max(0, len(w.last)-n):], "\n") }
