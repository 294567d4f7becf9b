package commits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/outbox"
	"github.com/weir-gitops/weir/status/report"
)

// Commits writes commit statuses: the aggregate context <instance>/apply on every commit that a
// source with a forge reaches, and <instance>/apply/<target> for each target that the commit
// touches.
//
//	pending  a pass of the commit is due or in progress, a rollout that it started is
//	         in progress, or it waits (suspension, approval, AWS throttling)
//	success  every touched pool has converged, or no target is affected and the previous
//	         commit left no target failing
//	failure  an error in the files, a failed step, a conflict, a refused prune
//	error    no verdict: a newer commit replaced this one, or weir was stopped
//
// A journal stores the wanted statuses before the first "pending" is posted. After a crash, the next
// process continues or closes them, so that no "pending" is left behind.
type Commits struct {
	o       *Options
	posters map[string]*poster // by source
	journal *journal
}

// Options configures Commits.
type Options struct {
	Instance string
	// PageURL is the public address of weir's page. If it is empty, statuses have no link.
	PageURL string
	// Forges maps sources to their forges. A source without a forge is not in it.
	Forges map[string]Forge
	// Store contains the journal.
	Store state.Store
	// Held returns the store for the journal of a source. It returns nil if another weir owns the source;
	// nothing is posted then. If Held is nil, this weir owns all sources.
	Held   func(source string) state.Store
	Redact report.Redact
	Logger *slog.Logger
	// Wrote is called after each write, for metrics; it may be nil. Result is "written", "unchanged", or
	// the kind of error.
	Wrote func(forge string, state forge.CommitState, result string)
	// Now defaults to time.Now.
	Now func() time.Time
}

// Revision is a commit that a source has reached.
type Revision struct {
	Source string
	SHA    string
	// Touched lists the targets whose render the commit changed, and the targets on which the previous
	// commit failed: a success would otherwise suggest that the commit was applied there. On the first
	// revision after a start it lists all targets of the source. Removed lists the targets that the commit
	// removed; their resources stay in AWS.
	Touched, Removed []string
	// Err is the reason why the commit as a whole cannot be rendered.
	Err error
}

// RecoveryGrace is the maximum time that a "pending" status of an earlier process may stay until its source
// is read again.
const RecoveryGrace = 2 * time.Minute

// New returns a Commits. It reads the journal of an earlier process, if there is one.
func New(o Options) (*Commits, error) {
	return NewNamed(o, journalBucket, maxSuperseded, 1)
}

const journalBucket = "commit-statuses"

// Check returns an error if New could not read its journal. It changes nothing.
func Check(store state.Store) error {
	return store.View(func(tx *state.Tx) error {
		return state.Bucket[json.RawMessage]{Name: journalBucket}.ForEach(tx, "", func(string, json.RawMessage) error { return nil })
	})
}

// NewNamed is New for a journal with a given name. keep bounds the waiting commits, except the last commit
// of each source. The Commits uses 1/share of the forge's rate limit.
func NewNamed(o Options, bucket string, keep, share int) (*Commits, error) {
	if o.Instance == "" || o.Store == nil || o.Logger == nil {
		return nil, errors.New("make commit statuses: instance, store and logger are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Commits{o: &o, posters: map[string]*poster{}, journal: &journal{
		bucket: bucket, storeOf: o.storeOf, log: o.Logger, now: o.Now, statuses: map[string]*statuses{}, written: map[string]uint64{},
	}}
	for name, f := range o.Forges {
		limits := f.Profile().Limits
		of := &statuses{
			source: name, contexts: contexts{instance: o.Instance, pageURL: o.PageURL, limits: limits}, redact: o.Redact, log: o.Logger, now: o.Now, keep: keep, heads: heads{},
		}
		c.journal.statuses[name] = of
		c.posters[name] = &poster{
			source: name, o: c.o, forge: f, box: outbox.New(forgeDelays, limits.PerMinute/share, o.Now), statuses: of, journal: c.journal,
			known: map[string]map[string]forge.CommitStatus{}, late: lateWrites{},
		}
	}
	if err := c.journal.restore(o.Store, ""); err != nil {
		return nil, err
	}
	c.journal.orphans = c.journal.orphans[max(0, len(c.journal.orphans)-maxTracks):]
	return c, nil
}

// storeOf returns the store for the journal of a source, nil if another weir writes it.
func (o *Options) storeOf(source string) state.Store {
	if o.Held == nil {
		return o.Store
	}
	return o.Held(source)
}

// TakeOver continues with the statuses in the journal of the previous owner of a source, because
// this weir's own data about the source is older.
func (c *Commits) TakeOver(source string) error {
	p := c.posters[source]
	if p == nil {
		return nil
	}
	defer p.box.Nudge()
	p.doubted.Store(true)
	return c.journal.restore(c.o.Store, source)
}

// Begin records that a source reached a revision, before the pass that applies it. A repeated
// revision continues; another one closes the pending statuses on the earlier commits of the source.
func (c *Commits) Begin(r Revision) {
	if p := c.posters[r.Source]; p != nil && r.SHA != "" {
		p.statuses.startRevision(r)
		p.box.Nudge()
	}
}

// Report processes the results of a pass. A report of a target that the source's current revision does not
// touch does not affect the commit. A report of another revision only shows which pools that revision was
// changing: its pass started before, and its changes may still be in progress.
func (c *Commits) Report(_ context.Context, r *plan.Report) {
	if p := c.posters[r.Source]; p != nil && p.statuses.report(r) {
		p.box.Nudge()
	}
}

// SetHead sets the status that a pull request wants for its head commit. The status of its earlier head is
// now set by other pull requests with that head, or its pending status is closed.
func (c *Commits) SetHead(source string, number int64, want HeadStatus) {
	p := c.posters[source]
	p.statuses.setHead(number, want)
	p.box.Nudge()
}

// EndPull records that a pull request ended, and why.
func (c *Commits) EndPull(source string, number int64, why string) {
	p := c.posters[source]
	p.statuses.endHead(number, why)
	p.box.Nudge()
}

// Unfinished returns the targets of the sources' current commits that have not converged, including the
// targets of an earlier process.
func (c *Commits) Unfinished() (names []string) {
	for _, p := range c.posters {
		names = append(names, p.statuses.unfinished()...)
	}
	return names
}

// Forget records that a target is no longer configured, so that no report will finish it. A failure of the
// target stays visible, but no longer affects the status of the commit.
func (c *Commits) Forget(target string) {
	for _, p := range c.posters {
		if p.statuses.forget(target) {
			p.box.Nudge()
		}
	}
}

// Pending returns the number of contexts that wait to be written.
func (c *Commits) Pending() int { return c.count((*contextTrack).open) }

// Unwritten returns the number of wanted statuses that were never written. It does not count statuses
// that weir has written and only has to read again.
func (c *Commits) Unwritten() int {
	return c.count(func(ct *contextTrack) bool { return ct.open() && !ct.written })
}

func (c *Commits) count(is func(*contextTrack) bool) (n int) {
	for _, p := range c.posters {
		n += p.statuses.count(is)
	}
	return n
}

// Beside returns another outbox for the forge of a source, with the same rate limit.
func (c *Commits) Beside(source string) *outbox.Outbox { return c.posters[source].box.Beside() }

// Retry makes weir post all statuses again now that were refused or given up, because the token, the
// permissions or the connection to the forge may have changed.
func (c *Commits) Retry() {
	for _, p := range c.posters {
		p.statuses.retry()
		p.box.TryToken()
	}
}

// Run posts the wanted statuses until ctx ends, to all forges in parallel. Call Close afterwards.
func (c *Commits) Run(ctx context.Context) error {
	c.work(ctx, false)
	return nil
}

func (c *Commits) work(ctx context.Context, drain bool) {
	var wg sync.WaitGroup
	for _, p := range c.posters {
		wg.Go(func() { p.work(ctx, drain) })
	}
	wg.Wait()
}

// Leave keeps the wanted statuses in the journal, for the next Commits to post. Run must
// have returned.
func (c *Commits) Leave() error { return c.journal.save(true) }

// Close marks the unfinished statuses as interrupted, and posts all wanted statuses until none is left or
// ctx ends. A status that could not be posted stays in the journal for the next process. Run must have
// returned.
func (c *Commits) Close(ctx context.Context) error {
	for _, p := range c.posters {
		p.statuses.interrupt()
	}
	c.work(ctx, true)
	err := c.journal.save(true)
	if n := c.Unwritten(); n > 0 {
		err = errors.Join(err, fmt.Errorf("post commit statuses: %d left for the next start", n))
	}
	return err
}
