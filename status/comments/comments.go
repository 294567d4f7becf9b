package comments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/outbox"
	"github.com/weir-gitops/weir/status/report"
)

// Comments reports pull requests on their forges: in the commit status <instance>/plan of the head,
// and in one comment that is edited in place.
//
//	planned     success, and a summary of the changes
//	unaffected  success; an existing comment is edited, but none is created
//	waiting     pending, "needs a maintainer"; no comment is created
//	conflict    failure, "update the branch"
//	failing     failure, and the first fault
//
// If several pull requests have the same head commit, the first in rank is reported. A pull request that
// waits, or comes from a fork, never replaces the verdict on another one.
//
// The comment of an ended pull request is edited once more. A journal stores the pending statuses, so that
// a crash leaves none behind. Comments need no journal, because weir finds them by their marker and author.
type Comments struct {
	o Options
	// statuses posts the statuses of the heads.
	statuses *commits.Commits
	writers  map[string]*writer // by source
}

// Options configures Comments.
type Options struct {
	Instance string
	// PageURL is the public address of weir's page. If it is empty, comments have no links.
	PageURL string
	// Forges maps each source whose pull requests are reported to its forge.
	Forges map[string]PullForge
	// Store and Held are as in commits.Options.
	Store  state.Store
	Held   func(source string) state.Store
	Redact report.Redact
	Logger *slog.Logger
	// Wrote is called after each write of a commit status, and WroteComment after each write of a comment,
	// like commits.Options.Wrote. Both may be nil.
	Wrote        func(forge string, state forge.CommitState, result string)
	WroteComment func(forge, result string)
	// Now defaults to time.Now.
	Now func() time.Time
}

const (
	// maxHeads is the maximum number of heads of a source that wait for their status.
	maxHeads = 1000
	// pullShare divides a forge's rate limit: statuses and comments of pull requests together use a third
	// of it.
	pullShare = 3
	planning  = "planning"
)

// New returns a Comments. It reads the journal of an earlier process, if there is one.
func New(o Options) (*Comments, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	forges := map[string]commits.Forge{}
	for name, f := range o.Forges {
		forges[name] = f
	}
	statuses, err := commits.NewNamed(commits.Options{
		Instance: o.Instance, PageURL: o.PageURL, Forges: forges, Store: o.Store, Held: o.Held, Redact: o.Redact, Logger: o.Logger, Wrote: o.Wrote, Now: o.Now,
	}, "pull-statuses", maxHeads, pullShare)
	if err != nil {
		return nil, err
	}
	p := &Comments{o: o, statuses: statuses, writers: map[string]*writer{}}
	for name, f := range o.Forges {
		p.writers[name] = newWriter(p, name, f, statuses.Beside(name))
	}
	return p, nil
}

// Begin records that weir is planning the head of a pull request. It does not block.
func (p *Comments) Begin(source string, number int64, sha string) {
	if _, ok := p.writers[source]; ok && sha != "" {
		p.statuses.SetHead(source, number, commits.HeadStatus{Sha: sha, State: forge.Pending, Text: planning, Link: p.page(source, number)})
	}
}

// Show sets the state of a pull request to report. Only the last state is reported. It does not block.
func (p *Comments) Show(pull report.Pull) {
	d, ok := p.writers[pull.Source]
	if !ok {
		return
	}
	pull = p.o.Redact.Pull(pull)
	if pull.PageURL == "" {
		pull.PageURL = p.page(pull.Source, pull.Number)
	}
	state, text, open := statusOf(pull)
	switch {
	case !open:
		p.statuses.EndPull(pull.Source, pull.Number, text)
	case pull.HeadSHA != "":
		p.statuses.SetHead(pull.Source, pull.Number, commits.HeadStatus{
			Sha: pull.HeadSHA, State: state, Text: text, Link: pull.PageURL, Waits: pull.State == report.PullWaiting, Fork: pull.Fork,
		})
	}
	d.enqueue(pull)
}

// TakeOver continues with the statuses that the previous owner of a source wanted. Comments are written
// when their pull requests are planned.
func (p *Comments) TakeOver(source string) error { return p.statuses.TakeOver(source) }

// Owes reports whether the comment of a pull request must still be updated to its last shown state.
func (p *Comments) Owes(source string, number int64) bool {
	w := p.writers[source]
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.pulls[number]
	return t != nil && t.open && !t.entry.GaveUp()
}

// Rest forgets the comments that wait to be written for a source, because another weir owns it and writes
// its own.
func (p *Comments) Rest(source string) {
	if w := p.writers[source]; w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		clear(w.pulls)
		clear(w.records)
	}
}

// page returns the address of a pull request on weir's page.
func (p *Comments) page(source string, number int64) string {
	if p.o.PageURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/pulls/%s/%d", strings.TrimSuffix(p.o.PageURL, "/"), url.PathEscape(source), number)
}

// Run writes the reports until ctx ends. Call Close afterwards.
func (p *Comments) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { _ = p.statuses.Run(ctx) }) // always returns nil
	for _, d := range p.writers {
		wg.Go(func() { d.work(ctx, false) })
	}
	wg.Wait()
	return nil
}

// Leave keeps the wanted statuses in the journal, for the next Comments to write. Comments are written when
// their pull requests are planned again. Run must have returned.
func (p *Comments) Leave() error { return p.statuses.Leave() }

// Close writes the remaining comments until none is left or ctx ends. Only statuses that wait for a person
// stay pending. Run must have returned.
func (p *Comments) Close(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, d := range p.writers {
		wg.Go(func() { d.work(ctx, true) })
	}
	err := p.statuses.Close(ctx)
	wg.Wait()
	left := 0
	for _, d := range p.writers {
		left += d.left()
	}
	if left > 0 {
		err = errors.Join(err, fmt.Errorf("write comments: %d left; they are written when their pull requests are planned next", left))
	}
	return err
}

// Pending returns the number of statuses and comments that wait to be written.
func (p *Comments) Pending() int {
	n := p.statuses.Pending()
	for _, d := range p.writers {
		n += d.left()
	}
	return n
}

// Retry makes weir try all writes again now that were refused or given up.
func (p *Comments) Retry() {
	p.statuses.Retry()
	for _, d := range p.writers {
		d.retry()
	}
}

// newWriter returns the writer for the comments of a source. It shares the rate limit of the statuses.
func newWriter(p *Comments, source string, f PullForge, box *outbox.Outbox) *writer {
	return &writer{
		source: source, forge: f, box: box, pulls: map[int64]*pullComment{}, records: map[int64]written{}, longest: f.Profile().Limits.Comment,
		speaks: func() bool { return p.o.Held == nil || p.o.Held(source) != nil },
		store: func() state.Store {
			if p.o.Held != nil {
				return p.o.Held(source)
			}
			return p.o.Store
		},
		instance: p.o.Instance, log: p.o.Logger.With("source", source, "forge", f.Profile().Label), wrote: p.o.WroteComment, redact: p.o.Redact,
	}
}
