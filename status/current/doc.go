// Package current keeps the current state of a daemon: sources, targets with their last report and
// pools, pull requests, the configuration, the last passes and events.
//
// Reports come in by Board.Report, and everything else by a method of its own. The state copies and
// redacts its input, works out which events are new, sends them to the log, to the archive and to
// Notify, and wakes the open pages. None of this waits for a browser, a receiver or the disk: the
// recorder writes history in parallel with the passes, and a query first waits for what it has not
// written.
//
// The state returns copies, or values that never change.
package current
