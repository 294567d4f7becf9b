package kust

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weir-gitops/weir/render/kust/reads"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/render/tree"
)

// maxLinks bounds the symlinks on one path, as in Linux.
const maxLinks = 40

var (
	errTooSlow    = errors.New("the build took too long")
	errLimit      = worker.ErrReads
	errEscape     = errors.New("the path leaves the repository")
	errLinkEscape = errors.New("the symlink leads out of the repository")
	errLinkLoop   = errors.New("too many symlinks")
	errSubmodule  = errors.New("the path is in a submodule")
	errPointer    = errors.New("the file is a Git LFS pointer")
)

func isTooSlow(err error) bool { return errors.Is(err, errTooSlow) }

// view reads a tree for one build. It follows symlinks inside the tree, enforces the limits, and records
// every lookup. It stores an error of the tree itself, because kustomize ignores errors of its file system.
type view struct {
	ctx  context.Context
	tree tree.Tree
	lim  Limits
	// small is true if small workers run the build. killed is true if something outside of the build killed a
	// worker. Forks share killed.
	small  bool
	killed *atomic.Bool

	mu         sync.Mutex
	found      map[string]lstatResult
	resolved   map[string]worker.Path
	content    map[string][]byte
	lists      map[string][]string // names of YAML files, by directory
	reads      int
	bytes      int64
	decryption decryption
	fatal      error
}

type lstatResult struct {
	entry tree.Entry
	err   error // fs.ErrNotExist or nil
}

func newView(ctx context.Context, t tree.Tree, lim Limits) *view {
	return &view{ctx: ctx, tree: t, lim: lim, killed: new(atomic.Bool), found: map[string]lstatResult{}, resolved: map[string]worker.Path{}, content: map[string][]byte{}}
}

// fork returns a view of the same tree with its own context and counters.
func (v *view) fork(ctx context.Context) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := newView(ctx, v.tree, v.lim)
	f.small, f.killed = v.small, v.killed
	maps.Copy(f.found, v.found)
	maps.Copy(f.resolved, v.resolved)
	maps.Copy(f.content, v.content)
	return f
}

// failure returns the reason why the tree could not be read, or nil.
func (v *view) failure() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.fatal
}

func (v *view) fail(err error) error {
	if v.fatal == nil {
		v.fatal = err
	}
	return err
}

// giveUp makes every later read fail.
func (v *view) giveUp(why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.fail(why)
}

// lstat returns the entry at p without following links, and records the result.
func (v *view) lstat(p string) (tree.Entry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l, ok := v.found[p]; ok {
		return l.entry, l.err
	}
	if v.ctx.Err() != nil {
		return tree.Entry{}, v.fail(context.Cause(v.ctx))
	}
	e, err := v.tree.Lookup(p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tree.Entry{}, v.fail(err)
	}
	if err != nil {
		err = &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	v.found[p] = lstatResult{entry: e, err: err}
	return e, err
}

// resolve returns the physical path of p after following links, and its entry.
func (v *view) resolve(p string) (string, tree.Entry, error) {
	at, e, err := v.follow(p)
	to := worker.Path{At: at, File: err == nil && e.Mode.IsFile()}
	if errors.Is(err, fs.ErrNotExist) {
		to.Missing = true
	} else if err != nil {
		to.Fault = err.Error()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.resolved[p] = to
	return at, e, err
}

// resolutions returns the results of all paths that were resolved so far.
func (v *view) resolutions() map[string]worker.Path {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.resolved)
}

// pathOf answers kustomize for a path that was not resolved before.
func (v *view) pathOf(p string) worker.Path {
	clean, err := tree.Clean(p)
	if err != nil {
		return worker.Path{Fault: errEscape.Error()}
	}
	_, _, _ = v.resolve(clean)
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.resolved[clean]
}

// contents returns the contents of files in the form that kustomize gets.
func (v *view) contents(files map[string]*file) map[string][]byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make(map[string][]byte, len(files))
	for p := range files {
		out[p] = v.content[p]
	}
	return out
}

// follow resolves the symlinks in p like the system does, for resolve. It fails if a link is absolute, if
// the path leaves the tree or passes through a submodule, or after too many links.
func (v *view) follow(p string) (string, tree.Entry, error) {
	// A tree does not look up paths through symlinks, so a path that exists in the tree is physical.
	if e, err := v.lstat(p); err == nil && e.Mode != tree.Symlink && e.Mode != tree.Submodule {
		return p, e, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", tree.Entry{}, err
	}
	at, links := ".", 0
	entry := tree.Entry{Name: ".", Mode: tree.Dir, Size: -1}
	todo := strings.Split(p, "/")
	for len(todo) > 0 {
		step := todo[0]
		todo = todo[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return "", tree.Entry{}, &fs.PathError{Op: "open", Path: p, Err: escapeKind(links)}
			}
			at = path.Dir(at)
			entry = tree.Entry{Name: path.Base(at), Mode: tree.Dir, Size: -1}
			continue
		}
		if entry.Mode != tree.Dir {
			return "", tree.Entry{}, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
		}
		next := path.Join(at, step)
		e, err := v.lstat(next)
		if err != nil {
			return "", tree.Entry{}, err
		}
		switch e.Mode {
		case tree.Submodule:
			return "", tree.Entry{}, &fs.PathError{Op: "open", Path: next, Err: errSubmodule}
		case tree.Symlink:
			if links++; links > maxLinks {
				return "", tree.Entry{}, &fs.PathError{Op: "open", Path: p, Err: errLinkLoop}
			}
			target, err := v.read(next)
			if err != nil {
				return "", tree.Entry{}, err
			}
			if int64(len(target)) > v.lim.DocumentBytes {
				return "", tree.Entry{}, fileTooLarge(next, v.lim.DocumentBytes)
			}
			if path.IsAbs(string(target)) {
				return "", tree.Entry{}, &fs.PathError{Op: "open", Path: next, Err: errLinkEscape}
			}
			todo = append(strings.Split(string(target), "/"), todo...)
		default:
			at, entry = next, e
		}
	}
	return at, entry, nil
}

func escapeKind(links int) error {
	if links > 0 {
		return errLinkEscape
	}
	return errEscape
}

// countLocked adds one read of n bytes. The caller holds mu.
func (v *view) countLocked(n int64) error {
	if v.ctx.Err() != nil {
		return v.fail(context.Cause(v.ctx))
	}
	v.reads++
	v.bytes += n
	if v.reads > v.lim.Files {
		return fmt.Errorf("%w: more than %d files", errLimit, v.lim.Files)
	}
	if v.bytes > v.lim.TotalBytes {
		return fmt.Errorf("%w: more than %d bytes in all", errLimit, v.lim.TotalBytes)
	}
	return nil
}

// read returns the content of the file, or the text of the link, at a physical path. The caller
// must not change the result.
func (v *view) read(p string) ([]byte, error) {
	e, err := v.sized(p)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	data, ok := v.content[p]
	if !ok {
		if data, err = v.load(p); err != nil {
			return nil, err
		}
		data = v.open(p, e, data)
		v.content[p] = data
	}
	return data, v.countLocked(int64(len(data)))
}

// sized returns the entry at a physical path, or an error if it is too large.
func (v *view) sized(p string) (tree.Entry, error) {
	e, err := v.lstat(p)
	if err == nil && e.Size > v.lim.FileBytes {
		err = fileTooLarge(p, v.lim.FileBytes)
	}
	return e, err
}

// plain reads a file without decrypting it.
func (v *view) plain(p string) ([]byte, error) {
	if _, err := v.sized(p); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	data, err := v.load(p)
	if err == nil && int64(len(data)) > v.lim.DocumentBytes {
		err = fileTooLarge(p, v.lim.DocumentBytes)
	}
	if err != nil {
		return nil, err
	}
	return data, v.countLocked(int64(len(data)))
}

// load reads a file from the tree. The caller holds mu.
func (v *view) load(p string) ([]byte, error) {
	if v.ctx.Err() != nil {
		return nil, v.fail(context.Cause(v.ctx))
	}
	var large *tree.TooLargeError
	var pointer *tree.LFSPointerError
	data, err := v.tree.ReadFile(p)
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("%w: %s has %d bytes, and a file at most %d", errLimit, p, large.Size, min(large.Limit, v.lim.FileBytes))
	case errors.As(err, &pointer):
		return nil, errPointer
	case err != nil:
		// The file exists, so this is an error of the tree.
		return nil, v.fail(fmt.Errorf("read %s: %w", p, err))
	}
	if int64(len(data)) > v.lim.FileBytes {
		return nil, fileTooLarge(p, v.lim.FileBytes)
	}
	return data, nil
}

func fileTooLarge(p string, limit int64) error {
	return fmt.Errorf("%w: %s has more than %d bytes", errLimit, p, limit)
}

// list returns the names of the YAML files of a directory, sorted, and records them.
func (v *view) list(dir string) ([]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	entries, err := v.tree.ReadDir(dir)
	if err != nil {
		return nil, v.fail(fmt.Errorf("list %s: %w", dir, err))
	}
	if v.lists == nil {
		v.lists = map[string][]string{}
	}
	names := reads.YAMLNames(entries)
	v.lists[dir] = names
	return names, nil
}

// lookups returns everything that was looked up so far.
func (v *view) lookups() reads.Set {
	v.mu.Lock()
	defer v.mu.Unlock()
	var s reads.Set
	for p, l := range v.found {
		s.Add(p, l.entry, l.err)
	}
	for dir, names := range v.lists {
		s.AddNames(dir, names)
	}
	s.Sort()
	return s
}
