// Package upload sends a work tree to a daemon: a compressed archive of the files that Git would track. Both
// sides apply the same limits. The daemon trusts nothing in the archive, and keeps it only in memory.
package upload

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/git"
)

// Limits of a work tree.
const (
	// MaxPacked bounds the archive, and maxBytes the total size of the files, in bytes.
	MaxPacked = 8 << 20
	maxBytes  = 32 << 20
	// maxFiles bounds the number of files, and of their directories.
	maxFiles = 20_000
	// maxPath bounds a path in bytes, and maxDepth the number of its directories. maxStream bounds an
	// unpacked archive.
	maxPath   = 1024
	maxDepth  = 128
	maxStream = maxBytes + maxFiles*2048
)

// ContentType is the content type of an archive.
const ContentType = "application/gzip"

// Error is a fault of a work tree, with advice.
type Error struct{ Message, Hint string }

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func refuse(hint, format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...), Hint: hint}
}

const narrower = "plan it with --config FILE --path DIR where that is possible, or move files that weir does not read to another repository"

func tooMuch(what string) error {
	return refuse(narrower, "the work tree is too large to be sent: %s", what)
}

// Archive is a work tree to send.
type Archive struct {
	Data  []byte
	Files int
	// Left are the files that the archive omits because no render reads them: too large, or stored in Git
	// LFS.
	Left []string
}

// Pack returns an archive of a tree.
func Pack(t tree.Tree) (*Archive, error) {
	a := &Archive{}
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	held := 0
	err := walk(t, ".", func(p string, e tree.Entry) error {
		data, err := t.ReadFile(p)
		var large *tree.TooLargeError
		var lfs *tree.LFSPointerError
		if errors.As(err, &large) || errors.As(err, &lfs) {
			a.Left = append(a.Left, p)
			return nil
		}
		if err != nil {
			return err
		}
		h := &tar.Header{Name: p, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}
		switch e.Mode {
		case tree.Executable:
			h.Mode = 0o755
		case tree.Symlink:
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, string(data), 0
			if err := inside(p, h.Linkname); err != nil {
				return err
			}
		}
		a.Files++
		held += len(data)
		switch {
		case a.Files > maxFiles:
			return tooMuch(fmt.Sprintf("it has more than %d files", maxFiles))
		case held > maxBytes:
			return tooMuch(fmt.Sprintf("its files are larger than %d MiB", maxBytes>>20))
		case len(p) > maxPath || strings.Count(p, "/") > maxDepth:
			return tooMuch(fmt.Sprintf("a path has more than %d bytes, or goes through more than %d directories", maxPath, maxDepth))
		}
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("pack %s: %w", p, err)
		}
		if h.Typeflag == tar.TypeReg {
			_, err = w.Write(data)
		}
		return err
	})
	if err = errors.Join(err, closed(err, w, compressed)); err != nil {
		return nil, err
	}
	if a.Data = out.Bytes(); len(a.Data) > MaxPacked {
		return nil, tooMuch(fmt.Sprintf("it has %d MiB compressed, and the limit is %d MiB", (len(a.Data)+1<<20-1)>>20, MaxPacked>>20))
	}
	return a, nil
}

// closed closes the writers, unless there was an earlier error.
func closed(before error, writers ...io.Closer) error {
	for _, w := range writers {
		if before != nil {
			return nil
		}
		before = w.Close()
	}
	return before
}

// walk visits all files and links below a directory.
func walk(t tree.Tree, dir string, visit func(string, tree.Entry) error) error {
	list, err := t.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		p := path.Join(dir, e.Name)
		switch {
		case e.Mode == tree.Dir:
			err = walk(t, p, visit)
		case e.Mode != tree.Submodule:
			err = visit(p, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inside refuses a link to a path outside of the tree.
func inside(p, link string) error {
	if to := path.Join(path.Dir(p), link); path.IsAbs(link) || to == ".." || strings.HasPrefix(to, "../") {
		return refuse("remove the link from Git, or make it lead to a file of the repository", "the symlink %s leads out of the work tree", p)
	}
	return nil
}

// Unpack reads an archive into memory.
func Unpack(r io.Reader) (tree.Tree, error) {
	compressed, err := gzip.NewReader(r)
	if err != nil {
		return nil, unreadable(err)
	}
	stream := &io.LimitedReader{R: compressed, N: maxStream}
	m := &memory{entries: map[string]tree.Entry{}, files: map[string][]byte{}, lists: map[string][]tree.Entry{".": nil}}
	m.entries["."] = tree.Entry{Name: ".", Mode: tree.Dir, Size: -1}
	held := 0
	for in := tar.NewReader(stream); ; {
		h, err := in.Next()
		if err == io.EOF { //nolint:errorlint // as tar says it
			// Read to the end, so that the server notices when the client disconnects.
			if _, err := io.Copy(io.Discard, r); err != nil {
				return nil, unreadable(err)
			}
			return m.sorted(), nil
		}
		if stream.N == 0 {
			return nil, tooMuch("unpacked, it is larger than allowed")
		}
		if err != nil {
			return nil, unreadable(err)
		}
		data := []byte(h.Linkname)
		e := tree.Entry{Mode: tree.Symlink}
		switch h.Typeflag {
		case tar.TypeSymlink:
			if err := inside(h.Name, h.Linkname); err != nil {
				return nil, err
			}
		case tar.TypeReg:
			e.Mode = tree.File
			if h.Mode&0o111 != 0 {
				e.Mode = tree.Executable
			}
			if data, err = io.ReadAll(io.LimitReader(in, git.MaxFileBytes+1)); err != nil {
				return nil, unreadable(err)
			}
			if len(data) > git.MaxFileBytes {
				return nil, tooMuch(fmt.Sprintf("a file has more than %d MiB", git.MaxFileBytes>>20))
			}
		default:
			return nil, refuse(sameVersion, "the archive has something other than files and symlinks")
		}
		if held += len(data); held > maxBytes {
			return nil, tooMuch(fmt.Sprintf("its files are larger than %d MiB", maxBytes>>20))
		}
		if err := m.add(h.Name, e, data); err != nil {
			return nil, err
		}
	}
}

const sameVersion = "use the weir command of the same version"

func unreadable(err error) error {
	return refuse(sameVersion, "the archive cannot be read: %v", err)
}

// memory is a tree in memory.
type memory struct {
	entries map[string]tree.Entry
	files   map[string][]byte
	lists   map[string][]tree.Entry
}

// add adds a file or link, and its parent directories.
func (m *memory) add(p string, e tree.Entry, data []byte) error {
	clean, err := tree.Clean(p)
	switch {
	case err != nil || clean != p || p == "." || len(p) > maxPath || strings.Count(p, "/") > maxDepth || strings.ContainsRune(p, 0):
		return refuse(sameVersion, "the archive has a path that Git does not allow")
	case len(m.files) >= maxFiles:
		return tooMuch(fmt.Sprintf("it has more than %d files", maxFiles))
	}
	for name := range strings.SplitSeq(p, "/") {
		if strings.EqualFold(name, ".git") {
			return refuse(sameVersion, "the archive has files of Git itself")
		}
	}
	if _, twice := m.entries[p]; twice {
		return refuse(sameVersion, "the archive has a path twice")
	}
	if err := m.within(path.Dir(p)); err != nil {
		return err
	}
	e.Name, e.Hash, e.Size = path.Base(p), tree.BlobHash(data), int64(len(data))
	m.entries[p], m.files[p] = e, data
	m.lists[path.Dir(p)] = append(m.lists[path.Dir(p)], e)
	return nil
}

// within adds a directory and its parents, unless they are known.
func (m *memory) within(dir string) error {
	have, known := m.entries[dir]
	switch {
	case known && have.Mode != tree.Dir:
		return refuse(sameVersion, "the archive has a file and a directory of the same path")
	case known:
		return nil
	case len(m.lists) > maxFiles:
		return tooMuch(fmt.Sprintf("it has more than %d directories", maxFiles))
	}
	if err := m.within(path.Dir(dir)); err != nil {
		return err
	}
	e := tree.Entry{Name: path.Base(dir), Mode: tree.Dir, Size: -1}
	m.entries[dir], m.lists[dir] = e, nil
	m.lists[path.Dir(dir)] = append(m.lists[path.Dir(dir)], e)
	return nil
}

// sorted sorts the directories after everything was added, and returns the tree.
func (m *memory) sorted() *memory {
	for _, list := range m.lists {
		slices.SortFunc(list, func(a, b tree.Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	return m
}

// Lookup returns the entry at p.
func (m *memory) Lookup(p string) (tree.Entry, error) {
	e, ok := m.entries[p]
	if !ok {
		return e, &fs.PathError{Op: "lookup", Path: p, Err: fs.ErrNotExist}
	}
	return e, nil
}

// ReadFile returns a file's content or a symlink's text.
func (m *memory) ReadFile(p string) ([]byte, error) {
	data, ok := m.files[p]
	switch {
	case ok:
		return bytes.Clone(data), nil
	case m.entries[p].Mode == tree.Dir:
		return nil, &fs.PathError{Op: "read", Path: p, Err: errors.New("is a directory")}
	}
	return nil, &fs.PathError{Op: "read", Path: p, Err: fs.ErrNotExist}
}

// ReadDir lists the directory p, sorted by name.
func (m *memory) ReadDir(p string) ([]tree.Entry, error) {
	list, ok := m.lists[p]
	switch {
	case ok:
		return slices.Clone(list), nil
	case m.files[p] != nil:
		return nil, &fs.PathError{Op: "readdir", Path: p, Err: errors.New("not a directory")}
	}
	return nil, &fs.PathError{Op: "readdir", Path: p, Err: fs.ErrNotExist}
}
