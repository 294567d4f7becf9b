// Package events derives events from reports: weir created, changed, started, completed, found or refused
// something.
//
// Known contains the announced state of a target or a source. Between compares it with a report, and
// returns the new events and the updated Known. The caller stores Known on the disk, so that each event is
// announced once, even if several passes find it or weir restarts. A condition that persists is in
// Known.Standing and is not announced again. A condition that ended and returns is announced again.
//
// The tables of package kinds map a step, a hold or a diagnostic to an event.
package events
