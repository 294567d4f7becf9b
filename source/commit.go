package source

import (
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/snapshot"
)

// maxTagDepth bounds a chain of tags that point to tags.
const maxTagDepth = 10

// repository is an object store from whose commits snapshots are made.
type repository struct {
	db      *git.Store
	verify  *git.Verifier
	history *git.History
	// beforeFile is a file with the names of the commits of a mirror that this one replaced, or "".
	beforeFile string
}

func newRepository(db *git.Store) repository {
	return repository{db: db, verify: git.NewVerifier(db), history: git.NewHistory(db)}
}

// peel follows annotated tags to the commit.
func (r repository) peel(h plumbing.Hash) (*object.Commit, error) {
	for range maxTagDepth {
		data, err := r.db.Meta(plumbing.CommitObject, h)
		if err == nil {
			c := &object.Commit{}
			if err := c.Decode(git.Object(plumbing.CommitObject, data)); err != nil {
				return nil, &fault.ObjectError{Hash: h, Text: fmt.Sprintf("decode commit: %v", err)}
			}
			return c, nil
		}
		data, tagErr := r.db.Meta(plumbing.TagObject, h)
		if tagErr != nil {
			if r.isContent(h) {
				return nil, fault.New(fault.MissingRef, "%s is a file or a tree, not a commit; name a commit, a branch or a tag of a commit", h)
			}
			return nil, err
		}
		tag := &object.Tag{}
		if err := tag.Decode(git.Object(plumbing.TagObject, data)); err != nil {
			return nil, &fault.ObjectError{Hash: h, Text: fmt.Sprintf("decode tag: %v", err)}
		}
		h = tag.Target
	}
	return nil, fault.New(fault.Unsupported, "more than %d tags name one another", maxTagDepth)
}

func (r repository) isContent(h plumbing.Hash) bool {
	_, treeErr := r.db.Read(plumbing.TreeObject, h, git.MaxListingBytes)
	_, blobErr := r.db.Read(plumbing.BlobObject, h, git.MaxFileBytes)
	return treeErr == nil || blobErr == nil
}

// maxSubject bounds a subject in characters, because tables and lines show it.
const maxSubject = 300

func shortened(subject string) string {
	if r := []rune(subject); len(r) > maxSubject {
		return string(r[:maxSubject]) + "…"
	}
	return subject
}

// snapshot verifies the commit of h and describes it. The caller sets Source and SourceID.
func (r repository) snapshot(h plumbing.Hash, ref string) (snapshot.Snapshot, error) {
	c, err := r.peel(h)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	if err := r.verify.Verify(c.TreeHash); err != nil {
		return snapshot.Snapshot{}, fmt.Errorf("verify commit %s: %w", c.Hash, err)
	}
	message := strings.ToValidUTF8(c.Message, "\uFFFD")
	subject, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	s := snapshot.Snapshot{
		Revision: c.Hash.String(), Ref: ref,
		Subject: shortened(strings.TrimRight(subject, "\r ")), Message: message,
		CommittedAt: c.Committer.When,
		Tree:        &git.Tree{Db: r.db, Root: c.TreeHash},
	}
	if len(c.ParentHashes) > 0 {
		s.Parent = c.ParentHashes[0].String()
	}
	return s, nil
}
