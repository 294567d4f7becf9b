package source

import (
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/weir-gitops/weir/source/snapshot"
)

// maxTagDepth bounds a chain of tags that name tags.
const maxTagDepth = 10

// repository is an object store whose commits can become snapshots.
type repository struct {
	db      *objectDB
	verify  *verifier
	history *history
}

func newRepository(db *objectDB) repository {
	return repository{db: db, verify: newVerifier(db), history: newHistory(db)}
}

// peel follows annotated tags to the commit.
func (r repository) peel(h plumbing.Hash) (*object.Commit, error) {
	for range maxTagDepth {
		data, err := r.db.meta(plumbing.CommitObject, h)
		if err == nil {
			c := &object.Commit{}
			if err := c.Decode(encoded(plumbing.CommitObject, data)); err != nil {
				return nil, &objectError{hash: h, text: fmt.Sprintf("decode commit: %v", err)}
			}
			return c, nil
		}
		data, tagErr := r.db.meta(plumbing.TagObject, h)
		if tagErr != nil {
			if r.isContent(h) {
				return nil, faultf(MissingRef, "%s is a file or a tree, not a commit; name a commit, a branch or a tag of a commit", h)
			}
			return nil, err
		}
		tag := &object.Tag{}
		if err := tag.Decode(encoded(plumbing.TagObject, data)); err != nil {
			return nil, &objectError{hash: h, text: fmt.Sprintf("decode tag: %v", err)}
		}
		h = tag.Target
	}
	return nil, faultf(Unsupported, "more than %d tags name one another", maxTagDepth)
}

func (r repository) isContent(h plumbing.Hash) bool {
	_, treeErr := r.db.read(plumbing.TreeObject, h, maxListingBytes)
	_, blobErr := r.db.read(plumbing.BlobObject, h, MaxFileBytes)
	return treeErr == nil || blobErr == nil
}

// maxSubject bounds a subject, in characters. It stands in tables and lines.
const maxSubject = 300

func shortened(subject string) string {
	if r := []rune(subject); len(r) > maxSubject {
		return string(r[:maxSubject]) + "…"
	}
	return subject
}

// snapshot verifies the commit that h leads to and describes it. Source and
// SourceID are left to the caller.
func (r repository) snapshot(h plumbing.Hash, ref string) (snapshot.Snapshot, error) {
	c, err := r.peel(h)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	if err := r.verify.verify(c.TreeHash); err != nil {
		return snapshot.Snapshot{}, fmt.Errorf("verify commit %s: %w", c.Hash, err)
	}
	message := strings.ToValidUTF8(c.Message, "\uFFFD")
	subject, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	s := snapshot.Snapshot{
		Revision: c.Hash.String(), Ref: ref,
		Subject: shortened(strings.TrimRight(subject, "\r ")), Message: message,
		CommittedAt: c.Committer.When,
		Tree:        &commitTree{db: r.db, root: c.TreeHash},
	}
	if len(c.ParentHashes) > 0 {
		s.Parent = c.ParentHashes[0].String()
	}
	return s, nil
}
