package tree

import "fmt"

// TooLargeError reports a file in a tree that has too many bytes. It is a fault of the commit, like any other
// fault in a file.
type TooLargeError struct {
	Path string
	// Size and Limit are in bytes.
	Size, Limit int64
}

// Error returns a message with the file and the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, more than the limit of %d", e.Path, e.Size, e.Limit)
}

// LFSPointerError reports a file that is stored in Git LFS, so that the tree has only a pointer.
type LFSPointerError struct{ Path string }

// Error returns a message with the file and advice.
func (e *LFSPointerError) Error() string {
	return fmt.Sprintf("%s is a Git LFS pointer, and its content is not in the repository; store manifests in Git itself (git lfs migrate export)", e.Path)
}
