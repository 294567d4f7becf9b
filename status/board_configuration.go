package status

// ShowConfiguration says which configuration holds, as text without any secret in
// it, for the page. None is refused then.
func (b *Board) ShowConfiguration(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown, b.refused = b.redact.text(text), ""
	b.watchers.changed("")
}

// RefuseConfiguration says that the configuration on the disk is not taken, and why.
// Until another one holds the page tells it: a reader else takes what is written
// for what is done.
func (b *Board) RefuseConfiguration(why string) {
	b.mu.Lock()
	b.refused = b.redact.text(why)
	b.mu.Unlock()
	b.Event(Event{Kind: "configuration-refused", Text: why})
}

// refusal is why the configuration on the disk is not taken, empty where it is.
func (b *Board) refusal() string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.redact.text(b.refused)
}

// HoldWrites says that nothing is written, and why, or where why is empty that this
// is over.
func (b *Board) HoldWrites(why string) {
	why = b.redact.text(why)
	b.mu.Lock()
	before := b.held
	b.held = why
	b.mu.Unlock()
	if why != before {
		b.watchers.changed("")
	}
	if why != "" && why != before {
		b.Event(Event{Kind: "state-lost", Text: "nothing is written: " + why})
	}
}

// writesHeld is why nothing is written, empty where something may be.
func (b *Board) writesHeld() string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.held
}

// configuration is what ShowConfiguration was given.
func (b *Board) configuration() string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.shown
}
