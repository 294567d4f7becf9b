package commits

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/outbox"
	"github.com/weir-gitops/weir/status/wording"
)

// queue posts to one forge. The statuses to post are in the tracks. Only its worker
// uses known.
type queue struct {
	forge Forge
	box   *outbox.Outbox
	// known holds the statuses that commits have, as last read or written. The
	// first write to a commit is preceded by a reading.
	known map[string]map[string]forge.CommitStatus
	late  lateWrites
	// doubted says that another weir may have written since known was read.
	doubted atomic.Bool
}

func newQueue(f Forge, share int, now func() time.Time) *queue {
	return &queue{forge: f, box: outbox.New(forgeDelays, f.Profile().Limits.PerMinute/share, now), known: map[string]map[string]forge.CommitStatus{}, late: lateWrites{}}
}

// forget lets go of a commit.
func (q *queue) forget(sha string) {
	delete(q.known, sha)
	maps.DeleteFunc(q.late, func(id contextID, _ lateWrite) bool { return id.sha == sha })
}

// forgeDelays are the times between tries of a write to a forge: about half an hour,
// then each quarter of an hour.
var forgeDelays = outbox.Delays{First: 500 * time.Millisecond, Longest: 5 * time.Minute, Many: 15, Slow: 15 * time.Minute}

// Beside is another way to the forge of a source, which shares the limit.
func (c *Commits) Beside(source string) *outbox.Outbox { return c.queues[source].box.Beside() }

const (
	// RequestTimeout bounds one request to a forge.
	RequestTimeout = 20 * time.Second
	// MissingTries bounds the tries of writes whose target the forge calls missing,
	// where more are not worth it: Gitea answers so for about a second after a
	// push, GitHub at times for longer.
	MissingTries = 7
	// LastingTries is the same for verdicts and for statuses that must not stay pending: a day of
	// tries once forgeDelays are slow.
	LastingTries = 15 + 96
)

// job is one status to post.
type job struct {
	sha  string
	want forge.CommitStatus
	// keep leaves a verdict as it is: this is none, and comes before the next one, or
	// instead of one.
	keep bool
}

// work posts until ctx ends; when draining, until nothing is left.
func (c *Commits) work(ctx context.Context, source string, q *queue, drain bool) {
	outbox.Work(ctx, q.box, drain, func() (job, time.Duration, bool) { return c.next(source, q) }, func(ctx context.Context, j job) {
		// The journal precedes the write. Without it a crash could leave a
		// pending behind, so nothing is posted until it can be written.
		if err := c.save(false); err != nil {
			c.o.Logger.Error("write of the status journal failed", "error", err)
			q.box.Failed(nil, outbox.Failure{After: 10 * time.Second})
			return
		}
		if q.box.Wait(ctx) == nil && c.storeOf(source) != nil {
			if q.late.over(j, c.o.Now()) {
				delete(q.known, j.sha) // the forge must be read again
			}
			if q.doubted.Swap(false) {
				clear(q.known)
			}
			if !drain {
				var end context.CancelFunc
				ctx, end = lasting(ctx)
				defer end()
			}
			if err := c.post(ctx, source, q, j); !errors.Is(err, errNotOurs) {
				c.done(source, q, j, err)
			}
		}
	})
}

// lastMoments is the time that a write under way may continue once weir stops. A write that is cut
// off may take effect all the same, and what follows it is in doubt for minutes.
const lastMoments = 2 * time.Second

// lasting ends lastMoments after ctx.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(lastMoments, cancel)
		context.AfterFunc(own, func() { timer.Stop() })
	})
	return own, func() { stop(); cancel() }
}

// next is the status to post now. Without one, wait says when there will be, 0 if
// nothing is wanted. Verdicts go before pending, the aggregate before targets;
// pending that was not posted in time is never posted.
func (c *Commits) next(source string, q *queue) (found job, wait time.Duration, ok bool) {
	if c.storeOf(source) == nil {
		return job{}, 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tracks[source] {
		c.sum(t)
	}
	c.tidy(source, q, c.o.Now())
	aggregate := c.aggregateContext(source)
	score := func(j job) (n int) {
		if j.want.State.Final() {
			n = 2
		}
		if j.want.Context == aggregate {
			n++
		}
		return n
	}
	return outbox.Pick(q.box, func(yield func(*outbox.Entry, job) bool) {
		for _, t := range c.tracks[source] {
			for _, ct := range t.Contexts {
				j := job{sha: t.SHA, want: ct.Want, keep: t.Pull != 0 && (ct.Want.State == forge.Pending && !ct.Stays || ct.Want.State == forge.Errored)}
				if !ct.Delivered && !yield(&ct.entry, j) {
					return
				}
			}
		}
	}, func(a, b job) bool {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.want.Context, b.want.Context)) < 0
	})
}

// errUnchanged says that the status is on the commit already.
var errUnchanged = errors.New("status is unchanged")

// errKept says that a verdict stays until there is the next one.
var errKept = errors.New("status is kept")

// errNotOurs says that another weir speaks for the source by now.
var errNotOurs = errors.New("another weir speaks for the source")

// post reads the commit's statuses once, and writes those that differ. After a write that may or
// may not have taken effect the next post reads again.
func (c *Commits) post(ctx context.Context, source string, q *queue, j job) error {
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
			q.late.read(j.sha, known)
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
	if j.keep && (has.State == forge.Success || has.State == forge.Failure) {
		return errKept
	}
	if c.storeOf(source) == nil { // the forge may have taken its time
		return errNotOurs
	}
	if err := q.forge.SetStatus(ctx, j.sha, j.want); err != nil {
		if Unclear(err) {
			delete(q.known, j.sha)
		}
		if mayBeLate(err) {
			q.late.add(j, c.o.Now())
		}
		return err
	}
	known[j.want.Context] = j.want
	q.known[j.sha] = known
	return nil
}

// Unclear reports whether a failed write may have taken effect: the answer is missing, or is not
// the forge's own refusal.
func Unclear(err error) bool {
	var refusal *forgehttp.Error
	return !errors.As(err, &refusal) || refusal.Status/100 != 4
}

// ending is the way in which a write of a status ended.
type ending string

const (
	taken    ending = "the commit has the status"
	kept     ending = "the commit keeps its verdict"
	doubtful ending = "the commit may have the status"
	refused  ending = "the commit does not have the status"
)

func endingOf(err error) ending {
	switch {
	case err == nil, errors.Is(err, errUnchanged):
		return taken
	case errors.Is(err, errKept):
		return kept
	case Unclear(err):
		return doubtful
	}
	return refused
}

// shows reports whether readers of the commit may see a status after its write. Pending, which must
// not stay, counts in case of doubt.
func (e ending) shows(state forge.CommitState) bool {
	return e == taken || e == doubtful && state == forge.Pending
}

// refusalOf returns the forge's refusal. Any other failure counts as one that passes.
func (q *queue) refusalOf(err error) *forgehttp.Error {
	var refusal *forgehttp.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return &forgehttp.Error{Forge: q.forge.Profile().Label, Fault: forgehttp.FaultBusy, Message: err.Error(), Err: err}
}

// done records how a write ended.
func (c *Commits) done(source string, q *queue, j job, err error) {
	is := endingOf(err)
	failed := is == doubtful || is == refused
	result := "written"
	if failed {
		result = string(q.refusalOf(err).Fault)
	} else if err != nil {
		result = "unchanged"
	}
	if c.o.Wrote != nil {
		c.o.Wrote(q.forge.Profile().Label, j.want.State, result)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if is.shows(j.want.State) {
		c.noteShown(source, j, j.want.State == forge.Pending)
	}
	ct := c.find(source, j)
	if failed {
		c.failed(source, q, j, ct, q.refusalOf(err))
		return
	}
	if q.box.Succeeded() {
		c.o.Logger.Info("commit statuses are accepted again", "source", source, "forge", q.forge.Profile().Label)
	}
	c.stale = true
	if ct != nil {
		c.delivered(q, j, ct)
	}
}

// delivered records that a commit has the status that is wanted. It is written again later if an
// earlier write may still take effect.
func (c *Commits) delivered(q *queue, j job, ct *contextTrack) {
	if c.o.Now().Before(ct.late) {
		q.late[j.id()] = lateWrite{forge.CommitStatus{Context: j.want.Context}, ct.late}
		ct.late = time.Time{}
	}
	late, doubt := q.late[j.id()]
	if !doubt {
		ct.Delivered = true
		return
	}
	ct.written = true
	ct.entry.Delay(late.until)
}

// failed records that a write failed. ct is nil if another status is wanted by now.
func (c *Commits) failed(source string, q *queue, j job, ct *contextTrack, refusal *forgehttp.Error) {
	failure, entry := FailureOf(refusal), (*outbox.Entry)(nil)
	if ct != nil {
		entry = &ct.entry
		if refusal.Fault == forgehttp.FaultMissing {
			failure.Most = ct.mostTries()
		}
	}
	outcome := q.box.Failed(entry, failure)
	log := c.o.Logger.With("source", source, "forge", q.forge.Profile().Label, "revision", wording.Short(j.sha),
		"context", j.want.Context, "state", string(j.want.State), "error", c.o.Redact.Text(refusal.Error()))
	switch outcome {
	case outbox.FirstDenied:
		// One refusal stands for all contexts: it is the token that the forge
		// refuses.
		log.Error("commit statuses are refused; they are tried again until the token is accepted")
	case outbox.Denied:
		log.Debug("commit statuses are still refused")
	case outbox.GivenUp:
		log.Error("commit status is given up", "tries", entry.Tries())
	case outbox.FirstAgain:
		log.Warn("commit status is tried again", "tries", entry.Tries())
	case outbox.Again:
		log.Debug("commit status is tried again", "tries", entry.Tries())
	case outbox.Superseded: // another status is wanted by now
	}
}

// FailureOf translates a forge's refusal for an outbox.
func FailureOf(refusal *forgehttp.Error) outbox.Failure {
	return outbox.Failure{After: refusal.After, Denied: refusal.Fault == forgehttp.FaultDenied, Final: refusal.Fault == forgehttp.FaultRefused}
}

// mostTries bounds the tries for a commit that is missing. A status that a superseded commit never
// showed gets few tries, as does a pending one; a verdict gets more.
func (c *contextTrack) mostTries() int {
	if c.Shown || c.Want.State == forge.Success || c.Want.State == forge.Failure {
		return LastingTries
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
