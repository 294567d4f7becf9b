package commits

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/outbox"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// Commits writes commit statuses: the aggregate context <instance>/apply on every commit that a
// source with a forge reaches, and <instance>/apply/<target> for each target that the commit
// touches.
//
//	pending  a pass of the commit is due or under way, or a rollout that it
//	         started is in progress, or it waits (suspension, approval, AWS throttling)
//	success  every touched pool has converged, or no target is affected and none is
//	         left failing by the commit before
//	failure  a fault in the files, a failed step, a conflict, a refused prune
//	error    no verdict: a newer commit came first, or weir was stopped
//
// A journal holds the wanted statuses before the first "pending" is posted, so that a crash leaves
// no "pending" behind: the next process continues or closes them.
type Commits struct {
	o      Options
	queues map[string]*queue // by source

	journal journal

	mu     sync.Mutex
	tracks map[string][]*track // by source, the current one last
	turn   int                 // the last turn of a track
	// heads holds the statuses that open pull requests want for their heads, by source and number.
	heads map[string]map[int64]HeadStatus
	// waiting are commits of sources that have no forge now: the journal keeps them
	// until a process in which a forge is configured again.
	waiting []*track
	// keep bounds the waiting superseded commits without a visible pending status.
	keep    int
	changed bool // a change must be in the journal before the next write
	stale   bool // a change is missing in the journal
}

// Options configures Commits.
type Options struct {
	Instance string
	// PageURL is the address of weir's page as people reach it; empty leaves
	// out the link.
	PageURL string
	// Forges holds the forge of each source that has one, by the source's name.
	Forges map[string]Forge
	// Store holds the journal.
	Store state.Store
	// Held returns the store for the journal of a source, nil if another weir owns the source:
	// nothing is posted then. Without Held this weir owns all sources.
	Held   func(source string) state.Store
	Redact report.Redact
	Logger *slog.Logger
	// Wrote is called after each write, for metrics; it may be nil. Result is
	// "written", "unchanged", or a Fault.
	Wrote func(forge string, state forge.CommitState, result string)
	// Now defaults to time.Now.
	Now func() time.Time
}

// Revision is a commit that a source reached.
type Revision struct {
	Source string
	SHA    string
	// Touched names the targets whose render the commit changed, and those that it leaves with a
	// fault: a success would look as if it were applied there. On the first revision after a start
	// it names all targets of the source. Removed names those that the commit removed: their
	// resources stay in AWS.
	Touched, Removed []string
	// Err is the reason why the commit as a whole cannot be rendered.
	Err error
}

// RecoveryGrace is the time that "pending" of an earlier process may stay until its source is read
// again.
const RecoveryGrace = 2 * time.Minute

// New reads the journal of an earlier process, if there is one.
func New(o Options) (*Commits, error) {
	return NewNamed(o, journalBucket, maxSuperseded, 1)
}

const journalBucket = "commit-statuses"

// Check fails where New would not be able to read its journal, and changes nothing.
func Check(store state.Store) error {
	return store.View(func(tx *state.Tx) error {
		return state.Bucket[json.RawMessage]{Name: journalBucket}.ForEach(tx, "", func(string, json.RawMessage) error { return nil })
	})
}

// NewNamed reads the journal of the given name. keep bounds the waiting commits that are not the
// last of their source. share is their part of what a forge accepts in a minute: one in share.
func NewNamed(o Options, bucket string, keep, share int) (*Commits, error) {
	if o.Instance == "" || o.Store == nil || o.Logger == nil {
		return nil, errors.New("make commit statuses: instance, store and logger are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Commits{
		o: o, queues: map[string]*queue{}, tracks: map[string][]*track{}, heads: map[string]map[int64]HeadStatus{},
		journal: journal{bucket: bucket, written: map[string]uint64{}}, keep: keep,
	}
	for name, f := range o.Forges {
		c.queues[name] = newQueue(f, share, o.Now)
	}
	if err := c.read(""); err != nil {
		return nil, err
	}
	c.waiting = c.waiting[max(0, len(c.waiting)-maxTracks):]
	return c, nil
}

// TakeOver continues with the statuses that the previous owner of a source has left in the journal:
// this weir's knowledge of the source is older.
func (c *Commits) TakeOver(source string) error {
	if c.queues[source] == nil {
		return nil
	}
	defer c.queues[source].box.Nudge()
	c.queues[source].doubted.Store(true)
	return c.read(source)
}

// read reads the journal of a source, or of all.
func (c *Commits) read(source string) error {
	tracks, broken, err := c.journal.read(c.o.Store, source)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if broken != nil {
		c.o.Logger.Error("part of the status journal is left out; statuses of earlier commits may stay pending", "error", broken)
		c.stale = true
	}
	delete(c.tracks, source)
	now := c.o.Now()
	for _, t := range tracks {
		c.turn = max(c.turn, t.Turn)
		if _, ok := c.queues[t.Source]; !ok {
			if !t.finished() {
				c.o.Logger.Warn("commit statuses are left pending: their source has no forge any more", "source", t.Source, "revision", t.SHA)
				c.waiting = append(c.waiting, t)
			}
			continue
		}
		t.recovered = now
		for _, ct := range t.Contexts {
			// Writes after the last save of the journal are missing in it.
			ct.Shown = ct.Shown || ct.Want.State == forge.Pending
			if !ct.Delivered { // the process before may have ended while it wrote
				ct.late = lateUntil(now)
			}
		}
		c.tracks[t.Source] = append(c.tracks[t.Source], t)
	}
	return nil
}

// track is a commit with the statuses that it should have.
type track struct {
	Source   string                   `json:"source"`
	SHA      string                   `json:"sha"`
	Targets  map[string]*targetTrack  `json:"-"`
	Contexts map[string]*contextTrack `json:"-"`
	// Turn orders the commits of a source, Parts says how many parts the journal has of
	// this one.
	Turn  int `json:"turn"`
	Parts int `json:"parts"`
	// Fault is the reason why the commit as a whole cannot be rendered.
	Fault string `json:"fault,omitempty"`
	// Pull is the number of the pull request that its head's status is about, 0 for
	// none.
	Pull int64 `json:"pull,omitempty"`
	// Left are the pools, by target, that earlier commits were still changing on targets that
	// this one does not touch.
	Left map[string]map[string]step.Verb `json:"left,omitempty"`
	// recovered is the time at which the track was read from the journal, zero once its source has
	// reached the commit in this process.
	recovered time.Time
	// unsummed says that the status over all targets must be computed again.
	unsummed bool
}

// contextTrack is the status that a context should have.
type contextTrack struct {
	Want      forge.CommitStatus `json:"want"`
	Delivered bool               `json:"delivered"`
	// Shown says that the forge may show the context as pending while something
	// else is wanted: such a commit is never forgotten.
	Shown bool `json:"shown,omitempty"`
	// Stays says that pending is an answer: it waits for a person, whether weir runs
	// or not.
	Stays bool `json:"stays,omitempty"`

	entry outbox.Entry // of this process
	// written says that this process wrote it, and reads it again: an earlier write may
	// be taken after it.
	written bool
	// late is the time until which a write of an earlier process may still be executed; zero for
	// none.
	late time.Time
}

func (c *contextTrack) open() bool { return !c.Delivered && !c.entry.GaveUp() }

// finished reports whether nothing is left to post of a superseded commit.
func (t *track) finished() bool {
	for _, ct := range t.Contexts {
		if ct.open() || !ct.Delivered && ct.Shown || ct.Want.State == forge.Pending {
			return false
		}
	}
	return true
}

// shown reports whether the forge may show something as pending.
func (t *track) shown() bool {
	for _, ct := range t.Contexts {
		if ct.Shown {
			return true
		}
	}
	return false
}

func (c *Commits) current(source string) *track {
	if list := c.tracks[source]; len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

// Begin records that a source reached a revision, before the pass that applies it. A repeated
// revision continues; another one closes the pending statuses on the earlier commits of the source.
func (c *Commits) Begin(r Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, ok := c.queues[r.Source]
	if !ok || r.SHA == "" {
		return
	}
	defer q.box.Nudge()
	cur := c.current(r.Source)
	// One that was refused as a whole has no targets until it is applied after all.
	if cur == nil || cur.SHA != r.SHA || cur.Fault != "" && r.Err == nil && len(cur.Targets) == 0 {
		next := &track{Source: r.Source, SHA: r.SHA, Targets: map[string]*targetTrack{}, Contexts: map[string]*contextTrack{}}
		for _, name := range append(failed(cur), r.Touched...) {
			next.Targets[name] = &targetTrack{State: forge.Pending, Description: "planning", Pools: unfinished(cur, name)}
		}
		for _, name := range r.Removed {
			next.Targets[name] = &targetTrack{State: forge.Success, Description: removedText, Removed: true}
		}
		next.leave(cur)
		for _, old := range c.tracks[r.Source] {
			if old.SHA == r.SHA {
				continue
			}
			c.close(old, "superseded by "+wording.Short(r.SHA))
			old.Targets = nil // no report changes it any more
		}
		// A branch that is moved back reaches a commit again, with a new verdict.
		var again *track
		if c.tracks[r.Source], again = drop(c.tracks[r.Source], r.SHA); again != nil {
			next.Contexts = again.Contexts
		}
		c.tracks[r.Source] = append(c.tracks[r.Source], next)
		cur = next
	}
	cur.recovered = time.Time{}
	cur.Fault = ""
	if r.Err != nil {
		cur.Fault = c.o.Redact.Text(r.Err.Error())
	}
	c.refresh(cur)
}

// Report processes the results of a pass. Reports of targets that the source's current revision
// does not touch say nothing about the commit. Reports of another revision only say which pools
// that revision answers for: its pass started before, and its changes may still be in progress.
func (c *Commits) Report(_ context.Context, r *plan.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, ok := c.queues[r.Source]
	cur := c.current(r.Source)
	if !ok || cur == nil {
		return
	}
	t := cur.Targets[r.Target]
	if t == nil {
		cur.settle(r)
		return
	}
	if cur.SHA != r.Revision {
		if t.State != forge.Success {
			t.touch(r)
		}
		return
	}
	cur.recovered = time.Time{}
	if t.State == forge.Success {
		return
	}
	t.observe(c.o.Redact.Report(r), c.o.Now())
	c.refreshTarget(cur, r.Target)
	cur.unsummed = true
	q.box.Nudge()
}

// Unfinished are the targets of the sources' current commits that have not converged,
// also those that an earlier process knew.
func (c *Commits) Unfinished() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for source := range c.queues {
		if cur := c.current(source); cur != nil {
			for name, t := range cur.Targets {
				if t.State != forge.Success {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// Forget records that a target is no longer configured: no report will finish it. A failure on it
// stays visible, but no longer belongs to the commit.
func (c *Commits) Forget(target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for source, q := range c.queues {
		cur := c.current(source)
		if cur == nil || cur.Targets[target] == nil || cur.Targets[target].State == forge.Success {
			continue
		}
		if cur.Targets[target].State == forge.Pending {
			c.want(cur, c.targetContext(source, target), forge.Errored, "the target is no longer configured", target)
		}
		delete(cur.Targets, target)
		c.refreshAggregate(cur)
		q.box.Nudge()
	}
}

// Pending returns how many contexts wait to be written.
func (c *Commits) Pending() int { return c.count((*contextTrack).open) }

func (c *Commits) count(is func(*contextTrack) bool) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.tracks {
		for _, t := range list {
			c.sum(t)
			for _, ct := range t.Contexts {
				if is(ct) {
					n++
				}
			}
		}
	}
	return n
}

// Unwritten counts the wanted statuses that were never written: those of Pending without the ones
// that only have to be read again.
func (c *Commits) Unwritten() int {
	return c.count(func(ct *contextTrack) bool { return ct.open() && !ct.written })
}
