package worktree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/git"
)

// OpenPath returns the tree around a directory or file on disk, for commands with a path instead of a source.
// Inside a Git work tree, root is the work tree, and the tree has its files on disk, committed or not.
// Elsewhere root is the root of the file system, because a kustomization may refer to bases anywhere. The
// reader must then keep files below their own kustomization. rel is the Tree path of p, with symlinks
// resolved. root is absolute.
//
// The tree contains nothing named .git. Within a work tree, a directory with its own repository is a
// submodule, as in a commit. A file that was read once does not change in the tree.
func OpenPath(p string) (t tree.Tree, root, rel string, err error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return nil, "", "", fmt.Errorf("open path %s: %w", p, err)
	}
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, "", "", fmt.Errorf("open path %s: %w", p, git.IOCause(err))
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, "", "", fmt.Errorf("open path %s: %w", p, git.IOCause(err))
	}
	dir := abs
	if !info.IsDir() {
		dir = filepath.Dir(abs)
	}
	root, inWorkTree := workTreeRoot(dir)
	if !inWorkTree {
		root = filepath.VolumeName(abs) + string(filepath.Separator)
	}
	if rel, err = filepath.Rel(root, abs); err != nil {
		return nil, "", "", fmt.Errorf("open path %s: %w", p, err)
	}
	rel = filepath.ToSlash(rel)
	for _, name := range strings.Split(rel, "/") {
		if isGitName(name) {
			return nil, "", "", fmt.Errorf("open path %s: it is inside a .git directory", p)
		}
	}
	return &diskTree{root: root, workTree: inWorkTree, seen: map[string]*diskEntry{}}, root, rel, nil
}

// workTreeRoot returns the nearest parent directory with .git: a directory with a HEAD, or the file in a
// linked worktree or a submodule.
func workTreeRoot(dir string) (string, bool) {
	for {
		if isWorkTree(dir) {
			return dir, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}

func isWorkTree(dir string) bool {
	git := filepath.Join(dir, ".git")
	info, err := os.Lstat(git)
	if err != nil {
		return false
	}
	if info.Mode().IsRegular() {
		return true
	}
	_, err = os.Stat(filepath.Join(git, "HEAD"))
	return err == nil
}

// isGitName reports whether a name is .git. It ignores case, for file systems that do.
func isGitName(name string) bool { return strings.EqualFold(name, ".git") }

var (
	errChanged = errors.New("the file changed while it was read")
	errNotFile = errors.New("it is neither a file nor a directory")
)

// diskTree is a directory on disk. Each path is read at most once, so that later reads return the same.
type diskTree struct {
	root     string
	workTree bool

	mu   sync.Mutex
	seen map[string]*diskEntry
	// held is the number of bytes of content in seen.
	held int64
}

var _ tree.Tree = (*diskTree)(nil)

// maxHeldBytes bounds the content in memory. Other content is read again when it is needed, and must then be
// unchanged.
const maxHeldBytes = 64 << 20

// diskEntry is the result of a lookup of a path: only err, or an entry with content.
type diskEntry struct {
	entry tree.Entry
	err   error
	data  []byte
	// dataErr is the reason why the content is missing. dropped is true if the content was not kept.
	dataErr error
	dropped bool
	list    []tree.Entry
	listed  bool
}

// Lookup returns the entry at p. A file above MaxFileBytes has no Hash.
func (t *diskTree) Lookup(p string) (tree.Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.at(p)
	if d.err != nil {
		return tree.Entry{}, git.PathError("lookup", p, d.err)
	}
	return d.entry, nil
}

// ReadFile returns a file's content or a symlink's text. For a file above MaxFileBytes it returns a
// *tree.TooLargeError, and for a file in Git LFS a *tree.LFSPointerError.
func (t *diskTree) ReadFile(p string) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.at(p)
	switch {
	case d.err != nil:
		return nil, git.PathError("read", p, d.err)
	case d.entry.Mode == tree.Dir:
		return nil, git.PathError("read", p, git.ErrIsDir)
	case d.entry.Mode == tree.Submodule:
		return nil, git.PathError("read", p, git.ErrSubmodule)
	case d.dataErr != nil:
		return nil, d.dataErr
	}
	data := d.data
	if d.dropped {
		var err error
		if data, err = t.readAgain(p, d.entry.Hash); err != nil {
			return nil, err
		}
	}
	if d.entry.Mode.IsFile() && git.IsLFSPointer(data) {
		return nil, &tree.LFSPointerError{Path: p}
	}
	return bytes.Clone(data), nil
}

func (t *diskTree) readAgain(p, hash string) ([]byte, error) {
	info, err := os.Lstat(t.file(p))
	if err != nil {
		return nil, git.PathError("read", p, notAbsence(err))
	}
	data, err := readRegular(t.file(p), p, info)
	if err != nil {
		return nil, git.PathError("read", p, notAbsence(err))
	}
	if tree.BlobHash(data) != hash {
		return nil, git.PathError("read", p, errChanged)
	}
	return data, nil
}

// ReadDir lists the directory p, sorted by name. Like Git, it omits .git and everything except files,
// directories and symlinks.
func (t *diskTree) ReadDir(p string) ([]tree.Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.at(p)
	if d.err != nil {
		return nil, git.PathError("readdir", p, d.err)
	}
	if d.entry.Mode != tree.Dir {
		return nil, git.PathError("readdir", p, git.ErrNotDir)
	}
	if !d.listed {
		found, err := os.ReadDir(t.file(p))
		if err != nil {
			return nil, git.PathError("readdir", p, notAbsence(err))
		}
		for _, f := range found {
			if isGitName(f.Name()) || f.Type()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) != 0 {
				continue
			}
			e := t.at(path.Join(p, f.Name()))
			if e.err != nil {
				return nil, git.PathError("readdir", path.Join(p, f.Name()), notAbsence(e.err))
			}
			d.list = append(d.list, e.entry)
		}
		sort.Slice(d.list, func(i, j int) bool { return d.list[i].Name < d.list[j].Name })
		d.listed = true
	}
	return append([]tree.Entry(nil), d.list...), nil
}

// notAbsence makes sure that a file that disappeared while a directory was read does not look like a missing
// directory.
func notAbsence(err error) error { return fmt.Errorf("%v", git.IOCause(err)) } //nolint:errorlint // On purpose, see above.

func (t *diskTree) file(p string) string { return filepath.Join(t.root, filepath.FromSlash(p)) }

// at returns the entry of p. It checks the parents first, so that a path through a symlink or a submodule
// does not exist.
func (t *diskTree) at(p string) *diskEntry {
	if d, ok := t.seen[p]; ok {
		return d
	}
	d := t.find(p)
	t.seen[p] = d
	return d
}

// find reads the entry of p from the disk for at, with the content of files and symlinks. Names that Git
// does not accept, and everything below them, do not exist. A nested work tree is a submodule.
func (t *diskTree) find(p string) *diskEntry {
	if p != "." {
		if !git.ValidPath(p) || isGitName(path.Base(p)) || !fitsDisk(p) {
			return &diskEntry{err: fs.ErrNotExist}
		}
		parent := t.at(path.Dir(p))
		if parent.err != nil {
			return &diskEntry{err: parent.err}
		}
		if parent.entry.Mode != tree.Dir {
			return &diskEntry{err: fs.ErrNotExist}
		}
	}
	info, err := os.Lstat(t.file(p))
	if err != nil {
		return &diskEntry{err: git.IOCause(err)}
	}
	d := &diskEntry{entry: tree.Entry{Name: path.Base(p), Size: -1}}
	switch {
	case info.IsDir() && p != "." && t.workTree && isWorkTree(t.file(p)):
		d.entry.Mode = tree.Submodule
	case info.IsDir():
		d.entry.Mode = tree.Dir
	case info.Mode()&fs.ModeSymlink != 0:
		d.entry.Mode = tree.Symlink
		text, err := os.Readlink(t.file(p))
		d.set(p, []byte(filepath.ToSlash(text)), err)
	case info.Mode().IsRegular():
		d.entry.Mode = tree.File
		if info.Mode()&0o111 != 0 {
			d.entry.Mode = tree.Executable
		}
		data, err := readRegular(t.file(p), p, info)
		d.set(p, data, err)
		if t.held += int64(len(d.data)); t.held > maxHeldBytes {
			t.held -= int64(len(d.data))
			d.data, d.dropped = nil, true
		}
	default:
		return &diskEntry{err: errNotFile}
	}
	return d
}

// fitsDisk reports whether a file with this path can exist. If not, the path is missing, and this is no
// error, because readers also try inline text as a path.
func fitsDisk(p string) bool {
	return len(path.Base(p)) <= 255 && len(p) < 4000 && !strings.ContainsRune(p, 0)
}

func (d *diskEntry) set(p string, data []byte, err error) {
	switch e := err.(type) { //nolint:errorlint // Made one call above, never wrapped.
	case nil:
		d.data, d.entry.Size, d.entry.Hash = data, int64(len(data)), tree.BlobHash(data)
	case *tree.TooLargeError:
		d.entry.Size, d.dataErr = e.Size, e
	default:
		d.dataErr = git.PathError("read", p, notAbsence(err))
	}
}

// readRegular reads a file that info describes. It returns an error if another file, which could be a symlink
// to anywhere, has replaced it.
func readRegular(file, p string, info fs.FileInfo) ([]byte, error) {
	if info.Size() > git.MaxFileBytes {
		return nil, &tree.TooLargeError{Path: p, Size: info.Size(), Limit: git.MaxFileBytes}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // Opened for reading only.
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, opened) {
		return nil, errChanged
	}
	data, err := io.ReadAll(io.LimitReader(f, git.MaxFileBytes+1))
	if err == nil && len(data) > git.MaxFileBytes {
		return nil, &tree.TooLargeError{Path: p, Size: int64(len(data)), Limit: git.MaxFileBytes}
	}
	return data, err
}
