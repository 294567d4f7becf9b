package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/fleet"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status"
)

// generation is what one configuration decides.
type generation struct {
	config    *config.Config
	followers map[string]*follower // by source
	commits   *status.Commits
	fleet     *fleet.Fleet

	stopCommits func(context.Context) error
	// begun holds, by source, the revision that Commits was told of.
	begun map[string]string
	// targets are those of the last composition.
	targets []fleet.Target
}

// follower keeps the view of one source.
type follower struct {
	config config.Source
	git    *source.Git
	stop   func(context.Context) error
	// heard is closed once the source has said something, good or bad.
	heard chan struct{}

	mu   sync.Mutex
	once sync.Once
	view fleet.View
}

// newGeneration makes sources, renders and statuses as c says. Of an earlier
// generation it takes over the sources that did not change, the renders, and the
// statuses if no forge did.
func (a *App) newGeneration(c *config.Config, earlier *generation) (*generation, error) {
	g := &generation{config: c, followers: map[string]*follower{}, begun: map[string]string{}}
	for _, s := range c.Sources {
		if earlier != nil {
			if f := earlier.followers[s.Name]; f != nil && f.config == s {
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
	g.fleet = fleet.New(fleet.Options{
		Config: c, Scopes: a.scopes, EmbeddedURL: a.embeddedURL(), DigestKey: a.key, Logger: a.log,
	})
	if earlier != nil {
		g.fleet.Adopt(earlier.fleet)
		g.targets = earlier.targets
		if reflect.DeepEqual(earlier.config.Forges, c.Forges) {
			g.commits, g.stopCommits, g.begun = earlier.commits, earlier.stopCommits, earlier.begun
			return g, nil
		}
	}
	return g, nil
}

// SourceConfig is a configured source as package source takes it, with its
// mirror below the state directory.
func SourceConfig(s config.Source, stateDir string) source.Config {
	return source.Config{
		Name: s.Name, URL: s.URL, Interval: time.Duration(s.Interval), Dir: filepath.Join(stateDir, "mirrors"), CAFile: s.CAFile, Proxy: s.Proxy,
		Ref:  source.Ref{Branch: s.Ref.Branch, Tag: s.Ref.Tag, Commit: s.Ref.Commit},
		Auth: source.Auth{TokenFile: s.Auth.TokenFile, Username: s.Auth.Username, PasswordFile: s.Auth.PasswordFile},
	}
}

func (a *App) newFollower(s config.Source) (*follower, error) {
	git, err := source.New(SourceConfig(s, a.state.Dir), source.Options{
		Logger: a.log, Fetched: func(took time.Duration, err error) { a.metrics.Fetch(s.Name, took, time.Now(), err) },
	})
	if err != nil {
		return nil, err
	}
	return &follower{config: s, git: git, heard: make(chan struct{}), view: fleet.View{ID: git.ID(), At: git.At}}, nil
}

// refText says which ref is followed.
func refText(r config.Ref) string {
	switch {
	case r.Branch != "":
		return "branch " + r.Branch
	case r.Tag != "":
		return "tag " + r.Tag
	case r.Commit != "":
		return "commit " + r.Commit[:min(12, len(r.Commit))]
	default:
		return "default branch"
	}
}

// startSources follows the sources that are not followed yet.
func (g *generation) startSources(ctx context.Context, a *App) {
	for name, f := range g.followers {
		if f.stop != nil {
			continue
		}
		f.stop = a.spawn(ctx, "source "+name, func(ctx context.Context) error {
			defer f.git.Close()
			return f.git.Watch(ctx, func(s source.Snapshot, err error) { f.hear(a, s, err) })
		})
	}
}

// hear takes in what a source says. After an error the last good snapshot stays:
// a source that cannot be read is never an empty one.
func (f *follower) hear(a *App, s source.Snapshot, err error) {
	now := time.Now()
	f.mu.Lock()
	f.view.Err = err
	if err == nil {
		f.view.Snapshot = s
	} else if last, ok := f.git.Last(); ok && f.view.Snapshot.Tree == nil {
		f.view.Snapshot = last
	}
	f.mu.Unlock()
	shown := status.Source{Name: f.config.Name, URL: f.config.URL, Ref: refText(f.config.Ref)}
	if err != nil {
		shown.Error = err.Error()
		a.log.Error("source cannot be read", "source", f.config.Name, "error", err)
	} else {
		shown.Revision, shown.Subject, shown.FetchedAt = s.Revision, s.Subject, now
	}
	a.board.Source(shown)
	f.once.Do(func() { close(f.heard) })
	a.ring()
}

// firstWord bounds how long the first pass waits for a source.
const firstWord = 15 * time.Second

// views are the sources as they stand, once each has said something.
func (g *generation) views(ctx context.Context) (map[string]fleet.View, error) {
	timer := time.NewTimer(firstWord)
	defer timer.Stop()
	out := map[string]fleet.View{}
	for name, f := range g.followers {
		select {
		case <-f.heard:
		case <-timer.C:
			timer.Reset(0) // the time is over for the others too
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		f.mu.Lock()
		out[name] = f.view
		f.mu.Unlock()
	}
	return out, nil
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
	forges := map[string]status.Forge{}
	for _, f := range g.config.Forges {
		forge, err := newForge(f, g.followers[f.Source].config)
		if err != nil {
			return err
		}
		forges[f.Source] = forge
	}
	var err error
	g.commits, err = status.NewCommits(status.CommitsOptions{
		Instance: g.config.Instance, PageURL: a.PageURL(), Forges: forges, StateDir: a.state.Dir, Logger: a.log, Wrote: a.metrics.StatusWrite,
	})
	return err
}

// startStatuses posts statuses, if there is a forge.
func (g *generation) startStatuses(ctx context.Context, a *App) {
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

// newForge makes the client of a forge. A private certificate authority or a
// proxy of the source holds for its forge too.
func newForge(f config.Forge, s config.Source) (status.Forge, error) {
	repository, err := status.RepositoryOf(f.URL)
	if err != nil {
		return nil, err
	}
	transport, err := forgeTransport(s)
	if err != nil {
		return nil, err
	}
	o := status.ForgeOptions{
		URL: strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(f.URL, "/"), ".git"), "/"+repository), Repository: repository, Transport: transport,
		Token: func(context.Context) (string, error) {
			text, err := os.ReadFile(f.TokenFile)
			if err != nil {
				return "", fmt.Errorf("read token: %w", err)
			}
			return strings.TrimSpace(string(text)), nil
		},
	}
	if f.Type == config.GitHub {
		if u, err := url.Parse(o.URL); err == nil && strings.EqualFold(u.Host, "github.com") {
			o.URL = ""
		}
		return status.NewGitHub(o)
	}
	return status.NewGitea(o)
}

func forgeTransport(s config.Source) (http.RoundTripper, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read caFile: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read caFile: %s holds no certificate", s.CAFile)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	if s.Proxy != "" {
		u, err := url.Parse(s.Proxy)
		if err != nil {
			return nil, errors.New("read proxy: not a URL")
		}
		t.Proxy = http.ProxyURL(u)
	}
	return t, nil
}
