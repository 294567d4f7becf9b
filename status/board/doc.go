// Package board keeps the current state of a daemon: sources, targets with their last
// report and pools, pull requests, the configuration, the last passes and events.
//
// Reports come in by Board.Report, and everything else by a method of its own. The board
// copies and redacts what it is given, works out which events are new, hands them to the
// log, to the archive and to Notify, and wakes the pages that are open. None of this
// waits for a browser, a receiver or the disk: the recorder writes history beside the
// passes, and what it has not written is asked of before each query.
//
// The board returns copies, or values that never change.
package board
