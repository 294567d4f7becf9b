// Package examplerepo holds the example fleet, so that the demo can make a
// repository of it wherever it runs.
package examplerepo

import "embed"

// Files are the files of the example, as they are in this directory.
//
//go:embed README.md all:base all:pools all:stages all:overlays
var Files embed.FS
