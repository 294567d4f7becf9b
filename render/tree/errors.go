package tree

import "fmt"

// TooLargeError says that a tree holds a file, and that it has too many bytes to be
// read. It is the commit's fault, as any other of a file.
type TooLargeError struct {
	Path string
	// Size and Limit are in bytes.
	Size, Limit int64
}

// Error names the file and the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, more than the limit of %d", e.Path, e.Size, e.Limit)
}

// LFSPointerError says that a file is stored in Git LFS, so that the tree holds a
// pointer to it only.
type LFSPointerError struct{ Path string }

// Error names the file and says what to do.
func (e *LFSPointerError) Error() string {
	return fmt.Sprintf("%s is a Git LFS pointer, and its content is not in the repository; store manifests in Git itself (git lfs migrate export)", e.Path)
}
