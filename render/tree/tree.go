// Package tree is the view that rendering has of one state of a repository: the
// files of a commit, or of a work tree on disk, by slash-separated path. It
// imports the standard library only, so that what gives trees (source) and what
// reads them (render) need not know each other.
package tree

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Mode is the kind of a tree entry, as Git distinguishes them.
type Mode uint8

// Modes. Only the read set distinguishes executable files from files.
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

// Entry is one name in a tree. Hash is Git's object name in hex: of the blob,
// of the link text for a symlink, of the tree object for a directory. A
// directory of a work tree on disk has no Hash.
type Entry struct {
	Name string
	Mode Mode
	Hash string
	// Size is the length of a blob in bytes, or -1 where it is not known
	// without reading.
	Size int64
}

// Tree is an immutable set of files. Paths are slash-separated, relative to the
// root, cleaned, and "." is the root itself. An implementation follows no
// symlink: a path through one is fs.ErrNotExist, and the caller resolves links.
// An error other than fs.ErrNotExist means that the tree could not be read (an
// object is missing, say); it must never be taken for absence.
//
// A Tree may be used by several goroutines at once.
type Tree interface {
	// Lookup describes the entry at path.
	Lookup(path string) (Entry, error)
	// ReadFile returns the content of a file, or the link text of a symlink.
	ReadFile(path string) ([]byte, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(path string) ([]Entry, error)
}

// Clean turns a user's path into a Tree path. It refuses a path that leaves the root.
func Clean(p string) (string, error) {
	c := path.Clean(strings.TrimPrefix(strings.ReplaceAll(p, "\\", "/"), "./"))
	if path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../") {
		return "", &fs.PathError{Op: "clean", Path: p, Err: errors.New("path leaves the tree")}
	}
	return c, nil
}
