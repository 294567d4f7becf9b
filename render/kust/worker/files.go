package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Mount is the path at which kustomize sees the tree. It is not "/", because the path ../../../x would then
// be clamped to the root and found. It is absolute, because kustomize never treats an absolute path as a Git
// URL.
const Mount = "/.repo"

var errReadOnly = errors.New("the file system of a build has no such operation")

// fileSystem presents a Job's files to kustomize. In a local build kustomize calls only CleanedAbs and
// ReadFile. All other methods return an error.
type fileSystem struct {
	job   *Job
	ask   Asker
	known map[string]Path
	reads int
	bytes int64
}

// CleanedAbs splits a path into its physical directory and the file name, which kustomize's load restriction
// needs.
func (f *fileSystem) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	rel, err := inTree(p)
	if err != nil {
		return "", "", err
	}
	to, ok := f.known[rel]
	if !ok {
		to = f.ask(rel)
	}
	switch {
	case to.Missing:
		return "", "", &fs.PathError{Op: "open", Path: rel, Err: fs.ErrNotExist}
	case to.Fault != "":
		return "", "", errors.New(to.Fault)
	case to.File:
		return mounted(path.Dir(to.At)), path.Base(to.At), nil
	default:
		return mounted(to.At), "", nil
	}
}

// ReadFile returns a file that weir has checked.
func (f *fileSystem) ReadFile(p string) ([]byte, error) {
	rel, err := inTree(p)
	if err != nil {
		return nil, err
	}
	content, ok := f.job.Files[rel]
	if !ok {
		return nil, fmt.Errorf("read %s: the file was not checked before the build", rel)
	}
	f.reads++
	f.bytes += int64(len(content))
	if f.reads > f.job.Reads || f.bytes > f.job.Bytes {
		return nil, ErrReads
	}
	return content, nil
}

func inTree(p string) (string, error) {
	clean := path.Clean(p)
	if clean == Mount {
		return ".", nil
	}
	rel, ok := strings.CutPrefix(clean, Mount+"/")
	if !ok {
		return "", fmt.Errorf("%s is outside the repository", p)
	}
	return rel, nil
}

func mounted(p string) filesys.ConfirmedDir { return filesys.ConfirmedDir(Mounted(p)) }

// Mounted returns the path at which kustomize sees a path of the tree. Faults contain such paths.
func Mounted(p string) string {
	if p == "." {
		return Mount
	}
	return Mount + "/" + p
}

// The other methods of filesys.FileSystem, which a local build never calls.

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

// IsDir always returns false.
func (f *fileSystem) IsDir(string) bool { return false }

// ReadDir is refused.
func (f *fileSystem) ReadDir(string) ([]string, error) { return nil, errReadOnly }

// Exists always returns false.
func (f *fileSystem) Exists(string) bool { return false }

// Glob is refused.
func (f *fileSystem) Glob(string) ([]string, error) { return nil, errReadOnly }

// WriteFile is refused.
func (f *fileSystem) WriteFile(string, []byte) error { return errReadOnly }

// Walk is refused.
func (f *fileSystem) Walk(string, filepath.WalkFunc) error { return errReadOnly }
