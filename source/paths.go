package source

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"
)

var (
	errIsDir     = errors.New("it is a directory")
	errNotDir    = errors.New("it is not a directory")
	errSubmodule = errors.New("it is a submodule; put the manifests into this repository")
)

func pathError(op, p string, err error) error { return &fs.PathError{Op: op, Path: p, Err: err} }

// validPath tells whether p is a Tree path other than the root.
func validPath(p string) bool {
	return p != "" && p != ".." && !strings.HasPrefix(p, "../") && !path.IsAbs(p) && path.Clean(p) == p
}

func isLFSPointer(data []byte) bool {
	return len(data) < 1024 && bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/v1\n"))
}
