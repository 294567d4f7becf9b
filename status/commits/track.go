package commits

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/outbox"
)

// Interrupted is the text of a status that is still pending when weir stops.
const Interrupted = "interrupted; weir continues after its restart"

// track is a commit with the statuses that it should have.
type track struct {
	Source   string                   `json:"source"`
	SHA      string                   `json:"sha"`
	Targets  map[string]*targetTrack  `json:"-"`
	Contexts map[string]*contextTrack `json:"-"`
	// Turn orders the commits of a source. Parts is the number of journal parts of this commit.
	Turn  int `json:"turn"`
	Parts int `json:"parts"`
	// Fault is the reason why the commit as a whole cannot be rendered.
	Fault string `json:"fault,omitempty"`
	// Pull is the number of the pull request whose status the commit has as its head, 0 for none.
	Pull int64 `json:"pull,omitempty"`
	// Left contains, by target, the pools that earlier commits were still changing on targets that this
	// commit does not touch.
	Left map[string]map[string]step.Verb `json:"left,omitempty"`
	// recovered is the time at which the track was read from the journal, zero once its source has
	// reached the commit in this process.
	recovered time.Time
	// unsummed says that the status over all targets must be computed again.
	unsummed bool
}

func newTrack(source, sha string) *track {
	return &track{Source: source, SHA: sha, Targets: map[string]*targetTrack{}, Contexts: map[string]*contextTrack{}}
}

// contextTrack is the status that a context should have.
type contextTrack struct {
	Want      forge.CommitStatus `json:"want"`
	Delivered bool               `json:"delivered"`
	// Shown says that the forge may show the context as pending although another status is wanted. Such a
	// commit is never forgotten.
	Shown bool `json:"shown,omitempty"`
	// Stays says that the status may stay pending when weir stops, because it waits for a person.
	Stays bool `json:"stays,omitempty"`

	entry outbox.Entry // of this process
	// written says that this process wrote the status and only has to read it again, because an
	// earlier write may take effect after it.
	written bool
	// late is the time until which a write of an earlier process may still be executed; zero if no write is
	// late.
	late time.Time
}

// open reports whether the status must still be written.
func (c *contextTrack) open() bool { return !c.Delivered && !c.entry.GaveUp() }

// next returns a context with another wanted status. nil means a context without a status.
func (c *contextTrack) next(want forge.CommitStatus) *contextTrack {
	if c == nil {
		return &contextTrack{Want: want}
	}
	return &contextTrack{Want: want, Shown: c.Shown, late: c.late}
}

// mostTries bounds the tries for a commit that is missing on the forge. A pending status, and a
// status of a superseded commit that never showed one, get few tries. A verdict gets more.
func (c *contextTrack) mostTries() int {
	if c.Shown || c.Want.State == forge.Success || c.Want.State == forge.Failure {
		return LastingTries
	}
	return MissingTries
}

// finished reports whether nothing is left to post of a superseded commit.
func (t *track) finished() bool {
	for _, ct := range t.Contexts {
		if ct.open() || !ct.Delivered && ct.Shown || ct.Want.State == forge.Pending {
			return false
		}
	}
	return true
}

// shown reports whether the forge may show a status of the commit as pending.
func (t *track) shown() bool {
	for _, ct := range t.Contexts {
		if ct.Shown {
			return true
		}
	}
	return false
}

// The methods below set the wanted statuses of a commit, and report whether a status changed.

// want sets a status. A status that is already wanted keeps its position and its number of attempts.
func (t *track) want(status forge.CommitStatus) (changed bool) {
	old := t.Contexts[status.Context]
	if old != nil && old.Want == status {
		return false
	}
	t.Contexts[status.Context] = old.next(status)
	return true
}

// wantAll sets the statuses of all targets and the aggregate status.
func (t *track) wantAll(c contexts) (changed bool) {
	for name := range t.Targets {
		changed = t.wantTarget(c, name) || changed
	}
	return t.wantAggregate(c) || changed
}

// wantTarget sets the status of a target.
func (t *track) wantTarget(c contexts, name string) (changed bool) {
	state, text := t.Targets[name].State, t.Targets[name].Description
	if t.Fault != "" && state == forge.Pending {
		state, text = forge.Failure, t.Fault
	}
	return t.want(c.ofTarget(name, state, text))
}

// wantAggregate sets the aggregate status.
func (t *track) wantAggregate(c contexts) (changed bool) {
	t.unsummed = false
	state, text := aggregate(t.Targets)
	if t.Fault != "" {
		state, text = forge.Failure, t.Fault
	}
	return t.want(c.ofAll(state, text))
}

// sum sets the aggregate status if a report may have changed it. It is called once after all reports of a
// pass, which has a report for every target.
func (t *track) sum(c contexts) (changed bool) { return t.unsummed && t.wantAggregate(c) }

// close ends the pending statuses without a verdict.
func (t *track) close(c contexts, why string) (changed bool) {
	changed = t.sum(c)
	for name, ct := range t.Contexts {
		if t.Pull != 0 && ct.Want.State == forge.Pending && !ct.Shown && !ct.Stays {
			delete(t.Contexts, name) // the forge never showed it
			changed = true
			continue
		}
		if ct.Want.State == forge.Pending && (!ct.Stays || why != Interrupted) {
			s := ct.Want
			s.State, s.Description = forge.Errored, c.description(why)
			*ct = *ct.next(s)
			changed = true
		}
	}
	return changed
}
