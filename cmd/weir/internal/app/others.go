package app

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/crew"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// heedOthers takes in what other members wrote, as soon as the mirror has read it.
func (a peers) heedOthers(ctx context.Context) error {
	for {
		synced := a.crew.Synced()
		a.heed()
		select {
		case <-ctx.Done():
			return nil
		case <-synced:
		}
	}
}

// heed processes news of other members. Only its goroutine calls it.
func (a peers) heed() {
	a.crew.Reports(a.reporter.take)
	a.crew.Pulls(a.gen.Load().showsPulls, a.takePull)
	a.crew.Asks(a.heedAsk)
	a.rollouts.heed()
	records := a.book.Read()
	if !reflect.DeepEqual(a.heeded, records) {
		a.passes.hold(newSuspensions(a.heeded, records), records)
		a.heeded = records
		a.passAll()
	}
}

// hold ends passes over targets that were suspended, or whose approval was taken back.
func (p *passes) hold(list []gates.Suspension, now gates.Records) {
	p.end(func(l *loop) bool {
		return l.withdrawn(now) != nil || slices.ContainsFunc(list, func(s gates.Suspension) bool { return s.Target == "" || slices.Contains(l.in, s.Target) })
	})
}

// end ends passes under way before their next step.
func (p *passes) end(which func(*loop) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.of {
		if which(l) {
			l.Interrupt()
		}
	}
}

// withdrawn is an approval under which the pass under way acts, and that is on record no more.
// The caller holds mu.
func (l *loop) withdrawn(now gates.Records) *gates.Grant {
	for _, g := range l.records.Grants {
		if slices.Contains(l.in, g.Target) && !slices.ContainsFunc(now.Grants, func(o gates.Grant) bool { return o.Holds(g) }) {
			return &g
		}
	}
	return nil
}

// heedAsk executes a request to all members, if it concerns this one.
func (a peers) heedAsk(ask crew.Ask) {
	g := a.gen.Load()
	if ask.Source != "" {
		if ask.Pulls {
			if w := g.watcher(ask.Source); w != nil {
				if ask.Heard != nil {
					w.Heard(ask.Pull, forge.Heard(*ask.Heard))
				}
				w.Changed(ask.Pull)
			}
		} else if f := g.followers[ask.Source]; f != nil && f.leads() {
			f.git.Nudge()
		}
		return
	}
	a.sourcesDue.Store(true)
	a.passAll()
}

// take takes in a report of another member, for the page, waves and forges, and makes no event of it.
func (r *reporter) take(target string, data []byte) {
	a := r.app
	report, err := plan.ReadRecord(data)
	if err != nil {
		a.log.Warn("cannot read a report of another member", "target", target, "error", err)
		return
	}
	a.passes.handing.Lock()
	defer a.passes.handing.Unlock()
	a.passes.mu.Lock()
	own := a.passes.owns(target)
	a.passes.mu.Unlock()
	if own || report.Target != target || !a.passes.noted(report, false) {
		return
	}
	a.board.Take(report)
	a.metrics.Elsewhere(target)
	g := a.gen.Load()
	if g.commits != nil {
		g.commits.Report(context.Background(), report)
	}
	g.reported(report)
}

// publish sends a report of a pass to the other members.
func (r *reporter) publish(l *coord.Lease, of *plan.Report) {
	redact := report.Redact(r.app.o.Secrets.Redact).Report
	same, err := of.Same(redact)
	if err != nil {
		r.app.log.Error("cannot publish a report", "target", of.Target, "error", err)
		return
	}
	did := slices.ContainsFunc(of.Outcomes, func(o step.Outcome) bool { return o.Status == step.Done || o.Status == step.Failed })
	r.app.crew.Publish(l, of.Target, did, same, func() ([]byte, error) { return of.Record(redact) })
}

// owned hands on reports of passes under a lease.
type owned struct {
	*reporter
	lease *coord.Lease
}

// Report implements reconciler.Reporter.
func (o owned) Report(ctx context.Context, r *plan.Report) {
	if o.hand(ctx, r) {
		o.publish(o.lease, r)
	}
}

// held returns the store in which the owner of a source writes its statuses, or nil if this member
// is not the owner.
func (g *generation) held(source string) state.Store {
	f := g.followers[source]
	if f == nil {
		return nil
	}
	return g.app.crew.Held(f.key())
}

// heldBy is held with several daemons.
func (g *generation) heldBy() func(string) state.Store {
	if g.app.crew == nil {
		return nil
	}
	return g.held
}

// reread reads what other members found out about the commits of the sources that they own.
func (g conductor) reread() {
	if g.app.crew == nil || g.review == nil {
		return
	}
	for source, w := range g.review.all() {
		if g.followers[source].leads() {
			continue
		}
		if err := w.Reread(); err != nil {
			g.app.log.Warn("cannot read what another member found out about pull requests", "source", source, "error", err)
		}
	}
}

// speak makes this daemon write the statuses for the sources of a repository. It continues where
// the previous owner stopped.
func (a peers) speak(key string) {
	g := a.gen.Load()
	for name, f := range g.followers {
		if f.key() != key {
			continue
		}
		var errs []error
		if g.commits != nil {
			errs = append(errs, g.commits.TakeOver(name))
		}
		if g.review != nil {
			errs = append(errs, g.review.comments.TakeOver(name))
		}
		for _, err := range errs {
			if err != nil {
				a.log.Error("cannot read the statuses to write of a source", "source", name, "error", err)
			}
		}
		a.passes.mu.Lock()
		a.passes.replay[name] = true
		a.passes.mu.Unlock()
	}
	a.wake()
}

// replay posts to the forges the reports of the sources that this daemon has just started to own.
// The conductor calls it after it has announced the commit.
func (g conductor) replay(sources map[string]bool) {
	if len(sources) == 0 {
		return
	}
	p := g.app.passes
	p.handing.Lock()
	defer p.handing.Unlock()
	p.mu.Lock()
	reports := slices.Collect(maps.Values(p.memory.before.Reports))
	p.mu.Unlock()
	for _, r := range reports {
		if !sources[r.Source] {
			continue
		}
		if g.commits != nil {
			g.commits.Report(context.Background(), r)
		}
		g.reported(r)
	}
}

// spoken returns the sources for which this daemon has begun to speak, once.
func (p *passes) spoken() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.replay
	p.replay = map[string]bool{}
	return out
}

// leads reports whether this daemon reads the source's repository for all.
func (f *follower) leads() bool { return f.crew == nil || f.crew.Lease(f.key()) != nil }

// lead polls the repository and publishes its commits, while this daemon owns the source.
func (g *generation) lead(ctx context.Context, f *follower) {
	f.crew.While(ctx, f.key(), func(ctx context.Context, l *coord.Lease) error {
		g.app.rollouts.wake()
		return f.git.Watch(ctx, func(s snapshot.Snapshot, err error) {
			if err == nil && f.crew.Lead(l, f.view.ID, f.config.Name, s.Revision, s.Ref) != nil {
				return // somebody else leads
			}
			g.hear(f, s, err)
		})
	})
}

// isHead reports whether weir may apply a commit: with several daemons only the published one.
func (f *follower) isHead(commit string) bool {
	if f.crew == nil {
		return true
	}
	head, known := f.crew.Head(f.view.ID, f.config.Name)
	return known && head.Commit == commit
}

// now is the source as it stands. If others lead, its number is that of the last published head of this commit.
func (f *follower) now() fleet.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crew != nil {
		if head, known := f.crew.Head(f.view.ID, f.config.Name); known && head.Commit == f.view.Snapshot.Revision {
			f.view.Seq = head.Seq
		}
	}
	return f.view
}

// follow reads commits that others publish, until ctx ends.
func (g *generation) follow(ctx context.Context, f *follower) error {
	said, seq := "", int64(0)
	for {
		synced := f.crew.Synced()
		wait := time.Duration(0)
		head, known := f.crew.Head(f.view.ID, f.config.Name)
		if known && head.Seq != seq {
			seq = head.Seq
			g.app.wake() // even for the commit that this member is at
		}
		if known && !f.leads() && !f.isAt(head.Commit) {
			s, err := f.git.Latest(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil && err.Error() != said:
				said = err.Error()
				g.hear(f, snapshot.Snapshot{}, err)
			case err == nil && s.Revision == head.Commit:
				said = ""
				g.hear(f, s, nil)
			}
			// The server may show another commit than it showed the owner.
			wait = min(f.config.Interval, 2*time.Second)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-synced:
		}
		if !f.isAt(head.Commit) && wait > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(wait):
			}
		}
	}
}

// showsPulls reports whether this member itself finds out about a source's pull requests, or has no such source.
func (g *generation) showsPulls(source string) bool {
	return g.watcher(source) == nil || g.followers[source].leads()
}

// takePull takes in a pull request as the member shows it that speaks for its source.
func (a peers) takePull(source string, number int64, data []byte) {
	p, err := report.ReadPull(data)
	if err != nil || p.Source != source || p.Number != number {
		a.log.Warn("cannot read a pull request of another member", "source", source, "number", number, "error", err)
		return
	}
	a.board.Pull(p)
}

// tellPull sends a pull request to the other members, if there are any.
func (g *generation) tellPull(p report.Pull) {
	f := g.followers[p.Source]
	if f.crew == nil {
		return
	}
	l := f.crew.Lease(f.key())
	if l == nil {
		return // the current owner sends it
	}
	redact := g.app.o.Secrets.Redact
	p = p.Lean() // no inputs of its plans stay in memory until it is sent
	f.crew.PublishPull(l, crew.Pull{
		Source: p.Source, Number: p.Number, Ended: p.Ended(),
		Data: func() (data, same []byte, err error) { return p.Record(redact) },
		Short: func() (data, same []byte, err error) {
			short := p
			short.Reports, short.Unkept = nil, true
			return short.Record(redact)
		},
	})
}

// pullHints are webhooks about pull requests, for the member that speaks for the source.
type pullHints struct {
	g      *generation
	source string
}

// Changed implements forge.Pulls.
func (h pullHints) Changed(number int64) {
	if w := h.g.watcher(h.source); w != nil && h.g.followers[h.source].leads() {
		w.Changed(number)
		return
	}
	h.g.app.crew.AskSoon(crew.Ask{Source: h.source, Pulls: true, Pull: number})
}

// Heard implements forge.Pulls. All members remember the comment, because any of them may later
// read it.
func (h pullHints) Heard(number int64, comment forge.Heard) {
	heard := crew.Heard(comment)
	h.g.app.crew.AskSoon(crew.Ask{Source: h.source, Pulls: true, Pull: number, Heard: &heard})
}

// speaker plans the pull requests of a source while this daemon owns it. Each term has a new
// watcher, which continues with the records.
func (g *generation) speaker(ctx context.Context, f config.Forge) error {
	g.app.crew.While(ctx, g.followers[f.Source].key(), func(ctx context.Context, _ *coord.Lease) error {
		w, err := g.newWatcher(f, g.review, false)
		if err != nil {
			return err
		}
		g.review.set(f.Source, w)
		g.setHooks()
		err = w.Run(ctx)
		g.review.comments.Rest(f.Source)
		g.app.metrics.Pulls(f.Source, nil) // who speaks counts them
		passive, again := g.newWatcher(f, g.review, true)
		if again == nil {
			g.review.set(f.Source, passive)
		}
		return cmp.Or(err, again)
	})
	return nil
}
