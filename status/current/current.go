package current

import (
	"cmp"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/live"
	"github.com/weir-gitops/weir/status/report"
)

// Source is a repository and the ref that is followed, as it stands now.
type Source struct {
	Name string `json:"name"`
	// URL is kept without user, password and query.
	URL string `json:"url"`
	// Ref describes the followed ref, such as "branch main".
	Ref string `json:"ref"`
	// Revision is the full hash of the commit that was last seen, empty
	// before the first successful fetch; Subject is its first line.
	Revision string `json:"revision"`
	Subject  string `json:"subject"`
	// FetchedAt is the time of the last successful fetch.
	FetchedAt time.Time `json:"fetchedAt,omitzero"`
	// ChangedAt is the time at which Revision was first seen; the state fills it in.
	ChangedAt time.Time `json:"changedAt,omitzero"`
	// Error is the reason why the last fetch failed, or "".
	Error string `json:"error,omitempty"`
	// WebURL is the repository's address on its forge for a browser, and Forge the
	// kind of forge: github, gitlab, gitea or forgejo. Where they are empty they
	// are taken from URL if it names them, and else commits and files get no link.
	WebURL string `json:"webURL,omitempty"`
	Forge  string `json:"forge,omitempty"`
}

// Target is a configured target.
type Target struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Path    string `json:"path"`
	Account string `json:"account"`
	Region  string `json:"region"`
}

// TargetState is a target with what its last passes found. Reports in it never
// change.
type TargetState struct {
	Target
	Phase report.Phase
	// Last is the report of the last pass, nil before the first. Applied is the kept part of the
	// report of the last pass that ran a step, nil if none has, and MoreApplied counts the outcomes
	// that were dropped from it.
	Last        *plan.Report
	Applied     *plan.Report
	MoreApplied int
	// Pools holds the pools of the last pass that could read them, at PoolsAt: a render that fails
	// says nothing about the pools in AWS.
	Pools         []plan.PoolStatus
	LaunchConfigs []plan.LaunchConfigStatus
	PoolsAt       time.Time
	// ConvergedSince holds, by namespace/name, the time at which a pool was first seen converged.
	// Other pools are not in it.
	ConvergedSince map[string]time.Time
	// HeldSince is the time of the first report that the target is held as Last says; zero if it is
	// not held.
	HeldSince time.Time
	// NextDue is the time of the next pass, zero if unknown.
	NextDue time.Time
	// Rendering is the commit that is still being rendered, since a while; Unanswered
	// is since when AWS has not answered the pass under way. Both are zero mostly.
	Rendering  Rendering
	Unanswered time.Time
}

// Rendering is a commit that is being rendered.
type Rendering struct {
	Revision string    `json:"revision,omitempty"`
	Since    time.Time `json:"since,omitzero"`
}

// State is the current state of a daemon, for the page and the API. It is safe
// for concurrent use; everything that it returns is a copy.
type State struct {
	instance string
	redact   report.Redact
	Now      func() time.Time
	notify   func([]events.Event)
	log      *slog.Logger
	// recorder is nil where history is not kept over a restart.
	recorder *recorder

	mu      sync.RWMutex
	sources map[string]Source
	targets map[string]TargetState
	runs    ring[history.Run]
	events  ring[events.Event]
	// known holds what was announced of each target and source, by targetKey and sourceKey.
	known map[string]events.Known
	// absent holds the time since which an announced target or source is gone.
	absent    map[string]time.Time
	heartbeat time.Time
	// within is the time within which the next sign of life must follow a beat.
	within time.Duration
	// configured says that Configure was called.
	configured bool
	pulls      map[pullKey]keptPull
	// shown is the configuration as the page shows it, and refused why a later one
	// did not replace it, empty without a refusal.
	shown, refused string
	// held is the reason why nothing is written, or "".
	held string

	watchers live.Watchers
}

// Options configures a Board.
type Options struct {
	// Instance is weir's instance name, shown on the page.
	Instance string
	// Redact is applied to every text before it is kept.
	Redact report.Redact
	// Now defaults to time.Now.
	Now func() time.Time
	// Archive keeps history over restarts; nil keeps it in memory only.
	Archive Archive
	// Logger writes every event as a line of its own; it may be nil.
	Logger *slog.Logger
	// Notify is called with events as they happen, redacted; it may be nil, and must not
	// block.
	Notify func([]events.Event)
}

// The history in memory is bounded: it suffices for a page, and a daemon that runs for a year needs
// no more memory than a daemon that runs for a day.
const (
	keptRuns   = 200
	keptEvents = 500
)

// New returns a state without targets, with the history of its archive. If the archive cannot be
// read, New logs that, and the history starts empty.
func New(o Options) *State {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b := &State{
		instance: o.Instance, redact: o.Redact, Now: o.Now, log: o.Logger, notify: o.Notify,
		sources: map[string]Source{}, targets: map[string]TargetState{},
		runs: ring[history.Run]{max: keptRuns}, events: ring[events.Event]{max: keptEvents}, known: map[string]events.Known{},
	}
	if o.Archive != nil {
		b.recorder = newRecorder(o.Archive, o.Logger)
		if err := b.remember(o.Archive); err != nil {
			o.Logger.Error("cannot read the history of earlier processes", "error", err)
		}
	}
	return b
}

// Configure sets the sources and targets. The state keeps what it knows of those that stay, and
// forgets all others. A daemon is ready once every target named here has made its first pass.
func (b *State) Configure(sources []Source, targets []Target) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keptSources := make(map[string]Source, len(sources))
	for _, s := range sources {
		s.URL = plainURL(s.URL)
		s.WebURL = plainURL(s.WebURL)
		if old, ok := b.sources[s.Name]; ok && old.URL == s.URL && old.Ref == s.Ref {
			old.WebURL, old.Forge = s.WebURL, s.Forge
			s = old
		}
		keptSources[s.Name] = s
	}
	kept := make(map[string]TargetState, len(targets))
	for _, t := range targets {
		state, ok := b.targets[t.Name]
		if !ok {
			state.Phase = report.Waiting
		}
		state.Target = t
		kept[t.Name] = state
	}
	b.sources, b.targets, b.configured = keptSources, kept, true
	b.miss()
	maps.DeleteFunc(b.pulls, func(k pullKey, _ keptPull) bool { _, ok := keptSources[k.source]; return !ok })
	b.watchers.Changed("")
}

// Missing names what readiness waits for: the configuration, then the first
// pass over each target.
func (b *State) Missing() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if !b.configured {
		return []string{"the configuration"}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(b.targets)) {
		if t := b.targets[name]; t.Last == nil {
			text := "the first pass over " + name
			for _, words := range SlowWords(&t) {
				text += " (" + words + ")"
			}
			out = append(out, text)
		}
	}
	return out
}

// Source replaces the state of a source. An empty Revision, Subject or FetchedAt
// keeps the earlier one: a failed fetch forgets nothing.
func (b *State) Source(s Source) {
	s.URL, s.Error, s.Subject = plainURL(s.URL), b.redact.Text(s.Error), b.redact.Text(s.Subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.sources[s.Name]
	if s.Revision == "" || s.Revision == old.Revision && s.Subject == "" {
		s.Revision, s.Subject = old.Revision, old.Subject
	}
	if s.ChangedAt = old.ChangedAt; s.Revision != old.Revision {
		s.ChangedAt = s.FetchedAt
	}
	if s.FetchedAt.IsZero() {
		s.FetchedAt = old.FetchedAt
	}
	s.WebURL, s.Forge = cmp.Or(s.WebURL, old.WebURL), cmp.Or(s.Forge, old.Forge)
	b.sources[s.Name] = s
	b.publishSource(s)
	b.watchers.Changed("")
}

// Subject says what the first line of a source's commit is, once the commit was
// rendered: only then is it known what of it must not be shown.
func (b *State) Subject(source, revision, subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.sources[source]; ok && s.Revision == revision && s.Subject == "" {
		s.Subject = b.redact.Text(subject)
		b.sources[source] = s
	}
}

// Due says when a target's next pass is due. It does nothing for a target that
// the state does not know.
func (b *State) Due(target string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, ok := b.targets[target]; ok {
		t.NextDue = at
		b.targets[target] = t
		b.watchers.Changed(target)
	}
}

// Renders says which targets are behind their source, because its newest commit is
// still being rendered for them: these and no others.
func (b *State) Renders(of map[string]Rendering) {
	b.edit(func(t *TargetState) bool {
		is := of[t.Name]
		changed := t.Rendering != is
		t.Rendering = is
		return changed
	})
}

// Unanswered says which targets' passes wait for AWS since when, without an answer:
// these and no others.
func (b *State) Unanswered(since map[string]time.Time) {
	b.edit(func(t *TargetState) bool {
		is := since[t.Name]
		changed := !t.Unanswered.Equal(is)
		t.Unanswered = is
		return changed
	})
}

// edit changes targets, and reports those that have changed to the watchers.
func (b *State) edit(change func(*TargetState) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, t := range b.targets {
		if change(&t) {
			b.targets[name] = t
			b.watchers.Changed(name)
		}
	}
}

// Remove forgets a target.
func (b *State) Remove(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.targets, target)
	b.watchers.Changed("")
}

// Beat says that the reconciler's loop turns, and that the next sign of life may take
// as long as within. It is alive even if something is slow: reports say nothing of it.
func (b *State) Beat(within time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heartbeat, b.within = b.Now(), within
	b.forgetGone()
}

// Live answers pages that are open with what changes, until EndStreams.
func (b *State) Live() http.Handler { return &b.watchers }

// EndStreams ends the answers that last as long as a page is open, so that a
// server can shut down without waiting for them. Pages then ask now and then.
func (b *State) EndStreams() { b.watchers.Close() }
