// Package tree defines rendering's view of a repository at one point in time: the files of a commit, or of a
// work tree on disk, by slash-separated path. It imports only the standard library, so that source, which
// provides trees, and render, which reads them, do not depend on each other.
package tree

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Mode is Git's kind of a tree entry.
type Mode uint8

// Modes. Only read sets distinguish executable files from other files.
const (
	File Mode = iota + 1
	Executable
	Dir
	Symlink
	Submodule
)

// String returns Git's octal mode.
func (m Mode) String() string {
	switch m {
	case File:
		return "100644"
	case Executable:
		return "100755"
	case Dir:
		return "040000"
	case Symlink:
		return "120000"
	case Submodule:
		return "160000"
	default:
		return "000000"
	}
}

// IsFile reports whether the entry has readable content of its own.
func (m Mode) IsFile() bool { return m == File || m == Executable }

// Entry is an entry of a tree. Hash is Git's object name in hex: of the blob, of a symlink's text, or of a
// directory's tree object. A directory of a work tree on disk has no Hash.
type Entry struct {
	Name string
	Mode Mode
	Hash string
	// Size is the length of a blob in bytes, or -1 if it is unknown without reading.
	Size int64
}

// Tree is an immutable set of files. Paths are slash-separated, relative to the root and clean; "." is the
// root. A Tree does not follow symlinks. A path through a symlink results in fs.ErrNotExist, and the caller
// resolves links. Any other error means that the tree could not be read, for example because an object is
// missing. Callers must never treat it as a missing file.
//
// A Tree is safe for concurrent use.
type Tree interface {
	// Lookup returns the entry at path.
	Lookup(path string) (Entry, error)
	// ReadFile returns the content of a file, or the link text of a symlink.
	ReadFile(path string) ([]byte, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(path string) ([]Entry, error)
}

// Clean converts a user's path to a Tree path. It refuses a path that leaves the root.
func Clean(p string) (string, error) {
	c := path.Clean(strings.TrimPrefix(strings.ReplaceAll(p, "\\", "/"), "./"))
	if path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../") {
		return "", &fs.PathError{Op: "clean", Path: p, Err: errors.New("path leaves the tree")}
	}
	return c, nil
}
