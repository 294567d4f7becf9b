// Package events finds the milestones in reports: something was made, changed, started,
// finished, found or refused.
//
// Known is what was announced of a target or a source so far. Between compares it with
// a report, and returns the new events and the Known that includes them. So each
// milestone is announced once, however often a pass finds it and however often weir
// restarts: whoever calls it keeps Known on the disk. A fact that still holds stands in
// Known.Standing and is not announced again; one that went and comes back is.
//
// The tables of package kinds say which event a step, a hold or a diagnostic becomes.
package events
