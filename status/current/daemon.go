package current

import (
	"sync"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/live"
	"github.com/weir-gitops/weir/status/report"
)

// Daemon holds the facts about the daemon that every page shows: its configuration, and what keeps
// weir from using a newer one or from writing.
type Daemon struct {
	instance string
	redact   report.Redact
	activity *Activity
	pages    *live.Watchers

	mu sync.RWMutex
	// shown is the configuration in force, as text.
	shown string
	// refused is the reason why a later configuration did not replace it, or "".
	refused string
	// held is the reason why nothing is written, or "".
	held string
}

// ShowConfiguration sets the text of the configuration in force, which must contain no secret. It
// ends an earlier refusal.
func (d *Daemon) ShowConfiguration(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shown, d.refused = d.redact.Text(text), ""
	d.pages.Changed("")
}

// RefuseConfiguration records why weir does not use the configuration on the disk. The page shows
// the reason until another configuration is in force. Otherwise a reader would believe that the
// configuration on the disk is in force.
func (d *Daemon) RefuseConfiguration(why string) {
	d.mu.Lock()
	d.refused = d.redact.Text(why)
	d.mu.Unlock()
	d.activity.Add(events.Event{Kind: "configuration-refused", Text: why})
}

// HoldWrites records why nothing is written. An empty reason ends that.
func (d *Daemon) HoldWrites(why string) {
	why = d.redact.Text(why)
	d.mu.Lock()
	before := d.held
	d.held = why
	d.mu.Unlock()
	if why != before {
		d.pages.Changed("")
	}
	if why != "" && why != before {
		d.activity.Add(events.Event{Kind: "state-lost", Text: "nothing is written: " + why})
	}
}

// Facts holds the facts about the daemon that every page shows.
type Facts struct {
	Instance string
	// Configuration is the configuration in force, as text.
	Configuration string
	// Refused is the reason why the configuration on the disk is refused, or "".
	Refused string
	// Unwritten is the reason why nothing is written, or "".
	Unwritten string
}

// Facts returns the current facts.
func (d *Daemon) Facts() Facts {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return Facts{Instance: d.instance, Configuration: d.shown, Refused: d.redact.Text(d.refused), Unwritten: d.held}
}
