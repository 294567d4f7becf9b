package current

import "github.com/weir-gitops/weir/status/events"

// ShowConfiguration says which configuration holds, as text without any secret in
// it, for the page. None is refused then.
func (b *State) ShowConfiguration(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown, b.refused = b.redact.Text(text), ""
	b.watchers.Changed("")
}

// RefuseConfiguration says that the configuration on the disk is not taken, and why.
// The page shows it until another one holds: else a reader takes the written
// configuration for the one in effect.
func (b *State) RefuseConfiguration(why string) {
	b.mu.Lock()
	b.refused = b.redact.Text(why)
	b.mu.Unlock()
	b.Event(events.Event{Kind: "configuration-refused", Text: why})
}

// HoldWrites says that nothing is written, and why, or where why is empty that this
// is over.
func (b *State) HoldWrites(why string) {
	why = b.redact.Text(why)
	b.mu.Lock()
	before := b.held
	b.held = why
	b.mu.Unlock()
	if why != before {
		b.watchers.Changed("")
	}
	if why != "" && why != before {
		b.Event(events.Event{Kind: "state-lost", Text: "nothing is written: " + why})
	}
}

// Facts holds the facts about the daemon that each page shows.
type Facts struct {
	Instance string
	// Configuration is the configuration in force, as text.
	Configuration string
	// Refused is the reason why the configuration on the disk is refused, or "".
	Refused string
	// Unwritten is the reason why nothing is written, or "".
	Unwritten string
	// HasPulls says that a pull request is known.
	HasPulls bool
}

// Facts returns the facts about the daemon that each page shows.
func (b *State) Facts() Facts {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return Facts{Instance: b.instance, Configuration: b.shown, Refused: b.redact.Text(b.refused), Unwritten: b.held, HasPulls: len(b.pulls) > 0}
}
