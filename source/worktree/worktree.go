// Package worktree returns the files of a local directory, for commands with a path instead of a source.
// OpenPath returns all files, and OpenWorkTree the files that Git tracks or would add. Nothing is written,
// and later reads of a path return the same as the first.
package worktree

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	gitconfig "github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
)

// ErrNoWorkTree means that a directory is not in a Git work tree.
var ErrNoWorkTree = errors.New("it is in no Git work tree")

// WorkTree is a Git work tree on disk.
type WorkTree struct {
	// Root is the absolute path of the work tree.
	Root string
	// Tree has the files that a commit of everything would contain: the tracked files as they are on disk,
	// and the files that are neither tracked nor ignored.
	Tree tree.Tree
	// Remotes are the URLs of the repository's remotes, with origin first.
	Remotes []string

	dirs    git.Dirs
	disk    tree.Tree
	tracked map[string]bool
}

// Tracked returns the files that Git tracks, as they are on disk. It does not include untracked files, even
// if they are not ignored, because their owner has not added them to the repository yet.
func (w *WorkTree) Tracked() tree.Tree {
	return &unignored{Tree: w.disk, root: w.Root, tracked: w.tracked, strict: true, hidden: map[string]bool{}}
}

// Untracked returns the files of Tree that are not in Tracked, sorted. They are not sent to a server, and the
// user is told so.
func (w *WorkTree) Untracked() ([]string, error) {
	var out []string
	var walk func(dir string) error
	walk = func(dir string) error {
		list, err := w.Tree.ReadDir(dir)
		for _, e := range list {
			p := path.Join(dir, e.Name)
			switch {
			case err != nil:
			case e.Mode == tree.Dir:
				err = walk(p)
			case !w.tracked[p]:
				out = append(out, p)
			}
		}
		return err
	}
	if err := walk("."); err != nil {
		return nil, fmt.Errorf("list the work tree: %w", err)
	}
	slices.Sort(out)
	return out, nil
}

// Filtered returns the first line in an attributes file that makes Git store files in another form than on
// disk, such as encrypted, and the name of that file. It returns "" if there is no such line. It ignores
// lines for Git LFS.
func (w *WorkTree) Filtered() (line, file string) {
	files := []string{filepath.Join(w.dirs.Common, "info", "attributes")}
	for p := range w.tracked {
		if path.Base(p) == ".gitattributes" {
			files = append(files, filepath.Join(w.Root, filepath.FromSlash(p)))
		}
	}
	slices.Sort(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a missing file has no lines
		}
		for line := range strings.Lines(string(data)) {
			for _, attribute := range strings.Fields(line) {
				if name, ok := strings.CutPrefix(attribute, "filter="); ok && name != "lfs" && !strings.HasPrefix(line, "#") {
					return strings.TrimSpace(line), file
				}
			}
		}
	}
	return "", ""
}

// OpenWorkTree opens the work tree around a directory or file.
func OpenWorkTree(p string) (*WorkTree, error) {
	disk, root, _, err := OpenPath(p)
	if err != nil {
		return nil, err
	}
	if !isWorkTree(root) {
		return nil, fmt.Errorf("open work tree %s: %w", p, ErrNoWorkTree)
	}
	w := &WorkTree{Root: root}
	if w.dirs, err = git.FindDirs(root); err != nil {
		return nil, fmt.Errorf("open work tree %s: %w", p, err)
	}
	if err := git.CheckFormat(w.dirs); err != nil {
		return nil, fmt.Errorf("open work tree %s: %w", p, err)
	}
	settings, err := w.dirs.Settings()
	if err != nil {
		return nil, fmt.Errorf("open work tree %s: %w", p, err)
	}
	for _, remote := range settings.Section("remote").Subsections {
		if url := remote.Option("url"); remote.Name == "origin" {
			w.Remotes = slices.Insert(w.Remotes, 0, url)
		} else if url != "" {
			w.Remotes = append(w.Remotes, url)
		}
	}
	tracked, err := trackedPaths(w.dirs)
	if err != nil {
		return nil, fmt.Errorf("open work tree %s: %w", p, err)
	}
	w.disk, w.tracked = disk, tracked
	w.Tree = &unignored{
		Tree: disk, root: root, tracked: tracked, hidden: map[string]bool{},
		patterns: map[string][]gitignore.Pattern{"": excludes(w.dirs, settings)},
	}
	return w, nil
}

// Resolve returns the ref for a name in the repository, like Git: HEAD, a full ref, a tag, a branch, a remote
// branch, or a full commit name.
func (w *WorkTree) Resolve(name string) (source.Ref, error) {
	if git.IsHash(name) {
		return source.Ref{Commit: name}, nil
	}
	refs := filesystem.NewStorage(
		dotgit.NewRepositoryFilesystem(osfs.New(w.dirs.Own), osfs.New(w.dirs.Common)), cache.NewObjectLRU(0))
	candidates := []string{"refs/" + name, "refs/tags/" + name, "refs/heads/" + name, "refs/remotes/" + name}
	if name == plumbing.HEAD.String() || strings.HasPrefix(name, "refs/") {
		candidates = []string{name}
	}
	for _, full := range candidates {
		at := plumbing.ReferenceName(full)
		if at.Validate() != nil {
			continue
		}
		ref, err := storer.ResolveReference(refs, at)
		switch {
		case err == nil && !ref.Hash().IsZero():
			return source.Ref{Commit: ref.Hash().String()}, nil
		case err != nil && !errors.Is(err, plumbing.ErrReferenceNotFound):
			return source.Ref{}, fmt.Errorf("read %s: %s: %w", w.Root, fault.Plain(name), err)
		}
	}
	return source.Ref{}, fmt.Errorf("read %s: there is no branch, tag or commit %q", w.Root, fault.Plain(name))
}

// At returns the repository as a source, at the commit of a name.
func (w *WorkTree) At(name string) (*source.Git, error) {
	ref, err := w.Resolve(name)
	if err != nil {
		return nil, err
	}
	return source.New(source.Config{Name: "path", URL: w.Root, Ref: ref}, source.Options{})
}

// trackedPaths returns the files in the index and their directories.
func trackedPaths(dirs git.Dirs) (map[string]bool, error) {
	out := map[string]bool{}
	f, err := os.Open(filepath.Join(dirs.Own, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil // nothing was added yet
	}
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	defer func() { _ = f.Close() }() // Opened for reading only.
	var idx index.Index
	if err := index.NewDecoder(bufio.NewReader(f)).Decode(&idx); err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	for _, e := range idx.Entries {
		if e.SkipWorktree {
			return nil, fmt.Errorf("the work tree is sparse: %s is not on disk, so weir cannot tell it from a deleted file", fault.Plain(e.Name))
		}
		for p := e.Name; p != "." && !out[p]; p = path.Dir(p) {
			out[p] = true
		}
	}
	return out, nil
}

// excludes returns the ignore patterns that are not in files of the work tree: the user's patterns, and then
// the repository's, which have priority.
func excludes(d git.Dirs, settings *gitconfig.Config) []gitignore.Pattern {
	var out []gitignore.Pattern
	home, _ := os.UserHomeDir() // without a home directory the user has no patterns
	at := settings.Section("core").Option("excludesfile")
	if own, err := gitignore.LoadGlobalPatterns(osfs.New("/")); err == nil && len(own) > 0 {
		out = append(out, own...)
	} else if config, err := os.UserConfigDir(); at == "" && err == nil {
		at = filepath.Join(config, "git", "ignore")
	}
	if rest, ok := strings.CutPrefix(at, "~/"); ok {
		at = filepath.Join(home, rest)
	}
	for _, file := range []string{at, filepath.Join(d.Common, "info", "exclude")} {
		if file != "" {
			out = append(out, readPatterns(file, nil)...)
		}
	}
	return out
}

// readPatterns reads the ignore patterns in a file. An unreadable file counts as empty, as in Git.
func readPatterns(file string, domain []string) (out []gitignore.Pattern) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			out = append(out, gitignore.ParsePattern(line, domain))
		}
	}
	return out
}

// unignored is a work tree without the untracked files that Git ignores.
type unignored struct {
	tree.Tree
	root    string
	tracked map[string]bool
	// strict hides all untracked files.
	strict bool

	mu       sync.Mutex
	hidden   map[string]bool
	patterns map[string][]gitignore.Pattern // by directory, including the patterns of its parents
}

// Lookup returns the entry at p.
func (t *unignored) Lookup(p string) (tree.Entry, error) {
	e, err := t.Tree.Lookup(p)
	if err == nil && t.hides(p, e.Mode) {
		return tree.Entry{}, git.PathError("lookup", p, fs.ErrNotExist)
	}
	return e, err
}

// ReadFile returns a file's content or a symlink's text.
func (t *unignored) ReadFile(p string) ([]byte, error) {
	if _, err := t.Lookup(p); err != nil {
		return nil, err
	}
	return t.Tree.ReadFile(p)
}

// ReadDir lists the directory p without the ignored entries.
func (t *unignored) ReadDir(p string) ([]tree.Entry, error) {
	if _, err := t.Lookup(p); err != nil {
		return nil, err
	}
	all, err := t.Tree.ReadDir(p)
	return slices.DeleteFunc(all, func(e tree.Entry) bool { return t.hides(path.Join(p, e.Name), e.Mode) }), err
}

func (t *unignored) hides(p string, mode tree.Mode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ignored(p, mode == tree.Dir || mode == tree.Submodule)
}

// ignored reports whether Git would not add p. A tracked file is never ignored. An untracked file in an
// ignored directory always is.
func (t *unignored) ignored(p string, isDir bool) bool {
	if p == "." || t.tracked[p] {
		return false
	}
	if t.strict {
		return true
	}
	is, known := t.hidden[p]
	if !known {
		is = t.ignored(path.Dir(p), true) ||
			gitignore.NewMatcher(t.patternsOf(path.Dir(p))).Match(strings.Split(p, "/"), isDir)
		t.hidden[p] = is
	}
	return is
}

// patternsOf returns the patterns for a directory. Later patterns have priority.
func (t *unignored) patternsOf(dir string) []gitignore.Pattern {
	if have, known := t.patterns[dir]; known {
		return have
	}
	around, domain := t.patterns[""], []string(nil)
	if dir != "." {
		around, domain = t.patternsOf(path.Dir(dir)), strings.Split(dir, "/")
	}
	own := readPatterns(filepath.Join(t.root, filepath.FromSlash(dir), ".gitignore"), domain)
	t.patterns[dir] = slices.Concat(around, own)
	return t.patterns[dir]
}
