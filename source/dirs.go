package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	gitconfig "github.com/go-git/go-git/v5/plumbing/format/config"
)

// gitDirs are the directories of one repository. They differ for a linked
// worktree, which has its own HEAD, and objects and refs in common.
type gitDirs struct{ own, common string }

func (d gitDirs) objects() string { return filepath.Join(d.common, "objects") }

// findGitDirs finds the repository at path: a work tree, a linked worktree, a
// submodule, or a bare repository.
func findGitDirs(path string) (gitDirs, error) {
	if _, err := os.Stat(path); err != nil {
		return gitDirs{}, faultf(NotFound, "%s: %v", path, plainIOError(err))
	}
	own := filepath.Join(path, ".git")
	info, err := os.Stat(own)
	switch {
	case err != nil:
		own = path
	case !info.IsDir():
		data, err := os.ReadFile(own)
		if err != nil {
			return gitDirs{}, faultf(NotFound, "%s: %v", path, plainIOError(err))
		}
		target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
		if !ok {
			return gitDirs{}, faultf(NotFound, "%s is no file of Git", own)
		}
		own = absFrom(path, target)
	}
	dirs := gitDirs{own: own, common: own}
	if data, err := os.ReadFile(filepath.Join(own, "commondir")); err == nil {
		dirs.common = absFrom(own, strings.TrimSpace(string(data)))
	}
	for _, p := range []string{filepath.Join(dirs.own, "HEAD"), dirs.objects()} {
		if _, err := os.Stat(p); err != nil {
			return gitDirs{}, faultf(NotFound, "%s is no Git repository", path)
		}
	}
	return dirs, nil
}

func absFrom(dir, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}

// plainIOError drops the operation and path that os puts around the cause.
func plainIOError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// settings are those of the repository's own config.
func (d gitDirs) settings() (*gitconfig.Config, error) {
	cfg := gitconfig.New()
	f, err := os.Open(filepath.Join(d.common, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, nil
	}
	if err != nil {
		return nil, faultf(Unsupported, "read the repository's config: %v", err)
	}
	defer func() { _ = f.Close() }() // Opened for reading only.
	if err := gitconfig.NewDecoder(f).Decode(cfg); err != nil {
		return nil, faultf(Unsupported, "read the repository's config: %v", err)
	}
	return cfg, nil
}

// checkFormat refuses repositories that go-git cannot read.
func checkFormat(dirs gitDirs) error {
	cfg, err := dirs.settings()
	if err != nil {
		return err
	}
	for _, o := range cfg.Section("extensions").Options {
		switch key := strings.ToLower(o.Key); key {
		case "noop", "preciousobjects", "partialclone", "worktreeconfig", "relativeworktrees":
		case "objectformat":
			if !strings.EqualFold(o.Value, "sha1") {
				return faultf(Unsupported, "the repository uses the object format %s; only sha1 is carried", plain(o.Value))
			}
		case "refstorage":
			if !strings.EqualFold(o.Value, "files") {
				return faultf(Unsupported, "the repository keeps its refs as %s; convert it with `git refs migrate --ref-format=files`", plain(o.Value))
			}
		default:
			return faultf(Unsupported, "the repository uses the extension %s, which is unknown here", plain(key))
		}
	}
	return nil
}

// objectDirs lists the object directory and those that its alternates name.
func objectDirs(objects string) []string {
	out := []string{objects}
	seen := map[string]bool{objects: true}
	for i := 0; i < len(out); i++ {
		data, err := os.ReadFile(filepath.Join(out[i], "info", "alternates"))
		if err != nil {
			continue // There are none; what is missing shows when read.
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimRight(line, "\r\n")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if dir := absFrom(out[i], line); !seen[dir] {
				seen[dir] = true
				out = append(out, dir)
			}
		}
	}
	return out
}

// refDirs lists the directories in which a changed ref shows: both Git
// directories for HEAD and packed-refs, and all below refs.
func refDirs(dirs gitDirs) []string {
	out := []string{dirs.own}
	if dirs.common != dirs.own {
		out = append(out, dirs.common)
	}
	// What cannot be listed is covered by polling.
	_ = filepath.WalkDir(filepath.Join(dirs.common, "refs"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			out = append(out, p)
		}
		return nil
	})
	return out
}
