package build

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// mount is where kustomize sees the tree. It is not "/", because there
// ../../../x would be clamped to the root and found, and it is absolute,
// because kustomize never takes an absolute path for a Git URL.
const mount = "/.repo"

var errReadOnly = errors.New("the file system of a build has no such operation")

// fileSystem is the tree as kustomize sees it. In a local build kustomize calls
// CleanedAbs and ReadFile alone; everything else answers with an error. It
// serves only files that the walk has read and found harmless.
type fileSystem struct {
	view *view
	// fed replaces the content of files, by physical path.
	fed map[string][]byte
	// allowed holds the files that the walk has accepted.
	allowed map[string]bool
	// hidden files do not exist for kustomize.
	hidden map[string]bool
	// made files exist for kustomize though the tree does not hold them.
	made map[string]bool
}

// CleanedAbs splits a path into its physical directory and the file name, as
// kustomize's load restriction needs it.
func (f *fileSystem) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	rel, err := f.inTree(p)
	if err != nil {
		return "", "", err
	}
	if f.made[rel] {
		return mounted(path.Dir(rel)), path.Base(rel), nil
	}
	if f.hidden[rel] {
		return "", "", &fs.PathError{Op: "open", Path: rel, Err: fs.ErrNotExist}
	}
	physical, entry, err := f.view.resolve(rel)
	if err != nil {
		return "", "", err
	}
	if entry.Mode.IsFile() {
		return mounted(path.Dir(physical)), path.Base(physical), nil
	}
	return mounted(physical), "", nil
}

// ReadFile returns a file that the walk has accepted.
func (f *fileSystem) ReadFile(p string) ([]byte, error) {
	rel, err := f.inTree(p)
	if err != nil {
		return nil, err
	}
	if content, ok := f.fed[rel]; ok {
		if err := f.view.count(int64(len(content))); err != nil {
			return nil, err
		}
		return content, nil
	}
	if !f.allowed[rel] {
		return nil, fmt.Errorf("read %s: the file was not checked before the build", rel)
	}
	return f.view.read(rel)
}

func (f *fileSystem) inTree(p string) (string, error) {
	clean := path.Clean(p)
	if clean == mount {
		return ".", nil
	}
	rel, ok := strings.CutPrefix(clean, mount+"/")
	if !ok {
		return "", fmt.Errorf("%s is outside the repository", p)
	}
	return rel, nil
}

func mounted(p string) filesys.ConfirmedDir {
	if p == "." {
		return mount
	}
	return filesys.ConfirmedDir(mount + "/" + p)
}

// The rest of filesys.FileSystem: never called by a local build.

// Create is refused.
func (f *fileSystem) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir is refused.
func (f *fileSystem) Mkdir(string) error { return errReadOnly }

// MkdirAll is refused.
func (f *fileSystem) MkdirAll(string) error { return errReadOnly }

// RemoveAll is refused.
func (f *fileSystem) RemoveAll(string) error { return errReadOnly }

// Open is refused.
func (f *fileSystem) Open(string) (filesys.File, error) { return nil, errReadOnly }

// IsDir knows nothing.
func (f *fileSystem) IsDir(string) bool { return false }

// ReadDir is refused.
func (f *fileSystem) ReadDir(string) ([]string, error) { return nil, errReadOnly }

// Exists knows nothing.
func (f *fileSystem) Exists(string) bool { return false }

// Glob is refused.
func (f *fileSystem) Glob(string) ([]string, error) { return nil, errReadOnly }

// WriteFile is refused.
func (f *fileSystem) WriteFile(string, []byte) error { return errReadOnly }

// Walk is refused.
func (f *fileSystem) Walk(string, filepath.WalkFunc) error { return errReadOnly }
