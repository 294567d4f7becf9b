// Package follow maintains the views of Git repositories that a daemon applies.
//
// A Source reads one repository. With several daemons, only its owner reads the repository. A Source also
// contains the connection to the repository's forge, because both are reached with the same settings.
package follow
