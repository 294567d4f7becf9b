package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	gitconfig "github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/weir-gitops/weir/source/fault"
)

// Dirs are the directories of a repository. A linked worktree has its own HEAD, and shares objects and refs;
// so Own and Common differ.
type Dirs struct{ Own, Common string }

func (d Dirs) Objects() string { return filepath.Join(d.Common, "objects") }

// FindDirs returns the directories of the repository at path: a work tree, a linked worktree, a submodule, or
// a bare repository.
func FindDirs(path string) (Dirs, error) {
	if _, err := os.Stat(path); err != nil {
		return Dirs{}, fault.New(fault.NotFound, "%s: %v", path, IOCause(err))
	}
	own := filepath.Join(path, ".git")
	info, err := os.Stat(own)
	switch {
	case err != nil:
		own = path
	case !info.IsDir():
		data, err := os.ReadFile(own)
		if err != nil {
			return Dirs{}, fault.New(fault.NotFound, "%s: %v", path, IOCause(err))
		}
		target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
		if !ok {
			return Dirs{}, fault.New(fault.NotFound, "%s is not a file of Git", own)
		}
		own = absFrom(path, target)
	}
	dirs := Dirs{Own: own, Common: own}
	if data, err := os.ReadFile(filepath.Join(own, "commondir")); err == nil {
		dirs.Common = absFrom(own, strings.TrimSpace(string(data)))
	}
	for _, p := range []string{filepath.Join(dirs.Own, "HEAD"), dirs.Objects()} {
		if _, err := os.Stat(p); err != nil {
			return Dirs{}, fault.New(fault.NotFound, "%s is not a Git repository", path)
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

// IOCause removes the operation and path that package os adds to an error.
func IOCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Settings returns the settings in the repository's own config file.
func (d Dirs) Settings() (*gitconfig.Config, error) {
	cfg := gitconfig.New()
	f, err := os.Open(filepath.Join(d.Common, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, nil
	}
	if err != nil {
		return nil, fault.New(fault.Unsupported, "read the repository's config: %v", err)
	}
	defer func() { _ = f.Close() }() // Opened for reading only.
	if err := gitconfig.NewDecoder(f).Decode(cfg); err != nil {
		return nil, fault.New(fault.Unsupported, "read the repository's config: %v", err)
	}
	return cfg, nil
}

// CheckFormat refuses repositories that go-git cannot read.
func CheckFormat(dirs Dirs) error {
	cfg, err := dirs.Settings()
	if err != nil {
		return err
	}
	for _, o := range cfg.Section("extensions").Options {
		switch key := strings.ToLower(o.Key); key {
		case "noop", "preciousobjects", "partialclone", "worktreeconfig", "relativeworktrees":
		case "objectformat":
			if !strings.EqualFold(o.Value, "sha1") {
				return fault.New(fault.Unsupported, "the repository uses the object format %s; only sha1 is supported", fault.Plain(o.Value))
			}
		case "refstorage":
			if !strings.EqualFold(o.Value, "files") {
				return fault.New(fault.Unsupported, "the repository keeps its refs as %s; convert it with `git refs migrate --ref-format=files`", fault.Plain(o.Value))
			}
		default:
			return fault.New(fault.Unsupported, "the repository uses the extension %s, which is unknown here", fault.Plain(key))
		}
	}
	return nil
}

// ObjectDirs returns the object directory and its alternates.
func ObjectDirs(objects string) []string {
	out := []string{objects}
	seen := map[string]bool{objects: true}
	for i := 0; i < len(out); i++ {
		data, err := os.ReadFile(filepath.Join(out[i], "info", "alternates"))
		if err != nil {
			continue // no alternates; a missing object is detected when it is read
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

// RefDirs returns the directories in which a change of a ref is visible: both Git directories for HEAD and
// packed-refs, and all directories below refs.
func RefDirs(dirs Dirs) []string {
	out := []string{dirs.Own}
	if dirs.Common != dirs.Own {
		out = append(out, dirs.Common)
	}
	// Polling covers directories that cannot be listed.
	_ = filepath.WalkDir(filepath.Join(dirs.Common, "refs"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			out = append(out, p)
		}
		return nil
	})
	return out
}
