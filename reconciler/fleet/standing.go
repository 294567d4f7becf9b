package fleet

// standing is the relation of a target's last build to a commit. It decides whether the target is rendered,
// or its last build is used again. A review compares the builds of the followed commits with the proposal,
// and renders only the targets that the proposal changes.
type standing string

const (
	unread    standing = "the configuration or the commit cannot be read: the last build stays"
	faulty    standing = "the configuration or the directories have a fault: there is nothing to render"
	missing   standing = "the commit does not have the target's path: there is nothing to render"
	current   standing = "the last build is of this commit"
	unchanged standing = "the last build is of another commit, and its files have not changed"
	outdated  standing = "the last build is missing, or not valid for the commit: the target must be rendered"
)

// comparison holds the facts that decide a standing. standingOf calls its functions, which read the commit's
// tree, only if it needs their results.
type comparison struct {
	// unread is true if the configuration or the commit cannot be read. faulty is true if the target has a
	// fault that prevents its render.
	unread, faulty bool
	// built is true if a build of the same path, repository and values exists. It is valid until a file
	// changes that it read.
	built bool
	// sameCommit is true if the last build is of this commit.
	sameCommit bool
	// missing reports whether the path is missing in the commit. sameReads reports whether all files of the
	// last build are unchanged.
	missing, sameReads func() (bool, error)
}

// standingOf returns the standing of a target. It fails if the commit's tree cannot be read; the standing is
// valid only without an error.
func standingOf(c comparison) (standing, error) {
	switch {
	case c.unread:
		return unread, nil
	case c.faulty:
		return faulty, nil
	case c.built && c.sameCommit:
		return current, nil
	}
	if gone, err := c.missing(); err != nil || gone {
		return missing, err
	}
	if !c.built {
		return outdated, nil
	}
	same, err := c.sameReads()
	if err != nil || !same {
		return outdated, err
	}
	return unchanged, nil
}

// compare compares an item's last build with its commit. It changes nothing.
func compare(it *item) (standing, error) {
	r, snap := it.render, it.view.Snapshot
	return standingOf(comparison{
		unread: it.err != nil || snap.Tree == nil,
		faulty: it.diags.HasErrors(),
		// Two kinds of builds must be made again: their inputs outside Git may have changed, or the budget
		// has room for them now.
		built:      r.result != nil && !r.result.Retry && r.of(it) && (r.over == nil || !it.budget.fits(r.over)),
		sameCommit: r.revision == snap.Revision,
		missing:    func() (bool, error) { return isMissing(snap.Tree, it.path) },
		sameReads:  func() (bool, error) { return r.result.Reads.Same(snap.Tree) },
	})
}
