// Package live sends changes to open pages. For each page, a Watcher collects the targets that changed
// since the last message. Its memory is bounded, even if many targets change or the page reads slowly, and
// reporting a change never blocks. A message contains only the names of targets: the page then fetches
// their data again.
package live
