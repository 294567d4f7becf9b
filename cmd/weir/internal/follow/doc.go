// Package follow keeps the views of Git repositories that a daemon applies.
//
// A Source reads one repository, here or, among several daemons, in the one that owns it. It has the
// connection to the repository's forge, as both are reached in the same way.
package follow
