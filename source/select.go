package source

import (
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/transport"
)

// candidate is a ref and its object.
type candidate struct {
	ref  string
	hash plumbing.Hash
}

// selection is the selection of a source's ref from the server's refs.
type selection struct {
	candidate
	// rivals are other tags of the same version. Only their commits show which tag counts.
	rivals []candidate
	// wants are the hashes to request from the server. more are the hashes to request if it refuses.
	wants, more []plumbing.Hash
}

// key identifies the objects of a selection, without the name of the ref.
func (t selection) key() string {
	key := t.hash.String()
	for _, r := range t.rivals {
		key += " " + r.hash.String()
	}
	return key
}

// all returns all candidates.
func (t selection) all() []candidate { return append([]candidate{t.candidate}, t.rivals...) }

// chooses reports whether selectRef reads a ref.
func (r Ref) chooses(name string, caps transport.Capabilities) bool {
	n := plumbing.ReferenceName(name)
	switch {
	case r.Commit != "":
		return n.IsBranch() || n.IsTag()
	case r.SemVer != "":
		return n.IsTag()
	case r.fullName() == "":
		return name == caps.Value("symref=HEAD:")
	default:
		return name == r.fullName()
	}
}

// selectRef returns the selection of ref from the refs of a session.
func selectRef(s *transport.Session, ref Ref) (selection, error) {
	switch name := ref.fullName(); {
	case ref.Commit != "":
		return selectCommit(s, ref.Commit), nil
	case ref.SemVer != "":
		return selectVersion(s.Host, ref.SemVer, s.Adv.References)
	case name == "":
		return selectHead(s)
	default:
		h, ok := s.Adv.References[name]
		if !ok {
			return selection{}, missingRef(s.Host, name)
		}
		return selection{candidate: candidate{name, h}, wants: []plumbing.Hash{h}}, nil
	}
}

func missingRef(where, name string) error {
	return fault.New(fault.MissingRef, "%s has no %s; push it, or change the source's ref", where, fault.Plain(name))
}

// selectHead selects the branch of HEAD. A detached HEAD points to a commit.
func selectHead(s *transport.Session) (selection, error) {
	if s.Adv.Head == nil {
		return selection{}, fault.New(fault.MissingRef, "HEAD of %s names a branch that does not exist; set ref.branch", s.Host)
	}
	h := *s.Adv.Head
	t := selection{candidate: candidate{plumbing.HEAD.String(), h}, wants: []plumbing.Hash{h}}
	if branch := s.Caps.Value("symref=HEAD:"); branch != "" && s.Adv.References[branch] == h {
		t.ref = branch
	}
	return t, nil
}

// selectCommit selects the commit by its hash if the server lists it, or allows requests for hashes. Otherwise
// it selects the tips of all branches and tags, because one of them should contain the commit. A server that
// allows only some hashes (allow-tip-sha1-in-want) may refuse this one. Then fetch requests the tips, in more.
func selectCommit(s *transport.Session, commit string) selection {
	h := plumbing.NewHash(commit)
	t := selection{candidate: candidate{commit, h}, wants: []plumbing.Hash{h}}
	all := map[plumbing.Hash]bool{}
	for name, tip := range s.Adv.References {
		if tip == h {
			return t
		}
		if n := plumbing.ReferenceName(name); n.IsBranch() || n.IsTag() {
			all[tip] = true
		}
	}
	for tip := range all {
		t.more = append(t.more, tip)
	}
	plumbing.HashesSort(t.more)
	for _, c := range []string{"allow-reachable-sha1-in-want", "allow-any-sha1-in-want", "allow-tip-sha1-in-want"} {
		if s.Caps.Has(c) {
			return t
		}
	}
	t.wants, t.more = t.more, nil
	return t
}
