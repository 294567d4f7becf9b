package current

import (
	"sync"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/live"
	"github.com/weir-gitops/weir/status/report"
)

// Daemon contains the facts about the daemon that every page shows: its configuration, and why weir does
// not use a newer one or does not write.
type Daemon struct {
	instance string
	redact   report.Redact
	activity *Activity
	pages    *live.Watchers

	mu sync.RWMutex
	// shown is the active configuration, as text.
	shown string
	// refused is the reason why weir rejected a later configuration, or "".
	refused string
	// held is the reason why weir writes nothing, or "".
	held string
}

// ShowConfiguration sets the text of the active configuration, which must not contain secrets. It clears an
// earlier rejection.
func (d *Daemon) ShowConfiguration(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shown, d.refused = d.redact.Text(text), ""
	d.pages.Changed("")
}

// RefuseConfiguration records why weir does not use the configuration on the disk. The page shows the
// reason until another configuration becomes active, so that readers do not take the one on the disk for
// the active one.
func (d *Daemon) RefuseConfiguration(why string) {
	d.mu.Lock()
	d.refused = d.redact.Text(why)
	d.mu.Unlock()
	d.activity.Add(events.Event{Kind: "configuration-refused", Text: why})
}

// HoldWrites records why weir writes nothing. An empty reason ends that.
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

// Facts contains the facts about the daemon that every page shows.
type Facts struct {
	Instance string
	// Configuration is the active configuration, as text.
	Configuration string
	// Refused is the reason why weir rejected the configuration on the disk, or "".
	Refused string
	// Unwritten is the reason why weir writes nothing, or "".
	Unwritten string
}

// Facts returns the current facts.
func (d *Daemon) Facts() Facts {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return Facts{Instance: d.instance, Configuration: d.shown, Refused: d.redact.Text(d.refused), Unwritten: d.held}
}
