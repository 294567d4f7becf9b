package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/snapshot"
)

// checkVerify refuses a policy that no revision of the ref could satisfy.
func checkVerify(cfg Config) error {
	if err := cfg.Verify.Validate(); err != nil {
		return err
	}
	if cfg.Verify.Mode == signature.Tag && !cfg.Ref.namesTag() {
		return errors.New("verify.mode tag needs a ref that names a tag: ref.tag, ref.semver, or ref.name with refs/tags/")
	}
	return nil
}

// namesTag reports whether the ref is a tag.
func (r Ref) namesTag() bool {
	return r.Tag != "" || r.SemVer != "" || strings.HasPrefix(r.Name, "refs/tags/")
}

// attest checks that a signature covers c, as the policy requires, and records the signer. If c has no ref,
// the tag's name is not compared. again is true if an earlier process accepted the same object.
//
// Signatures show the author of a commit, not that it is the newest one. A user with permission to push can
// still go back to an older commit.
func (r repository) attest(p signature.Policy, c candidate, again bool, s *snapshot.Snapshot) error {
	if p.IsZero() {
		return nil
	}
	refuse := func(format string, args ...any) error {
		f := fault.New(fault.Unverified, format, args...)
		f.Revision = s.Revision
		return f
	}
	keys, err := p.Load()
	if err != nil {
		return refuse("commit %s cannot be verified: %v", s.Revision[:12], err)
	}
	var why []string
	for _, one := range []struct {
		kind   signature.Mode
		attest func() (by string, err error)
	}{
		{signature.Tag, func() (string, error) { return r.attestTag(keys, c, again, s.Revision) }},
		{signature.Commit, func() (string, error) { return r.attestCommit(keys, plumbing.NewHash(s.Revision), again) }},
	} {
		if p.Mode != one.kind && p.Mode != signature.Either {
			continue
		}
		by, err := one.attest()
		var f *refusal
		switch {
		case err == nil:
			s.SignedBy = fault.Plain(by)
			return nil
		case !errors.As(err, &f):
			return err
		}
		why = append(why, f.Error())
	}
	return refuse("%s", strings.Join(why, "; and "))
}

// refusal is an error that names the signature and the reason why it is not accepted.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refusalf(format string, args ...any) error {
	return &refusal{fault.Plain(fmt.Sprintf(format, args...))}
}

// attestTag checks the signature of the annotated tag c that led to the revision, and returns the signer.
// The tag must have the name of its ref, and the signature must cover its target.
func (r repository) attestTag(keys *signature.Keys, c candidate, again bool, revision string) (string, error) {
	if c.hash.String() == revision {
		name := strings.TrimPrefix(c.ref, "refs/tags/")
		if !strings.HasPrefix(c.ref, "refs/tags/") {
			return "", refusalf("no signed tag led to commit %s", revision[:12])
		}
		return "", refusalf("tag %q is not annotated, so it cannot be signed: it names commit %s directly; create it with git tag -s", name, revision[:12])
	}
	raw, err := r.db.Meta(plumbing.TagObject, c.hash)
	if err != nil {
		return "", err
	}
	o, err := signature.ParseTag(raw)
	if err != nil {
		return "", refusalf("tag %s: %v", c.hash, err)
	}
	if name, ok := strings.CutPrefix(c.ref, "refs/tags/"); ok && name != o.Name {
		return "", refusalf("the tag object under %q is one for %q: somebody gave it another name", name, o.Name)
	}
	by, err := keys.Verify(o, again)
	if err != nil {
		return "", refusalf("tag %q by %s: %v", o.Name, o.Who, err)
	}
	var whole, signed object.Tag
	if whole.Decode(git.Object(plumbing.TagObject, raw)) != nil || signed.Decode(git.Object(plumbing.TagObject, o.Payload)) != nil ||
		whole.Target != signed.Target || whole.TargetType != signed.TargetType {
		return "", refusalf("tag %q by %s: the signed contents differ from what it names", o.Name, o.Who)
	}
	return by, nil
}

// attestCommit checks the signature of a commit, and returns the signer. The signature must cover the tree,
// the parents and the message.
func (r repository) attestCommit(keys *signature.Keys, h plumbing.Hash, again bool) (string, error) {
	raw, err := r.db.Meta(plumbing.CommitObject, h)
	if err != nil {
		return "", err
	}
	short := h.String()[:12]
	o, err := signature.ParseCommit(raw)
	if err != nil {
		return "", refusalf("commit %s: %v", short, err)
	}
	by, err := keys.Verify(o, again)
	if err != nil {
		return "", refusalf("commit %s by %s: %v", short, o.Who, err)
	}
	// Other parsers read the applied commit and the signed bytes.
	var whole, signed object.Commit
	if whole.Decode(git.Object(plumbing.CommitObject, raw)) != nil || signed.Decode(git.Object(plumbing.CommitObject, o.Payload)) != nil ||
		whole.TreeHash != signed.TreeHash || !slices.Equal(whole.ParentHashes, signed.ParentHashes) || whole.Message != signed.Message {
		return "", refusalf("commit %s by %s: the signed contents differ from the commit's", short, o.Who)
	}
	return by, nil
}

// newest chooses among tags of the same version: the newest commit, and among equal times the tag that sorts
// last.
func (r repository) newest(t selection) (candidate, error) {
	best := t.candidate
	if len(t.rivals) == 0 {
		return best, nil
	}
	c, err := r.peel(best.hash)
	if err != nil {
		return best, err
	}
	when := c.Committer.When
	for _, rival := range t.rivals { // sorted, with the last name first
		c, err := r.peel(rival.hash)
		if err != nil {
			return best, err
		}
		if c.Committer.When.After(when) {
			best, when = rival, c.Committer.When
		}
	}
	return best, nil
}
