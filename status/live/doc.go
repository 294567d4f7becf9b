// Package live sends changes to open pages. Watchers collect for each page the targets that changed
// since its last message. Their memory is bounded, however much changes and however slowly the page
// reads, and a reporter of a change never waits. A message names targets and contains nothing else:
// the page requests again what it shows.
package live
