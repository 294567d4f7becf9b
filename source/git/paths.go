package git

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"
)

var (
	ErrIsDir     = errors.New("it is a directory")
	ErrNotDir    = errors.New("it is not a directory")
	ErrNotFile   = errors.New("it is not a file")
	ErrSubmodule = errors.New("it is a submodule; put the manifests into this repository")
)

func PathError(op, p string, err error) error { return &fs.PathError{Op: op, Path: p, Err: err} }

// ValidPath reports whether p is a Tree path other than the root.
func ValidPath(p string) bool {
	return p != "" && p != ".." && !strings.HasPrefix(p, "../") && !path.IsAbs(p) && path.Clean(p) == p
}

func IsLFSPointer(data []byte) bool {
	return len(data) < 1024 && bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/v1\n"))
}
