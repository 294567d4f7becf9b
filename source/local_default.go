package source

import (
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
)

// defaultBranch returns the branch that weir follows if no ref is configured. For a bare repository it is the
// branch of HEAD, as on a server. HEAD of a work tree is the branch that its user currently works on, and git
// switch must not change machines. So for a work tree it is the default branch of origin, or the only branch,
// or main or master.
func (b *localBackend) defaultBranch(dirs git.Dirs, refs storer.ReferenceStorer) (plumbing.ReferenceName, error) {
	cfg, err := dirs.Settings()
	if err != nil {
		return "", err
	}
	if strings.EqualFold(cfg.Section("core").Option("bare"), "true") {
		return headBranch(b.path, filesystem.NewStorage(osfs.New(dirs.Common), cache.NewObjectLRU(0))) // a linked work tree has its own HEAD
	}
	all, err := b.hashRefs(refs)
	if err != nil {
		return "", err
	}
	branch := func(short string) plumbing.ReferenceName { return plumbing.NewBranchReferenceName(short) }
	if origin, err := refs.Reference(plumbing.NewRemoteHEADReferenceName("origin")); err == nil && origin.Type() == plumbing.SymbolicReference {
		if short, ok := strings.CutPrefix(origin.Target().String(), "refs/remotes/origin/"); ok {
			return branch(short), nil
		}
	}
	var branches []string
	for name := range all {
		if short, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			branches = append(branches, short)
		}
	}
	_, hasMain := all[branch("main").String()]
	_, hasMaster := all[branch("master").String()]
	switch {
	case len(all) == 0:
		return "", fault.New(fault.EmptyRepository, "%s has no commit yet", b.path)
	case len(branches) == 1:
		return branch(branches[0]), nil
	case hasMain != hasMaster:
		if hasMain {
			return branch("main"), nil
		}
		return branch("master"), nil
	default:
		return "", fault.New(fault.MissingRef, "%s does not show which of its branches is the default one; set ref.branch", b.path)
	}
}

// headBranch returns the branch of HEAD, or HEAD if it points to a commit.
func headBranch(path string, refs storer.ReferenceStorer) (plumbing.ReferenceName, error) {
	head, err := refs.Reference(plumbing.HEAD)
	if err != nil {
		return "", fault.Unread(err, "%s: read HEAD", path)
	}
	if head.Type() == plumbing.SymbolicReference {
		return head.Target(), nil
	}
	return plumbing.HEAD, nil
}
