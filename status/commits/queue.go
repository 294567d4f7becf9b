package commits

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/wording"
)

// queue posts to one forge. What is to be posted is in the tracks; the queue
// holds what it learnt about the forge. Only its worker uses it, save for wake.
type queue struct {
	forge Forge
	wake  chan struct{}
	Limit *rate.Limiter
	// known holds the statuses that commits have, as last read or written. The
	// first write to a commit is preceded by a reading.
	known map[string]map[string]forge.CommitStatus
	// notBefore is when the forge, by its own word, may be asked again.
	notBefore time.Time
	// denied counts the refusals of the token in a row, and deniedUntil is when
	// it is tried again: somebody mends the token or the permission in time.
	denied      int
	deniedUntil time.Time
}

func newQueue(f Forge, share int) *queue {
	q := &queue{forge: f, wake: make(chan struct{}, 1), known: map[string]map[string]forge.CommitStatus{}, Limit: rate.NewLimiter(rate.Inf, 1)}
	if n := f.Limits().PerMinute / share; n > 0 {
		// Half of a minute's budget may go at once: the statuses of one push.
		q.Limit = rate.NewLimiter(rate.Limit(float64(n)/60), max(1, n/2))
	}
	return q
}

// nudge has the worker look again; it never blocks.
func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

const (
	// RequestTimeout bounds one request to a forge.
	RequestTimeout = 20 * time.Second
	// MissingTries bounds the tries of what forges call missing, for what is not
	// worth more: Gitea answers so for about a second after a push, GitHub at
	// times for longer.
	MissingTries = 7
	// verdictTries is the same for verdicts and for what must not stay pending:
	// about half an hour as the other delays go, then a day of tries each slowDelay.
	verdictTries = 15 + 96
	firstDelay   = 500 * time.Millisecond
	longestDelay = 5 * time.Minute
	SlowDelay    = 15 * time.Minute
	// manyTries is when a status goes over to slowDelay.
	manyTries = 15
	// FirstDenied doubles with each refusal of the token, up to slowDelay.
	FirstDenied = 2 * time.Second
)

// job is one status to post.
type job struct {
	sha  string
	want forge.CommitStatus
	// again leaves a verdict as it is until there is the next one.
	again bool
}

// work posts until ctx ends; when draining, until nothing is left.
func (c *Commits) work(ctx context.Context, source string, q *queue, drain bool) {
	for ctx.Err() == nil {
		j, wait, ok := c.next(source, q)
		if deadline, bound := ctx.Deadline(); !ok && drain && (wait == 0 || bound && wait > time.Until(deadline)) {
			return // nothing is left, or nothing that there is time for
		}
		if !ok {
			if !Pause(ctx, wait, q.wake) {
				return
			}
			continue
		}
		// The journal precedes the write. Without it a crash could leave a
		// pending behind, so nothing is posted until it can be written.
		if err := c.save(false); err != nil {
			c.o.Logger.Error("write of the status journal failed", "error", err)
			if !Pause(ctx, 10*time.Second, nil) {
				return
			}
			continue
		}
		if q.Limit.Wait(ctx) != nil {
			return
		}
		c.done(source, q, j, c.post(ctx, q, j))
	}
}

// Pause waits for d, for a nudge, or for ctx; false says that ctx ended. A d of
// 0 waits for a nudge, and looks again each minute for what time alone changes.
func Pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	if d <= 0 {
		d = time.Minute
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return true
}

// next is the status to post now. Where there is none, wait says when there
// will be, 0 if nothing is wanted. Verdicts go before pending, the aggregate
// before targets; pending that was not posted in time is never posted.
func (c *Commits) next(source string, q *queue) (found job, wait time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Now()
	c.tidy(source, q, now)
	best := -1
	aggregate := c.aggregateContext(source)
	for _, t := range c.tracks[source] {
		for name, ct := range t.Contexts {
			if !ct.open() {
				continue
			}
			due := Latest(ct.notBefore, q.notBefore, q.deniedUntil)
			if delay := due.Sub(now); delay > 0 {
				if wait == 0 || delay < wait {
					wait = delay
				}
				continue
			}
			score := 0
			if ct.Want.State.Final() {
				score += 2
			}
			if name == aggregate {
				score++
			}
			if score > best || score == best && name < found.want.Context {
				best, found = score, job{sha: t.SHA, want: ct.Want, again: t.Pull != 0 && ct.Want.State == forge.Pending && !ct.Stays}
			}
		}
	}
	return found, wait, best >= 0
}

func Latest(first time.Time, more ...time.Time) time.Time {
	for _, t := range more {
		if t.After(first) {
			first = t
		}
	}
	return first
}

// errUnchanged says that the commit has the status already.
var errUnchanged = errors.New("status is unchanged")

// errKept says that a verdict stays until there is the next one.
var errKept = errors.New("status is kept")

// post reads what the commit has, once, and writes what differs. After a write
// of which nobody knows whether it took effect the next one reads again.
func (c *Commits) post(ctx context.Context, q *queue, j job) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	known, read := q.known[j.sha]
	if !read {
		var err error
		known, err = q.forge.Statuses(ctx, j.sha)
		var refusal *forgehttp.Error
		switch {
		case err == nil:
			q.known[j.sha] = known
		case errors.As(err, &refusal) && (refusal.Fault == forgehttp.FaultDenied || refusal.Fault == forgehttp.FaultRefused):
			// A token may be good for writing only.
			known = map[string]forge.CommitStatus{}
		default:
			return err
		}
	}
	has := known[j.want.Context]
	if has == j.want {
		return errUnchanged
	}
	if j.again && (has.State == forge.Success || has.State == forge.Failure) {
		return errKept
	}
	if err := q.forge.SetStatus(ctx, j.sha, j.want); err != nil {
		if Unclear(err) {
			delete(q.known, j.sha)
		}
		return err
	}
	known[j.want.Context] = j.want
	q.known[j.sha] = known
	return nil
}

// Unclear reports whether a failed write may have taken effect: there was no
// answer, or one that is not the forge's own refusal.
func Unclear(err error) bool {
	var refusal *forgehttp.Error
	return !errors.As(err, &refusal) || refusal.Status/100 != 4
}

// done records how a write ended.
func (c *Commits) done(source string, q *queue, j job, err error) {
	result, kept := "written", errors.Is(err, errKept)
	var refusal *forgehttp.Error
	switch {
	case errors.Is(err, errUnchanged), kept:
		result, err = "unchanged", nil
	case errors.As(err, &refusal):
		result = string(refusal.Fault)
	case err != nil:
		refusal = &forgehttp.Error{Forge: string(q.forge.Kind()), Fault: forgehttp.FaultBusy, Message: err.Error(), Err: err}
		result = string(forgehttp.FaultBusy)
	}
	if c.o.Wrote != nil {
		c.o.Wrote(string(q.forge.Kind()), j.want.State, result)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case kept:
	case j.want.State == forge.Pending && (err == nil || Unclear(err)):
		c.noteShown(source, j, true)
	case err == nil:
		c.noteShown(source, j, false)
	}
	ct := c.find(source, j)
	if err == nil {
		if q.denied > 0 {
			c.o.Logger.Info("commit statuses are accepted again", "source", source, "forge", string(q.forge.Kind()))
		}
		q.denied, q.deniedUntil = 0, time.Time{}
		c.stale = true
		if ct != nil {
			ct.Delivered = true
		}
		return
	}
	if refusal.After > 0 {
		q.notBefore = c.o.Now().Add(refusal.After)
	}
	log := c.o.Logger.With("source", source, "forge", string(q.forge.Kind()), "revision", wording.Short(j.sha),
		"context", j.want.Context, "state", string(j.want.State), "error", c.o.Redact.Text(refusal.Error()))
	if refusal.Fault == forgehttp.FaultDenied {
		// One refusal stands for all contexts: the token is what is refused.
		q.denied++
		wait := Doubled(FirstDenied, q.denied, SlowDelay)
		q.deniedUntil = c.o.Now().Add(wait)
		if q.denied == 1 {
			log.Error("commit statuses are refused; they are tried again until the token is accepted")
		} else {
			log.Debug("commit statuses are still refused", "again", wait)
		}
		return
	}
	if ct == nil {
		return // another status is wanted by now
	}
	ct.tries++
	log = log.With("tries", ct.tries)
	switch {
	case refusal.Fault == forgehttp.FaultRefused,
		refusal.Fault == forgehttp.FaultMissing && ct.tries >= ct.mostTries():
		ct.gaveUp = true
		log.Error("commit status is given up")
	default:
		ct.notBefore = c.o.Now().Add(Backoff(ct.tries))
		if ct.tries == 1 {
			log.Warn("commit status is tried again")
		} else {
			log.Debug("commit status is tried again")
		}
	}
}

// mostTries is how often a commit that is missing is tried. What a superseded
// commit never showed is worth little, as is a pending; a verdict is worth more.
func (c *contextTrack) mostTries() int {
	if c.Shown || c.Want.State == forge.Success || c.Want.State == forge.Failure {
		return verdictTries
	}
	return MissingTries
}

// find returns the context that j was taken from, nil if it wants something
// else by now.
func (c *Commits) find(source string, j job) *contextTrack {
	for _, t := range c.tracks[source] {
		if t.SHA != j.sha {
			continue
		}
		if ct := t.Contexts[j.want.Context]; ct != nil && ct.Want == j.want {
			return ct
		}
	}
	return nil
}

// Backoff doubles with each try, up to longestDelay, and goes on slowly where
// that did not help.
func Backoff(tries int) time.Duration {
	if tries >= manyTries {
		return SlowDelay
	}
	return Doubled(firstDelay, tries, longestDelay)
}

// Doubled is d after n-1 doublings, at most limit.
func Doubled(d time.Duration, n int, limit time.Duration) time.Duration {
	for range n - 1 {
		if d *= 2; d >= limit {
			return limit
		}
	}
	return d
}
