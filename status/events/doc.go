// Package events finds the milestones in reports: something was made, changed, started, finished,
// found or refused.
//
// Known holds what was announced of a target or a source so far. Between compares it with a report,
// and returns the new events and the Known that includes them. So each milestone is announced once,
// however often a pass finds it and however often weir restarts: the caller keeps Known on the
// disk. A fact that still holds is in Known.Standing and is not announced again; a fact that ended
// and comes back is.
//
// The tables of package kinds map a step, a hold or a diagnostic to an event.
package events
