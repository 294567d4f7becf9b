package current

import (
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/live"
	"github.com/weir-gitops/weir/status/report"
)

// State is the current state of a daemon, for the page and the API. Every part has its own lock and is safe
// for concurrent use. All parts return copies.
type State struct {
	Sources   *Sources
	Targets   *Targets
	Pulls     *Pulls
	Activity  *Activity
	Daemon    *Daemon
	Heartbeat *Heartbeat
	// Live sends the changes of all parts to open pages. Its Close ends these responses, so that a server
	// can shut down without waiting for them.
	Live *live.Watchers
	// Now returns the current time.
	Now func() time.Time
}

// Options configures a State.
type Options struct {
	// Instance is weir's instance name, shown on the page.
	Instance string
	// Redact is applied to every text before it is kept.
	Redact report.Redact
	// Now defaults to time.Now.
	Now func() time.Time
	// Archive stores history across restarts; nil keeps it in memory only.
	Archive Archive
	// Logger writes every event as a log line; it may be nil.
	Logger *slog.Logger
	// Notify is called with events as they happen, redacted; it may be nil, and must not
	// block.
	Notify func([]events.Event)
}

// New returns a state without targets, with the history of its archive. If the archive cannot be
// read, New logs that, and the history starts empty.
func New(o Options) *State {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	pages := &live.Watchers{}
	activity := newActivity(o, pages)
	return &State{
		Sources:   &Sources{redact: o.Redact, activity: activity, pages: pages, byName: map[string]Source{}},
		Targets:   &Targets{redact: o.Redact, activity: activity, pages: pages, byName: map[string]TargetState{}},
		Pulls:     &Pulls{redact: o.Redact, now: o.Now, pages: pages, byKey: map[pullKey]keptPull{}},
		Activity:  activity,
		Daemon:    &Daemon{instance: o.Instance, redact: o.Redact, activity: activity, pages: pages},
		Heartbeat: &Heartbeat{now: o.Now},
		Live:      pages,
		Now:       o.Now,
	}
}

// Configure sets the sources and targets. The state keeps its data about sources and targets that stay, and
// forgets all others. A daemon is ready once every target named here has completed its first pass.
func (s *State) Configure(sources []Source, targets []Target) {
	s.Sources.configure(sources)
	s.Pulls.configure(sources)
	s.Activity.configure(sources, targets)
	s.Targets.configure(targets)
	s.Live.Changed("")
}
