package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/lineage"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/githubapp"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/board"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/notify"
)

// generation is what one configuration decides.
type generation struct {
	config    *config.Config
	followers map[string]*follower // by source
	commits   *commits.Commits
	fleet     *fleet.Fleet
	// review plans pull requests; nil where none are.
	review *review

	stopCommits func(context.Context) error
	// notifier sends events; nil where nobody receives any.
	notifier     *notify.Notifier
	stopNotifier func(context.Context) error
	// routes are the ways to the forges, which decide whether a reload keeps
	// their clients.
	routes map[string]route
	// asked is when a pass first wanted to know what the sources say.
	asked time.Time
	// begun holds, by source, the revision that Commits was told of.
	begun map[string]string
	// targets are those of the last composition.
	targets []fleet.Target
}

// follower keeps the view of one source.
type follower struct {
	config config.Source
	route  route
	git    *source.Git
	// line compares what AWS names with the commits that the source came to.
	line *lineage.Line
	// app makes tokens for the source and its forge; nil without a GitHub App.
	app  *githubapp.App
	stop func(context.Context) error
	// heard is closed once the source has said something, good or bad.
	heard chan struct{}

	mu   sync.Mutex
	once sync.Once
	view fleet.View
}

// newGeneration makes sources, renders and statuses as c says. Of an earlier
// generation it takes over the sources that did not change. The new ones open
// nothing before they are started: a generation can be dropped as it is.
func (a *App) newGeneration(c *config.Config, earlier *generation) (*generation, error) {
	g := &generation{config: c, followers: map[string]*follower{}, begun: map[string]string{}, routes: map[string]route{}}
	for _, s := range c.Sources {
		if earlier != nil {
			if f := earlier.followers[s.Name]; f != nil && reflect.DeepEqual(f.config, s) && f.route == routeOf(s) {
				g.followers[s.Name] = f
				continue
			}
		}
		f, err := a.newFollower(s)
		if err != nil {
			return nil, err
		}
		g.followers[s.Name] = f
	}
	for _, f := range c.Forges {
		g.routes[f.Source] = g.followers[f.Source].route
	}
	g.fleet = fleet.New(fleet.Options{
		Config: c.Fleet(a.embeddedURL()), Accounts: a.accounts, DigestKey: a.key, Secrets: a.o.Secrets, Logger: a.log,
	})
	return g, nil
}

// inherit takes over what passes have learnt: the renders, and the statuses if
// the way to no forge has changed. No pass may be under way.
func (g *generation) inherit(earlier *generation) {
	g.fleet.Adopt(earlier.fleet)
	g.targets = earlier.targets
	if reflect.DeepEqual(earlier.config.Forges, g.config.Forges) && maps.Equal(earlier.routes, g.routes) {
		g.commits, g.stopCommits, g.begun = earlier.commits, earlier.stopCommits, earlier.begun
		maps.DeleteFunc(g.begun, func(source, _ string) bool { return g.followers[source] == nil })
	}
}

func (a *App) newFollower(s config.Source) (*follower, error) {
	c, app, err := SourceConfig(s, a.state.Dir, a.o.Secrets.Set)
	if err != nil {
		return nil, err
	}
	var line *lineage.Line
	git, err := source.New(c, source.Options{
		Looked: func(began time.Time, revision string) { line.Looked(began, revision) },
		Logger: a.log, Fetched: func(took time.Duration, err error) {
			a.metrics.Fetch(s.Name, took, time.Now(), err)
			a.tracing.Past(context.Background(), "fetch", took, err, "source", s.Name)
		},
	})
	if err != nil {
		return nil, err
	}
	line = a.lineages.Line(git.ID(), s.Name, git, a.ring, time.Now)
	return &follower{config: s, route: routeOf(s), git: git, line: line, app: app, heard: make(chan struct{}), view: fleet.View{
		ID: git.ID(), At: git.At, Verify: fmt.Sprintf("%+v", c.Verify),
	}}, nil
}

// refText says which ref is followed.
func refText(r config.Ref) string {
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

// startSources follows the sources that are not followed yet.
func (g *generation) startSources(ctx context.Context, a *App) {
	var lines []*lineage.Line
	for _, f := range g.followers {
		lines = append(lines, f.line)
	}
	a.lineages.Follow(lines)
	for name, f := range g.followers {
		if f.stop != nil {
			continue
		}
		f.stop = a.spawn(ctx, "source "+name, func(ctx context.Context) error {
			defer f.git.Close()
			return f.git.Watch(ctx, func(s snapshot.Snapshot, err error) { f.hear(a, s, err) })
		})
	}
}

// hear takes in what a source says. After an error the last good snapshot stays:
// a source that cannot be read is never an empty one.
func (f *follower) hear(a *App, s snapshot.Snapshot, err error) {
	now := time.Now()
	f.mu.Lock()
	f.view.Err = err
	if err == nil {
		f.view.Snapshot = s
	} else if last, ok := f.git.Last(); ok && f.view.Snapshot.Tree == nil {
		f.view.Snapshot = last
	}
	f.mu.Unlock()
	shown := board.Source{Name: f.config.Name, URL: f.config.URL, Ref: refText(f.config.Ref)}
	if err != nil {
		a.hideSource(f.config)
		shown.Error = err.Error()
		a.log.Error("source cannot be read", "source", f.config.Name, "error", err)
	} else {
		// Without the subject, which may name a secret: see desired.
		shown.Revision, shown.FetchedAt = s.Revision, now
	}
	a.board.Source(shown)
	f.once.Do(func() { close(f.heard) })
	select {
	case a.word <- struct{}{}:
	default:
	}
	a.wake()
}

// firstWord bounds how long the first pass waits for the first source, company
// how long it then waits for the others: one that does not answer holds up its
// own targets only.
const (
	firstWord = 15 * time.Second
	company   = time.Second
)

// views are the sources as they stand, once each has said something or has had
// the time for it. Word is rung when one does.
func (g *generation) views(ctx context.Context, word <-chan struct{}) (map[string]fleet.View, error) {
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
		case <-word:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
	out := map[string]fleet.View{}
	for name, f := range g.followers {
		f.mu.Lock()
		out[name] = f.view
		f.mu.Unlock()
	}
	return out, nil
}

// patience is how long after it asked a pass waits for the sources that have not
// said anything yet.
func (g *generation) patience() time.Duration {
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
		return firstWord
	default:
		return company
	}
}

// stopSources ends the following of all sources.
func (g *generation) stopSources(ctx context.Context) error {
	var errs []error
	for _, f := range g.followers {
		if f.stop != nil {
			errs = append(errs, f.stop(ctx))
		}
	}
	return errors.Join(errs...)
}

// openStatuses reads the journal, if there is a forge.
func (g *generation) openStatuses(a *App) error {
	if g.commits != nil || len(g.config.Forges) == 0 {
		return nil
	}
	forges := map[string]commits.Forge{}
	for _, f := range g.config.Forges {
		if f.Type == config.Generic {
			continue
		}
		of := g.followers[f.Source]
		forge, err := newForge(f, of, cmp.Or(of.config.Ref.Branch, of.config.Ref.Tag), a.metrics)
		if err != nil {
			return err
		}
		forges[f.Source] = a.tracing.Forge(forge)
	}
	if len(forges) == 0 {
		return nil
	}
	var err error
	g.commits, err = commits.New(commits.Options{
		Instance: g.config.Instance, PageURL: g.config.PublicURL, Forges: forges, StateDir: a.state.Dir, Redact: a.o.Secrets.Redact, Logger: a.log, Wrote: a.metrics.StatusWrite,
	})
	return err
}

// startStatuses posts statuses, if there is a forge.
func (g *generation) startStatuses(ctx context.Context, a *App) {
	a.posting.Store(g.commits)
	if g.commits != nil && g.stopCommits == nil {
		g.stopCommits = a.spawn(ctx, "statuses", g.commits.Run)
	}
}

// stopStatuses posts what is wanted and leaves nothing pending.
func (g *generation) stopStatuses(ctx context.Context) error {
	if g.commits == nil || g.stopCommits == nil {
		return nil
	}
	return errors.Join(g.stopCommits(ctx), g.commits.Close(ctx))
}
