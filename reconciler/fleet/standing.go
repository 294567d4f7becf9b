package fleet

// standing is the relation of a target's last build to a commit. It decides whether the target is rendered, or its last build is used
// again. A review compares the builds of the followed commits with the proposal, and so renders only what the proposal changes.
type standing string

const (
	unread    standing = "the configuration or the commit cannot be read: the last build stays"
	faulty    standing = "the configuration or the directories have a fault: there is nothing to render"
	missing   standing = "the commit does not have the target's path: there is nothing to render"
	current   standing = "the last build is of this commit"
	unchanged standing = "the last build is of another commit, and nothing that it read has changed"
	outdated  standing = "the last build is not valid for the commit, or there is none: the target must be rendered"
)

// comparison is what a standing is based on. The functions read the commit's tree, and are only called if their answers matter.
type comparison struct {
	// unread says that the configuration or the commit cannot be read, faulty that the target has a fault before it is rendered.
	unread, faulty bool
	// built says that there is a build of the same path, repository and values, which is valid as long as what it read is the same.
	built bool
	// sameCommit says that the last build is known to be of this commit.
	sameCommit bool
	// missing reports whether the commit lacks the path. sameReads reports whether everything that the last build read is the same.
	missing, sameReads func() (bool, error)
}

// standingOf returns the standing of a target. It fails if the commit's tree cannot be read.
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
		// A build that may differ although nothing was committed does not count, nor does one that has room by now.
		built:      r.result != nil && !r.result.Retry && r.of(it) && (r.over == nil || !it.budget.fits(r.over)),
		sameCommit: r.revision == snap.Revision,
		missing:    func() (bool, error) { return isMissing(snap.Tree, it.path) },
		sameReads:  func() (bool, error) { return r.result.Reads.Same(snap.Tree) },
	})
}
