package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/crew"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/lineage"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/githubapp"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/board"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/notify"
	"github.com/weir-gitops/weir/status/proposal/accepts"
)

// generation holds everything that depends on one configuration: sources, renders, statuses, pull
// requests and notifications, and the conductor over them. A reload stops one and starts the next.
// The next one inherits only the renders. Everything else is in the state directory, or the new
// generation finds it again, as after a restart.
type generation struct {
	app       *App
	config    *config.Config
	common    string               // config.Common, which passes compare with the other members'
	followers map[string]*follower // by source
	fleet     *fleet.Fleet
	// forges take commit statuses, by source.
	forges map[string]commits.Forge
	// commits posts statuses, review plans pull requests, notifier sends events; each is
	// nil where the configuration wants none of it.
	commits  *commits.Commits
	review   *review
	notifier *notify.Notifier
	// proposers open weir's own pull requests. accepts are those that people may ask to keep what
	// AWS has, by source.
	proposers []*proposer
	accepts   map[string]*accepts.Source
	// providers answer gates, by name.
	providers map[string]*provider
	// base is compared with pull requests; nil before the first composition.
	base atomic.Pointer[fleet.Base]
	// news wakes views when a source has said something.
	news chan struct{}
	// stops end the goroutines that were started, by part.
	stops map[part][]func(context.Context) error

	// The conductor alone uses what follows. asked is when it first wanted to know what
	// the sources say.
	asked time.Time
	// begun holds, by source, the revision that Commits knows, or that it knows to be
	// refused.
	begun map[string]string
	// renders are the commits that targets were last said to be rendered at.
	renders map[string]string
}

// part names goroutines of a generation that end together.
type part string

const (
	conductorPart part = "conductor"
	sourcesPart   part = "sources"
	pullsPart     part = "pull requests"
	statusesPart  part = "statuses"
	notifierPart  part = "notifications"
)

// follower keeps the view of one source.
type follower struct {
	config config.Source
	git    *source.Git
	// line compares the commits that AWS names with the commits that the source reached.
	line *lineage.Line
	// app makes tokens for the source and its forge; nil without a GitHub App.
	app *githubapp.App
	// crew holds the daemons that share the source; exactly one reads it. It is nil if this daemon
	// is alone.
	crew *crew.Crew
	// heard is closed once the source has said something, good or bad.
	heard chan struct{}
	// ways are the connections to the source's forge. They are made before it starts.
	ways []interface{ CloseIdleConnections() }

	mu   sync.Mutex
	once sync.Once
	view fleet.View
}

// newGeneration makes sources and renders as c says, and what sends events. It opens
// nothing: a generation that was not opened can be dropped as it is.
func (a *App) newGeneration(c *config.Config) (*generation, error) {
	g := &generation{
		app: a, config: c, common: c.Common(), followers: map[string]*follower{}, news: make(chan struct{}, 1), stops: map[part][]func(context.Context) error{}, begun: map[string]string{},
	}
	for _, s := range c.Sources {
		f, err := g.newFollower(s)
		if err != nil {
			return nil, err
		}
		g.followers[s.Name] = f
	}
	g.fleet = fleet.New(fleet.Options{
		Config: c.Fleet(a.embeddedURL()), Accounts: a.accounts, DigestKey: a.key, Good: good{a}, Written: a.renders, Secrets: a.o.Secrets, Logger: a.log,
	})
	g.makeProviders()
	return g, cmp.Or(g.makeForges(), g.makeProposers(), g.openNotifier())
}

func (g *generation) newFollower(s config.Source) (*follower, error) {
	a := g.app
	c, app, err := SourceConfig(s, a.state.Dir, a.o.Secrets.Set)
	if err != nil {
		return nil, err
	}
	var line *lineage.Line
	git, err := source.New(c, source.Options{
		Rand:   a.o.Rand,
		Found:  func(began time.Time, revision string) { line.Found(began, revision) },
		Logger: a.log, Fetched: func(took time.Duration, err error) {
			a.metrics.Fetch(s.Name, took, time.Now(), err)
			a.tracing.Past(context.Background(), "fetch", took, err, "source", s.Name)
		},
	})
	if err != nil {
		return nil, err
	}
	line = a.lineages.Line(git.ID(), s.Name, git, a.passAll, time.Now)
	return &follower{config: s, git: git, line: line, app: app, crew: a.crew, heard: make(chan struct{}), view: fleet.View{
		ID: git.ID(), At: git.At, Earlier: git.Earlier, Parents: git.FirstParents, Verify: fmt.Sprintf("%+v", c.Verify),
	}}, nil
}

// inherit gives sources that stay as they are the last commit of another generation, until
// they say something themselves: where Git does not answer, that one is still applied.
func (g *generation) inherit(old *generation) {
	for name, f := range g.followers {
		from := old.followers[name]
		if from == nil || from.view.ID != f.view.ID || from.view.Verify != f.view.Verify || from.config.Ref != f.config.Ref {
			continue
		}
		from.mu.Lock()
		f.view.Snapshot, f.view.Seq = from.view.Snapshot, from.view.Seq
		from.mu.Unlock()
		f.view.Err = fault.Unavailable(name, fault.New(fault.Unreachable, "it was not read since the reload"))
	}
}

// start starts all but the conductor.
func (g *generation) start(ctx context.Context) {
	if g.notifier != nil {
		g.spawn(ctx, notifierPart, "notifications", g.notifier.Run)
	}
	if g.commits != nil {
		g.spawn(ctx, statusesPart, "statuses", g.commits.Run)
	}
	if g.review != nil {
		g.spawn(ctx, pullsPart, "pull request statuses", g.review.comments.Run)
		g.startPulls(ctx)
	}
	for _, p := range g.proposers {
		g.spawn(ctx, pullsPart, p.what+" of "+p.source, func(ctx context.Context) error { return g.propose(ctx, p) })
	}
	var lines []*lineage.Line
	for _, f := range g.followers {
		lines = append(lines, f.line)
	}
	g.app.lineages.Follow(lines)
	for name, f := range g.followers {
		g.spawn(ctx, sourcesPart, "source "+name, func(ctx context.Context) error {
			defer f.git.Close()
			if f.crew != nil {
				var leading sync.WaitGroup
				defer leading.Wait()
				leading.Go(func() { g.lead(ctx, f) })
				return g.follow(ctx, f)
			}
			return f.git.Watch(ctx, func(s snapshot.Snapshot, err error) { g.hear(f, s, err) })
		})
	}
}

// startPulls starts the planners of pull requests: all of them, or among several daemons
// those that wait until this one speaks for a source.
func (g *generation) startPulls(ctx context.Context) {
	if g.app.crew == nil {
		for name, w := range g.review.all() {
			g.spawn(ctx, pullsPart, "pull requests of "+name, w.Run)
		}
		return
	}
	for _, f := range g.config.Forges {
		if g.review.clients[f.Source] != nil {
			g.spawn(ctx, pullsPart, "pull requests of "+f.Source, func(ctx context.Context) error { return g.speaker(ctx, f) })
		}
	}
}

// startConductor starts the conductor.
func (g *generation) startConductor(ctx context.Context) {
	g.spawn(span.Watch(ctx, g.app.metrics.Stage), conductorPart, "conductor", conductor{g}.conduct)
}

func (g *generation) spawn(ctx context.Context, of part, name string, run func(context.Context) error) {
	g.stops[of] = append(g.stops[of], g.app.spawn(ctx, name, run))
}

// halt ends the goroutines of parts, one part after the other, and waits for them. It may
// be called again.
func (g *generation) halt(ctx context.Context, parts ...part) error {
	var errs []error
	for _, of := range parts {
		for i := len(g.stops[of]) - 1; i >= 0; i-- {
			errs = append(errs, g.stops[of][i](ctx))
		}
	}
	return errors.Join(errs...)
}

// leave ends all parts but the conductor, so that another generation continues. Wanted statuses
// wait for it in their journals, notifications in their notifier.
func (g *generation) leave(ctx context.Context) error {
	err := g.halt(ctx, pullsPart, sourcesPart, statusesPart, notifierPart)
	if g.commits != nil {
		err = errors.Join(err, g.commits.Leave())
	}
	if g.review != nil {
		err = errors.Join(err, g.review.comments.Leave())
	}
	g.closeProviders()
	g.closeConnections()
	return err
}

// closeConnections closes the connections to forges. Nothing must use them any more.
func (g *generation) closeConnections() {
	for _, f := range g.followers {
		for _, way := range f.ways {
			way.CloseIdleConnections()
		}
	}
}

// closeStatuses posts the wanted statuses and leaves nothing pending.
func (g *generation) closeStatuses(ctx context.Context) error {
	switch {
	case g.commits == nil:
		return nil
	case g.app.crew != nil:
		return g.commits.Leave() // the next owner continues
	}
	return g.commits.Close(ctx)
}

// closePulls posts what has not been posted yet of pull requests.
func (g *generation) closePulls(ctx context.Context) error {
	switch {
	case g.review == nil:
		return nil
	case g.app.crew != nil:
		return g.review.comments.Leave()
	}
	return g.review.comments.Close(ctx)
}

// closeNotifier sends what waits, for a moment.
func (g *generation) closeNotifier(ctx context.Context) error {
	if g.notifier != nil {
		g.notifier.Close(ctx)
	}
	return nil
}

// refText says which ref is followed.
func refText(r source.Ref) string {
	switch {
	case r.Branch != "":
		return "branch " + r.Branch
	case r.Tag != "":
		return "tag " + r.Tag
	case r.SemVer != "":
		return "versions " + r.SemVer
	case r.Name != "":
		return r.Name
	case r.Commit != "":
		return "commit " + r.Commit[:min(12, len(r.Commit))]
	default:
		return "default branch"
	}
}

// hear takes in what a source says. After an error the last good snapshot stays:
// a source that cannot be read is never an empty one.
func (g *generation) hear(f *follower, s snapshot.Snapshot, err error) {
	a := g.app
	now := time.Now()
	f.mu.Lock()
	f.view.Err = err
	if err == nil {
		if f.crew == nil && s.Revision != f.view.Snapshot.Revision {
			f.view.Seq++
		}
		f.view.Snapshot = s
	} else if last, ok := f.git.Last(); ok && f.view.Snapshot.Tree == nil && f.isHead(last.Revision) {
		f.view.Snapshot = last
	}
	f.mu.Unlock()
	shown := board.Source{Name: f.config.Name, URL: f.config.URL, Ref: refText(f.config.Ref)}
	if err != nil {
		g.hideSource(f.config)
		shown.Error = err.Error()
		a.log.Error("source cannot be read", "source", f.config.Name, "error", err)
	} else {
		// Without the subject, which may name a secret: see desired.
		shown.Revision, shown.FetchedAt = s.Revision, now
	}
	a.board.Source(shown)
	f.once.Do(func() { close(f.heard) })
	select {
	case g.news <- struct{}{}:
	default:
	}
	a.wake()
}

// firstSource bounds the time that the first pass waits for the first source, otherSources the time
// that it then waits for all other sources: a source that does not answer delays only its own
// targets.
const (
	firstSource  = 15 * time.Second
	otherSources = time.Second
)

// views are the sources as they stand, once each has said something or has had the time
// for it. news wakes it when one does.
func (g conductor) views(ctx context.Context, news <-chan struct{}) (map[string]fleet.View, error) {
	if g.asked.IsZero() {
		g.asked = time.Now()
	}
	for {
		wait := g.patience() - time.Since(g.asked)
		if wait <= 0 {
			break
		}
		timer := time.NewTimer(wait)
		select {
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
	out := map[string]fleet.View{}
	for name, f := range g.followers {
		out[name] = f.now()
	}
	return out, nil
}

// patience returns how long a pass waits, from its request, for the sources that have not answered
// yet.
func (g conductor) patience() time.Duration {
	heard := 0
	for _, f := range g.followers {
		select {
		case <-f.heard:
			heard++
		default:
		}
	}
	switch heard {
	case len(g.followers):
		return 0
	case 0:
		return firstSource
	default:
		return otherSources
	}
}

// check fails where openStatuses would.
func (g *generation) check() error {
	if len(g.forges) == 0 {
		return nil
	}
	return commits.Check(g.app.store)
}

// openStatuses reads the journal, if there is a forge.
func (g *generation) openStatuses() (err error) {
	a := g.app
	if len(g.forges) == 0 {
		return nil
	}
	g.commits, err = commits.New(commits.Options{
		Instance: g.config.Instance, PageURL: g.config.PublicURL, Forges: g.forges, Store: a.store, Held: g.heldBy(), Redact: a.o.Secrets.Redact, Logger: a.log, Wrote: a.metrics.StatusWrite,
	})
	return err
}
