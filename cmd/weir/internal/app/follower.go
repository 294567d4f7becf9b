package app

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
	"github.com/weir-gitops/weir/cmd/weir/internal/crew"
	"github.com/weir-gitops/weir/cmd/weir/internal/telemetry"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/lineage"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/githubapp"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/board"
	"github.com/weir-gitops/weir/status/metrics"
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
	// listeners hear what the source says.
	listeners listeners
	// heard is closed once the source has said something, good or bad.
	heard chan struct{}
	// ways are the connections to the source's forge. They are made before it starts.
	ways []interface{ CloseIdleConnections() }

	mu   sync.Mutex
	once sync.Once
	view fleet.View
}

// listeners hear what sources say.
type listeners struct {
	log     *slog.Logger
	secrets *redact.Registry
	board   *board.Board
	// news wakes a conductor that waits for sources. wake makes it compose. conduct wakes the
	// conductor of rollouts.
	news    signal
	wake    func()
	conduct signal
}

// sourceOptions are what all sources of a configuration share.
type sourceOptions struct {
	stateDir  string
	rand      func() float64
	metrics   *metrics.Metrics
	tracing   *telemetry.Tracing
	lineages  *lineage.Book
	passAll   func()
	crew      *crew.Crew
	listeners listeners
}

// newFollower opens nothing.
func newFollower(s config.Source, o sourceOptions) (*follower, error) {
	c, app, err := SourceConfig(s, o.stateDir, o.listeners.secrets.Set)
	if err != nil {
		return nil, err
	}
	var line *lineage.Line
	git, err := source.New(c, source.Options{
		Rand:   o.rand,
		Found:  func(began time.Time, revision string) { line.Found(began, revision) },
		Logger: o.listeners.log, Fetched: func(took time.Duration, err error) {
			o.metrics.Fetch(s.Name, took, time.Now(), err)
			o.tracing.Past(context.Background(), "fetch", took, err, "source", s.Name)
		},
	})
	if err != nil {
		return nil, err
	}
	line = o.lineages.Line(git.ID(), s.Name, git, o.passAll, time.Now)
	return &follower{config: s, git: git, line: line, app: app, crew: o.crew, listeners: o.listeners, heard: make(chan struct{}), view: fleet.View{
		ID: git.ID(), At: git.At, Earlier: git.Earlier, Parents: git.FirstParents, Verify: fmt.Sprintf("%+v", c.Verify),
	}}, nil
}

// run keeps the view until ctx ends.
func (f *follower) run(ctx context.Context) error {
	defer f.git.Close()
	if f.crew != nil {
		var leading sync.WaitGroup
		defer leading.Wait()
		leading.Go(func() { f.lead(ctx) })
		return f.follow(ctx)
	}
	return f.git.Watch(ctx, f.hear)
}

// hear takes in what a source says. After an error the last good snapshot stays:
// a source that cannot be read is never an empty one.
func (f *follower) hear(s snapshot.Snapshot, err error) {
	to := f.listeners
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
		hideSource(to.secrets, f.config)
		shown.Error = err.Error()
		to.log.Error("source cannot be read", "source", f.config.Name, "error", err)
	} else {
		// Without the subject, which may name a secret: see desired.
		shown.Revision, shown.FetchedAt = s.Revision, now
	}
	to.board.Source(shown)
	f.once.Do(func() { close(f.heard) })
	to.news.send()
	to.wake()
}

// lead polls the repository and publishes its commits, while this daemon owns the source.
func (f *follower) lead(ctx context.Context) {
	f.crew.While(ctx, f.key(), func(ctx context.Context, l *coord.Lease) error {
		f.listeners.conduct.send()
		return f.git.Watch(ctx, func(s snapshot.Snapshot, err error) {
			if err == nil && f.crew.Lead(l, f.view.ID, f.config.Name, s.Revision, s.Ref) != nil {
				return // somebody else leads
			}
			f.hear(s, err)
		})
	})
}

// follow reads commits that others publish, until ctx ends.
func (f *follower) follow(ctx context.Context) error {
	said, seq := "", int64(0)
	for {
		synced := f.crew.Synced()
		wait := time.Duration(0)
		head, known := f.crew.Head(f.view.ID, f.config.Name)
		if known && head.Seq != seq {
			seq = head.Seq
			f.listeners.wake() // even for the commit that this member is at
		}
		if known && !f.leads() && !f.isAt(head.Commit) {
			s, err := f.git.Latest(ctx)
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

// key returns the key of the lease under which this daemon reads and owns a source.
func (f *follower) key() string { return crew.SourceKey(f.view.ID) }

// leads reports whether this daemon reads the source's repository for all.
func (f *follower) leads() bool { return f.crew == nil || f.crew.Lease(f.key()) != nil }

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

// At is the commit that the source was last seen at.
func (f *follower) At() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view.Snapshot.Revision
}

// isAt reports whether the source was read at a commit, and nothing was wrong since: it was if a reload took the commit over, or if this daemon could not
// read the repository while it led.
func (f *follower) isAt(commit string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view.Err == nil && f.view.Snapshot.Revision == commit
}

// reads reports whether Git answers. A faulty commit is faulty for all members.
func (f *follower) reads() bool {
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

// refused returns a commit that a source reached without the signature that the configuration
// requires: it is reported as a failure, though another commit stays applied.
func (f *follower) refused() (sha string, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ue *fault.UnavailableError
	if errors.As(f.view.Err, &ue) && ue.Reason == fault.Unverified {
		return ue.Revision, ue.Err
	}
	return "", nil
}

// Follows reports whether the source follows a ref. It errs towards yes: a look at
// the source is cheap.
func (f *follower) Follows(ref string) bool {
	switch r := f.config.Ref; {
	case r.Branch != "":
		return ref == "refs/heads/"+r.Branch
	case r.Tag != "":
		return ref == "refs/tags/"+r.Tag
	case r.SemVer != "":
		return strings.HasPrefix(ref, "refs/tags/")
	case r.Name != "":
		return ref == r.Name
	case r.Commit != "":
		return f.At() == "" // any ref may bring it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.view.Snapshot.Ref; strings.HasPrefix(at, "refs/heads/") {
		return ref == at
	}
	return strings.HasPrefix(ref, "refs/heads/")
}

// Nudge makes the source look at its repository, here or in the daemon that reads it.
func (f *follower) Nudge() {
	if f.leads() {
		f.git.Nudge()
		return
	}
	f.crew.AskSoon(crew.Ask{Source: f.config.Name})
}

// branch returns the branch that the source follows, and that changes are proposed into.
func (f *follower) branch() string {
	return cmp.Or(f.config.Ref.Branch, strings.TrimPrefix(f.now().Snapshot.Ref, "refs/heads/"))
}

// elsewhere returns a fault that names the member that owns the source, if this member does not own
// it, and how to reach that member.
func (f *follower) elsewhere(command string) *gates.Fault {
	again := "ask again in a moment; weir members names who owns the source then"
	now := f.crew.Mirror().Snapshot()
	o := now.Owner(f.key())
	i := slices.IndexFunc(now.Alive, func(a coord.Alive) bool { return a.Session == o.Session })
	switch {
	case i < 0 || o.Released:
		return &gates.Fault{Message: "no daemon speaks for the source " + f.config.Name + " at this moment, which proposes its changes", Hint: again}
	case o.Member == f.crew.Name():
		return &gates.Fault{Message: "this daemon has just begun to speak for the source " + f.config.Name + ", or is about to hand it over", Hint: again}
	case now.Alive[i].Member.Address == "":
		return &gates.Fault{Message: "the daemon " + o.Member + " speaks for the source " + f.config.Name + ", and proposes its changes", Hint: "ask that one: " + command + " --server, with its address"}
	}
	return &gates.Fault{Message: "the daemon " + o.Member + " speaks for the source " + f.config.Name + ", and proposes its changes", Hint: "ask that one: " + command + " --server " + now.Alive[i].Member.Address}
}

// followers keep the views of the sources of a configuration, by name.
type followers map[string]*follower

func newFollowers(sources []config.Source, o sourceOptions) (followers, error) {
	out := followers{}
	for _, s := range sources {
		f, err := newFollower(s, o)
		if err != nil {
			return nil, err
		}
		out[s.Name] = f
	}
	return out, nil
}

// inherit gives sources that stay as they are the last commit of another generation, until
// they say something themselves: where Git does not answer, that one is still applied.
func (fs followers) inherit(old followers) {
	for name, f := range fs {
		from := old[name]
		if from == nil || from.view.ID != f.view.ID || from.view.Verify != f.view.Verify || from.config.Ref != f.config.Ref {
			continue
		}
		from.mu.Lock()
		f.view.Snapshot, f.view.Seq = from.view.Snapshot, from.view.Seq
		from.mu.Unlock()
		f.view.Err = fault.Unavailable(name, fault.New(fault.Unreachable, "it was not read since the reload"))
	}
}

// held returns the store in which the owner of a source writes its statuses, or nil if this member
// is not the owner.
func (fs followers) held(source string) state.Store {
	f := fs[source]
	if f == nil {
		return nil
	}
	return f.crew.Held(f.key())
}

// heldBy is held with several daemons.
func (fs followers) heldBy(c *crew.Crew) func(string) state.Store {
	if c == nil {
		return nil
	}
	return fs.held
}

// closeConnections closes the connections to forges. Nothing must use them any more.
func (fs followers) closeConnections() {
	for _, f := range fs {
		for _, way := range f.ways {
			way.CloseIdleConnections()
		}
	}
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
