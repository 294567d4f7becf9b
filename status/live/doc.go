// Package live sends changes to open pages. Watchers gather for each page which targets
// changed since its last change was sent, bounded however much happens and however
// slowly the page reads; whoever says that something changed never waits. A message
// names targets and holds nothing else: the page asks anew for what it shows.
package live
