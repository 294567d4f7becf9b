package git

import (
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/fault"
)

const (
	// maxEntries bounds the files and directories of a commit.
	maxEntries = 200_000
	// maxDepth bounds the nesting of directories.
	maxDepth = 128
	// maxRemembered bounds the cache of a Verifier.
	maxRemembered = 1_000_000
)

// Verifier walks trees and returns an error at the first missing object. It caches the names of intact trees,
// so that the next commit costs only its changes. go-git's walkers are not used, because they treat a missing
// subtree as the end of the list.
type Verifier struct {
	db *Store

	mu    sync.Mutex
	known map[plumbing.Hash]extent
}

// extent is the size of a complete tree: the number of entries below it, and of directory levels.
type extent struct{ entries, height int }

func NewVerifier(db *Store) *Verifier {
	return &Verifier{db: db, known: map[plumbing.Hash]extent{}}
}

// Verify checks that root and everything below it are present.
func (v *Verifier) Verify(root plumbing.Hash) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) > maxRemembered {
		clear(v.known)
	}
	err := v.walk(root, ".", 0)
	var missing *fault.ObjectError
	if errors.As(err, &missing) && missing.Missing {
		// Git may have repacked during the walk.
		if rerr := v.db.Refresh(); rerr != nil {
			return rerr
		}
		err = v.walk(root, ".", 0)
	}
	return err
}

// Forget clears the cache, because the objects may have changed.
func (v *Verifier) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.known)
}

// walk checks a directory and everything below it. depth is the number of directories above it.
func (v *Verifier) walk(dir plumbing.Hash, at string, depth int) error {
	if e, ok := v.known[dir]; ok {
		return tooDeep(at, depth+e.height)
	}
	if err := tooDeep(at, depth); err != nil {
		return err
	}
	node, err := v.db.Tree(dir)
	if err != nil {
		return fmt.Errorf("verify %q: %w", at, err)
	}
	sum := extent{entries: len(node.Entries)}
	for i, e := range node.Entries {
		h, p := node.Hashes[i], path.Join(at, e.Name)
		switch e.Mode {
		case tree.Submodule: // the commit is in another repository
		case tree.Dir:
			if err := v.walk(h, p, depth+1); err != nil {
				return err
			}
			below := v.known[h]
			sum.entries += below.entries
			sum.height = max(sum.height, below.height+1)
		default:
			if err := v.present(h, p); err != nil {
				return err
			}
		}
		if sum.entries > maxEntries {
			return fault.New(fault.Unsupported, "the commit has more than %d files and directories; put weir's manifests into a repository of their own", maxEntries)
		}
	}
	v.known[dir] = sum
	return nil
}

func tooDeep(at string, depth int) error {
	if depth > maxDepth {
		return fault.New(fault.Unsupported, "directories are nested more than %d levels deep at or below %q; move them up, or put weir's manifests into a repository of their own", maxDepth, at)
	}
	return nil
}

func (v *Verifier) present(h plumbing.Hash, p string) error {
	ok, err := v.db.Has(h)
	if err == nil && !ok {
		err = &fault.ObjectError{Hash: h, Text: "the object is missing", Missing: true}
	}
	if err != nil {
		return fmt.Errorf("verify %q: %w", p, err)
	}
	return nil
}
