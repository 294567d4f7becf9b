package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/cmd/weir/internal/telemetry"
	"github.com/weir-gitops/weir/reconciler/ancestry"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/githubapp"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/metrics"
)

// Source follows one Git source and keeps its latest snapshot.
type Source struct {
	Config config.Source
	Git    *source.Git
	// Line compares commits in AWS's data with the commits that the source has reached.
	Line *ancestry.Line
	// app creates tokens for the source and its forge; nil without a GitHub App.
	app *githubapp.App
	// Member gives access to the daemons that share the source. Exactly one of them polls it. Member is nil
	// for a single daemon.
	Member *membership.Member
	// listeners are called after each result of the source.
	listeners Listeners
	// heard is closed after the first commit or error of the source.
	heard chan struct{}
	// forgeClients are the connections to the source's forge. They are created before the source starts.
	forgeClients []interface{ CloseIdleConnections() }

	mu   sync.Mutex
	once sync.Once
	view fleet.View
}

// Listeners receives the results of sources.
type Listeners struct {
	Logger  *slog.Logger
	Secrets *redact.Registry
	Sources *current.Sources
	// News wakes a conductor that waits for sources, and Wake makes it compose. Conduct wakes the conductor
	// of rollouts.
	News, Wake, Conduct func()
}

// Options contains the settings that all sources of a configuration share.
type Options struct {
	// StateDir contains the mirrors.
	StateDir string
	Rand     func() float64
	Metrics  *metrics.Metrics
	Tracing  *telemetry.Tracing
	Lineages *ancestry.Tracker
	// PassAll starts a pass over every scope.
	PassAll   func()
	Member    *membership.Member
	Listeners Listeners
}

// open opens the repository of a source. It does not fetch.
func open(s config.Source, o Options) (*Source, error) {
	c, app, err := Config(s, o.StateDir, o.Listeners.Secrets.Set)
	if err != nil {
		return nil, err
	}
	var line *ancestry.Line
	git, err := source.New(c, source.Options{
		Rand:   o.Rand,
		Found:  func(began time.Time, revision string) { line.RecordHead(began, revision) },
		Logger: o.Listeners.Logger, Fetched: func(took time.Duration, err error) {
			o.Metrics.Fetch(s.Name, took, time.Now(), err)
			o.Tracing.Past(context.Background(), "fetch", took, err, "source", s.Name)
		},
	})
	if err != nil {
		return nil, err
	}
	line = o.Lineages.Line(git.ID(), s.Name, git, o.PassAll, time.Now)
	return &Source{Config: s, Git: git, Line: line, app: app, Member: o.Member, listeners: o.Listeners, heard: make(chan struct{}), view: fleet.View{
		ID: git.ID(), At: git.At, Earlier: git.Earlier, Parents: git.FirstParents, Verify: fmt.Sprintf("%+v", c.Verify),
	}}, nil
}

// Run updates the view until ctx ends.
func (f *Source) Run(ctx context.Context) error {
	defer f.Git.Close()
	if f.Member != nil {
		var leading sync.WaitGroup
		defer leading.Wait()
		leading.Go(func() { f.lead(ctx) })
		return f.follow(ctx)
	}
	return f.Git.Watch(ctx, f.hear)
}

// hear processes a result of a source. After an error, the last good snapshot stays: a source that cannot
// be read never counts as empty.
func (f *Source) hear(s snapshot.Snapshot, err error) {
	to := f.listeners
	now := time.Now()
	f.mu.Lock()
	f.view.Err = err
	if err == nil {
		if f.Member == nil && s.Revision != f.view.Snapshot.Revision {
			f.view.Seq++
		}
		f.view.Snapshot = s
	} else if last, ok := f.Git.Last(); ok && f.view.Snapshot.Tree == nil && f.isHead(last.Revision) {
		f.view.Snapshot = last
	}
	f.mu.Unlock()
	shown := current.Source{Name: f.Config.Name, URL: f.Config.URL, Ref: RefText(f.Config.Ref)}
	if err != nil {
		hideSource(to.Secrets, f.Config)
		shown.Error = err.Error()
		to.Logger.Error("source cannot be read", "source", f.Config.Name, "error", err)
	} else {
		// Without the subject, which may contain a secret. The subject is set after the render.
		shown.Revision, shown.FetchedAt = s.Revision, now
	}
	to.Sources.Update(shown)
	f.once.Do(func() { close(f.heard) })
	to.News()
	to.Wake()
}

// lead polls the repository and publishes its commits, while this daemon owns the source.
func (f *Source) lead(ctx context.Context) {
	f.Member.Leases.While(ctx, f.Key(), func(ctx context.Context, l *coord.Lease) error {
		f.listeners.Conduct()
		return f.Git.Watch(ctx, func(s snapshot.Snapshot, err error) {
			if err == nil && f.Member.Heads.Publish(l, f.view.ID, f.Config.Name, s.Revision, s.Ref) != nil {
				return // another member is now the owner
			}
			f.hear(s, err)
		})
	})
}

// follow reads commits that others publish, until ctx ends.
func (f *Source) follow(ctx context.Context) error {
	said, seq := "", int64(0)
	for {
		synced := f.Member.Mirror.Synced()
		wait := time.Duration(0)
		head, known := f.Member.Heads.Get(f.view.ID, f.Config.Name)
		if known && head.Seq != seq {
			seq = head.Seq
			f.listeners.Wake() // even for the commit that this member already has
		}
		if known && !f.Leads() && !f.isAt(head.Commit) {
			s, err := f.Git.Latest(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil && err.Error() != said:
				said = err.Error()
				f.hear(snapshot.Snapshot{}, err)
			case err == nil && s.Revision == head.Commit:
				said = ""
				f.hear(s, nil)
			}
			// The Git server may still return an older commit than the owner has received.
			wait = min(f.Config.Interval, 2*time.Second)
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

// Key returns the key of the lease under which this daemon reads and owns a source.
func (f *Source) Key() string { return membership.SourceKey(f.view.ID) }

// Leads reports whether this daemon reads the source's repository for all members.
func (f *Source) Leads() bool { return f.Member == nil || f.Member.Leases.Get(f.Key()) != nil }

// isHead reports whether weir may apply a commit. With several daemons, this is only the published one.
func (f *Source) isHead(commit string) bool {
	if f.Member == nil {
		return true
	}
	head, known := f.Member.Heads.Get(f.view.ID, f.Config.Name)
	return known && head.Commit == commit
}

// ID identifies the source's repository.
func (f *Source) ID() string { return f.view.ID }

// Now returns the current view of the source. If another member is the owner, its number is the number of
// the last published head with this commit.
func (f *Source) Now() fleet.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Member != nil {
		if head, known := f.Member.Heads.Get(f.view.ID, f.Config.Name); known && head.Commit == f.view.Snapshot.Revision {
			f.view.Seq = head.Seq
		}
	}
	return f.view
}

// At returns the commit at which the source was last seen.
func (f *Source) At() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view.Snapshot.Revision
}

// isAt reports whether the source was read at a commit without a later error. It also returns true if a
// reload took the commit over, or if this daemon failed to read the repository while it was the owner.
func (f *Source) isAt(commit string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view.Err == nil && f.view.Snapshot.Revision == commit
}

// Reads reports whether Git answers. A faulty commit does not count, because it is faulty for all members.
func (f *Source) Reads() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.view.Err == nil {
		return true
	}
	switch fault.ReasonOf(f.view.Err) {
	case fault.Unreachable, fault.Timeout, fault.AuthFailed, fault.UntrustedHost, fault.Storage:
		return false
	default:
		return true
	}
}

// Refused returns a commit that a source reached without the required signature. It is reported as a
// failure, although another commit stays applied.
func (f *Source) Refused() (sha string, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ue *fault.UnavailableError
	if errors.As(f.view.Err, &ue) && ue.Reason == fault.Unverified {
		return ue.Revision, ue.Err
	}
	return "", nil
}

// Follows reports whether the source follows a ref. In case of doubt it returns true, because reading the
// source is cheap.
func (f *Source) Follows(ref string) bool {
	switch r := f.Config.Ref; {
	case r.Branch != "":
		return ref == "refs/heads/"+r.Branch
	case r.Tag != "":
		return ref == "refs/tags/"+r.Tag
	case r.SemVer != "":
		return strings.HasPrefix(ref, "refs/tags/")
	case r.Name != "":
		return ref == r.Name
	case r.Commit != "":
		return f.At() == "" // any ref may match
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.view.Snapshot.Ref; strings.HasPrefix(at, "refs/heads/") {
		return ref == at
	}
	return strings.HasPrefix(ref, "refs/heads/")
}

// Nudge makes the source read its repository, here or in the daemon that owns it.
func (f *Source) Nudge() {
	if f.Leads() {
		f.Git.Nudge()
		return
	}
	f.Member.Requests.SendSoon(membership.Request{Source: f.Config.Name})
}

// Branch returns the branch that the source follows, and into which changes are proposed.
func (f *Source) Branch() string {
	return cmp.Or(f.Config.Ref.Branch, strings.TrimPrefix(f.Now().Snapshot.Ref, "refs/heads/"))
}

// Elsewhere returns a fault that names the member that owns the source, and how to reach it. It returns nil
// if this member owns the source.
func (f *Source) Elsewhere(command string) *gates.Fault {
	again := "try again in a moment; weir members then shows the owner of the source"
	now := f.Member.Mirror.Snapshot()
	o := now.Owner(f.Key())
	i := slices.IndexFunc(now.Alive, func(a coord.Alive) bool { return a.Session == o.Session })
	switch {
	case i < 0 || o.Released:
		return &gates.Fault{Message: "no daemon owns the source " + f.Config.Name + " now, so none can propose its changes", Hint: again}
	case o.Member == f.Member.Name:
		return &gates.Fault{Message: "this daemon has just become the owner of the source " + f.Config.Name + ", or is about to hand it over", Hint: again}
	case now.Alive[i].Member.Address == "":
		return &gates.Fault{Message: "the daemon " + o.Member + " owns the source " + f.Config.Name + ", and only it proposes its changes", Hint: "ask that daemon: " + command + " --server, with its address"}
	}
	return &gates.Fault{Message: "the daemon " + o.Member + " owns the source " + f.Config.Name + ", and only it proposes its changes", Hint: "ask that daemon: " + command + " --server " + now.Alive[i].Member.Address}
}
