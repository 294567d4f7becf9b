// Package events finds the milestones in reports: something was made, changed, started,
// finished, found or refused.
//
// Known is what readers have been told of a target or a source so far. Between compares
// it with a report, and returns the events that are new and what is known with them. So
// each milestone is told once, however often a pass finds it and however often weir
// restarts: whoever calls it keeps Known on the disk. A fact that still holds stands in
// Known.Standing and is not told again; one that went and comes back is.
//
// Which event a step, a hold or a diagnostic becomes is in the tables of package kinds.
package events
