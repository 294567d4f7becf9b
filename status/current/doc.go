// Package current keeps the current state of a daemon: sources, targets with their last report and
// pools, pull requests, the configuration, the last passes and events.
//
// A State has a part for each of these. A part copies and redacts its input, and notifies the open pages.
// Sources and Targets compare their new state with the last announced one, and add the resulting events to
// Activity, which sends them to the log, to the archive and to Notify. None of this waits for a browser, a
// receiver or the disk: the recorder writes history in the background. A query waits until the recorder has
// written everything.
//
// All parts return copies, or values that never change. Lock order: Sources and Targets keep their own lock
// while they add to Activity. Activity then takes its lock, and calls no other part.
package current
